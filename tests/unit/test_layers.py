"""Imports point down, also inside functions. The table below is the architecture."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import labwright

ROOT = Path(labwright.__file__).parent

# layer: (which other layers it may import, why)
GROUND = {"domain", "paths", "files", "hashes", "processes", "settings", "tokens", "version"}
LAYERS: dict[str, tuple[set[str], str]] = {
    "domain": (set(), "values and rules: no I/O, so anything may use them"),
    "version": (set(), "one string"),
    "paths": (set(), "file names: spelled once, for everybody"),
    "files": (set(), "writing that survives a kill: needs nothing but the system"),
    "hashes": (set(), "what a file is known by: needs nothing but the system"),
    "processes": (set(), "what the kernel shows: needs nothing but the system"),
    "settings": ({"domain", "paths"}, "read once at the entry points"),
    "tokens": ({"domain", "files"}, "a secret and what is signed with it"),
    "sandbox": ({"processes"}, "holds back code that nobody vouched for: knows nothing of what that code is"),
    "sdk": (set(), "runs in the user's own interpreter, where Labwright is not installed"),
    "workflow": (set(), "runs in the project's own interpreter, where Labwright is not installed"),
    "gpu": (GROUND, "the driver and the leases: sidecar and server both stand on it"),
    "sim": (GROUND | {"gpu"}, "a driver for rehearsals: it must not know who looks at it"),
    "sidecar": (
        {"domain", "paths", "files", "hashes", "processes", "gpu"},
        "starts in tens of ms by the thousand and outlives the server: nothing heavy, no SQL, no HTTP",
    ),
    "store": (GROUND, "the only SQL"),
    "skills": (GROUND, "texts for models and what fills them in: files alone, so no server is needed to read them"),
    "workspace": (GROUND, "plans as folders: they can be moved, so they know no database and no server"),
    "compute": (GROUND | {"gpu", "store", "workspace"}, "starts the sidecar by command and never imports it"),
    "services": (
        GROUND | {"gpu", "store", "workspace", "skills", "compute"},
        "one function a verb, called by every way in",
    ),
    "llm": (GROUND, "models behind an interface of our own; knows nothing of what it is asked"),
    "planning": (
        GROUND | {"sdk", "workflow", "sandbox", "workspace", "llm", "store", "compute", "services"},
        "from a goal to a workspace that may run, which needs no server; its verbs and RunMode call those of runs",
    ),
    "agent": (
        GROUND | {"sandbox", "workspace", "skills", "llm", "planning", "store", "compute", "services"},
        "conversations and what happens in them: calls the same verbs as every other way in",
    ),
    "server": (
        GROUND
        | {"gpu", "sdk", "store", "workspace", "skills", "llm", "compute", "services", "planning", "agent", "sandbox"},
        "HTTP only, and what is set up at start; `doctor` asks it what generated code would be held back from",
    ),
    "client": (GROUND, "a thin HTTP client: works against a server on another machine"),
    "mcp": (GROUND | {"client"}, "the verbs as tools for other assistants: HTTP only, with the token of an agent"),
    "cli": (
        GROUND | {"gpu", "sim", "skills", "client", "mcp"},
        "talks HTTP, so that one behaviour has one home; skills are files, and read as such",
    ),
}


def imports_in(source: str, package: list[str]) -> Iterator[str]:
    """Return every `labwright.…` that a file imports, anywhere in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def layers_imported(source: str, package: list[str]) -> set[str]:
    names = (name.split(".") for name in imports_in(source, package))
    return {parts[1] for parts in names if parts[0] == "labwright" and len(parts) > 1} - {"__version__"}


def test_every_file_belongs_to_a_layer() -> None:
    found = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert found - {"__init__"} <= set(LAYERS)


def test_layer_imports_only_lower_layers() -> None:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        layer = parts[0].removesuffix(".py")
        if layer == "__init__":
            continue
        allowed = {layer, *LAYERS[layer][0]}
        for other in sorted(layers_imported(path.read_text(), ["labwright", *parts[:-1]]) - allowed):
            wrong.append(f"{path.relative_to(ROOT)} imports {other}: {layer} is {LAYERS[layer][1]}")
    assert not wrong, "\n".join(wrong)


def test_only_the_store_has_sql() -> None:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        package = ["labwright", *path.relative_to(ROOT).parts[:-1]]
        names = imports_in(path.read_text(), package)
        if package[1:2] != ["store"] and any(name.startswith("labwright.store.statements") for name in names):
            wrong.append(path.name)
    assert wrong == []


def test_table_has_no_cycle() -> None:
    left = {name: set(below) for name, (below, _why) in LAYERS.items()}
    while ground := {name for name, below in left.items() if not below}:
        left = {name: below - ground for name, below in left.items() if name not in ground}
    assert not left


def test_architecture_page_shows_every_layer_below_its_importers() -> None:
    table = (
        (ROOT.parents[1] / "docs" / "architecture" / "README.md")
        .read_text()
        .partition("| layer |")[2]
        .partition("\n\n")[0]
    )
    rows = [re.findall(r"`(\w+)(?:/|\.py)`", row.split(" | ")[0]) for row in table.splitlines()]
    place = {name: number for number, row in enumerate(rows) for name in row}
    assert set(place) == set(LAYERS)
    assert not [
        (name, other) for name, (below, _why) in LAYERS.items() for other in below if place[other] > place[name]
    ]


def test_check_sees_imports_inside_functions_and_relative_ones() -> None:
    source = (
        "def f():\n    from labwright.store import runs\n    from ..sidecar import job\n    import labwright.cli.main\n"
    )
    assert layers_imported(source, ["labwright", "compute"]) == {"store", "sidecar", "cli"}
    assert layers_imported("from labwright import gpu", []) == {"gpu"}


def test_domain_and_sidecar_need_only_the_standard_library() -> None:
    foreign = {"fastapi", "pydantic", "psutil", "uvicorn", "typer", "rich", "pynvml", "starlette", "anyio", "yaml"}
    wrong = []
    for layer in ("domain", "sdk", "workflow", "sidecar", "gpu", "paths.py", "files.py", "processes.py"):
        target = ROOT / layer
        for path in [target] if target.suffix else target.rglob("*.py"):
            used = {name.split(".")[0] for name in imports_in(path.read_text(), [])} & foreign
            if used - ({"pynvml"} if path.name == "gpuwrap_detect.py" else set()):
                wrong.append(f"{path.relative_to(ROOT)}: {used}")
    assert not wrong


def test_only_the_model_layer_imports_a_model_sdk() -> None:
    foreign = {"pydantic_ai", "anthropic", "openai", "httpx2", "genai_prices"}
    users = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if {name.split(".")[0] for name in imports_in(path.read_text(), [])} & foreign
    }
    assert users and all(user.startswith("llm/") for user in users)


# Packages whose folders import each other in one direction only. Files directly in the package count as one folder.
LAYERED_INSIDE = ("agent", "planning")


def folder_imports(package: str) -> dict[str, set[str]]:
    """Return for each folder inside a package the other folders of that package it imports; "." is the top."""
    root = ROOT / package
    folders = {path.name for path in root.iterdir() if (path / "__init__.py").exists()}
    edges: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        folder = parts[0] if len(parts) > 1 else "."
        for name in imports_in(path.read_text(), ["labwright", package, *parts[:-1]]):
            imported = name.split(".")
            if imported[:2] == ["labwright", package] and len(imported) > 2:
                edges.setdefault(folder, set()).add(imported[2] if imported[2] in folders else ".")
    return {folder: others - {folder} for folder, others in edges.items()}


def test_folders_inside_a_package_have_no_import_cycles() -> None:
    circles = {}
    for package in LAYERED_INSIDE:
        left = folder_imports(package)
        while bottom := {folder for folder, below in left.items() if not below & set(left)}:
            left = {folder: below for folder, below in left.items() if folder not in bottom}
        if left:
            circles[package] = left
    assert not circles
