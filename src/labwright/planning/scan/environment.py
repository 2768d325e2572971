"""The project's Python environment: the files that describe it, and the interpreter to use."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace

from labwright.planning.scan.commands import read_toml, table
from labwright.planning.scan.facts import EntryPoint, Environment, EnvironmentFile, Interpreter, Kind
from labwright.planning.scan.interpreters import conda_tool, find_interpreters, installed, run_in
from labwright.planning.scan.literals import keyword, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import JUST_MADE, UNFINISHED, ProjectTree, read_yaml

_REQUIREMENTS = re.compile(r"^requirements[\w.-]*\.(txt|in)$")
_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_LOCKS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "Pipfile.lock": "pipenv",
    "pdm.lock": "pdm",
    "conda-lock.yml": "conda",
}


def read_environment_files(tree: ProjectTree, modules: Modules) -> list[EnvironmentFile]:
    """Read environment files at the root, and requirements files one folder down."""
    names = [path for path in tree.files if path.count("/") == 0]
    found = [*_pyproject(tree), *_requirements(tree)]
    for path in names:
        if path in ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml"):
            found += _conda(tree, path)
        elif path in ("setup.py", "setup.cfg"):
            found += _setup(modules, path)
        elif path in _LOCKS:
            found.append(EnvironmentFile(path=path, kind="lock", name=_LOCKS[path]))
        elif path == "Pipfile":
            packages = tuple(table(read_toml(tree, path), "packages"))
            found.append(EnvironmentFile(path=path, kind="pipfile", packages=packages))
    return found


def _pyproject(tree: ProjectTree) -> Iterator[EnvironmentFile]:
    content = read_toml(tree, "pyproject.toml")
    project, poetry = table(content, "project"), table(content, "tool", "poetry")
    if not content:
        return
    listed = project.get("dependencies")
    declared = [str(item) for item in listed] if isinstance(listed, list) else list(table(poetry, "dependencies"))
    python = project.get("requires-python") or table(poetry, "dependencies").get("python") or ""
    yield EnvironmentFile(
        path="pyproject.toml",
        kind="pyproject",
        requires_python=str(python),
        packages=_packages([item for item in declared if item != "python"]),
        installable=bool(project.get("name") or poetry.get("name")),
        note="" if project or poetry else "settings of tools only",
    )


def _packages(lines: list[str]) -> tuple[str, ...]:
    return tuple(match.group(1) for line in lines if (match := _NAME.match(line)))


def _requirements(tree: ProjectTree) -> Iterator[EnvironmentFile]:
    for path in tree.files:
        if path.count("/") < 2 and (
            _REQUIREMENTS.match(path.rsplit("/", 1)[-1]) or re.match(r"^requirements/[\w.-]+\.txt$", path)
        ):
            lines = [line.partition("#")[0] for line in (tree.read(path) or "").splitlines()]
            kept = [line for line in lines if line.strip() and not line.lstrip().startswith("-")]
            yield EnvironmentFile(path=path, kind="requirements", packages=_packages(kept))


def _conda(tree: ProjectTree, path: str) -> Iterator[EnvironmentFile]:
    content = read_yaml(tree, path)
    content = content if isinstance(content, dict) else {}
    listed = content.get("dependencies")
    flat: list[str] = []
    for item in listed if isinstance(listed, list) else ():
        below = item.get("pip") if isinstance(item, dict) else None
        flat += [str(line) for line in below] if isinstance(below, list) else [item] if isinstance(item, str) else []
    plain = [item.split("::")[-1] for item in flat]
    python = next((item.removeprefix("python").strip() for item in plain if re.match(r"^python\b", item)), "")
    packages = _packages([item for item in plain if not re.match(r"^(python|pip)\b", item)])
    name = content.get("name")
    yield EnvironmentFile(path=path, kind="conda", name=str(name or ""), requires_python=python, packages=packages)


def _setup(modules: Modules, path: str) -> Iterator[EnvironmentFile]:
    module = modules.get(path) if path.endswith(".py") else None
    packages: tuple[str, ...] = ()
    for node in ast.walk(module.tree) if module else ():
        if isinstance(node, ast.Call) and last_name(node.func) == "setup":
            listed = value_of(keyword(node, "install_requires"), module.constants if module else None)
            packages = _packages([str(item) for item in listed]) if isinstance(listed, list) else ()
    yield EnvironmentFile(path=path, kind="setup", packages=packages, installable=path == "setup.py")


# Packages whose import has another name.
_PACKAGES = {
    "sklearn": "scikit-learn", "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "dateutil": "python-dateutil", "hydra": "hydra-core", "absl": "absl-py",
    "pytorch_lightning": "pytorch-lightning", "google": "protobuf", "Bio": "biopython", "attr": "attrs",
}  # fmt: skip
_ACTIVATE = "source .venv/bin/activate && "
_MARK = f".venv{UNFINISHED}"


def read_environment(
    tree: ProjectTree, modules: Modules, entries: list[EntryPoint], environ: Mapping[str, str]
) -> Environment:
    files = read_environment_files(tree, modules)
    known = [entry for entry in entries if entry.kind is not Kind.OTHER]  # if there is none, use all
    imports = sorted({name for entry in known or entries for name in entry.imports} - {"labwright"})
    found = [replace(one, missing=tuple(_missing(one, imports))) for one in find_interpreters(tree, files, environ)]
    chosen = _choose(found, files, imports)
    commands, activation = _create(files, imports, environ)
    recipe = _whole_or_anew(commands)
    if chosen:
        return Environment(
            files=tuple(files),
            interpreters=tuple(found),
            chosen=chosen,
            activation=chosen.activation,
            recipe=recipe,
            notes=(f"{chosen.path} lacks {', '.join(chosen.missing)}",) if chosen.missing else (),
        )
    return Environment(
        files=tuple(files), interpreters=tuple(found), create=recipe, recipe=recipe, activation=activation
    )


def _missing(interpreter: Interpreter, imports: list[str]) -> list[str]:
    there = installed(interpreter)
    return [] if "*" in there else [name for name in imports if name not in there]


def _choose(found: list[Interpreter], files: list[EnvironmentFile], imports: list[str]) -> Interpreter | None:
    """Choose the interpreter. The project's own environment wins even if a package is missing."""
    for one in found:
        own = "in the project" in one.reason or "names" in one.reason
        if own or (not one.missing and (one.kind != "system" or not _asks_for_more(files, imports))):
            return one
    return None


def _asks_for_more(files: list[EnvironmentFile], imports: list[str]) -> bool:
    """Return whether the project needs its own environment. The system's Python is enough for bare scripts."""
    return bool(imports) and any(file.packages or file.installable for file in files)


def _whole_or_anew(commands: list[str]) -> str:
    """Return one shell line. It removes only what an earlier attempt left unfinished, never a user's folder.

    Runs write for their user alone; an environment is also read by the user without rights that checks run as.
    """
    begin = f"umask 022 && {{ [ ! -e {_MARK} ] || rm -rf .venv; }} && touch {_MARK}"
    return " && ".join((begin, *commands, f"mv {_MARK} .venv/{JUST_MADE}"))


def _create(files: list[EnvironmentFile], imports: list[str], environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Return commands to make an environment, and the activation for its runs."""
    path = environ.get("PATH")
    conda = next((file for file in files if file.kind == "conda"), None)
    others = [
        file
        for file in files
        if file.kind in ("requirements", "pyproject", "setup") and (file.packages or file.installable)
    ]
    if conda and not others:
        return _create_conda(conda, path)
    what = _to_install(files, imports)
    if shutil.which("uv", path=path):
        if any(file.path == "uv.lock" for file in files):
            return ["uv sync"], _ACTIVATE
        return _joined("uv venv .venv", "uv pip install", what), _ACTIVATE
    tool = conda_tool(path)
    if tool:
        return _joined_conda(tool, what)
    return _joined("python3 -m venv .venv", "python -m pip install", what), _ACTIVATE


def _joined(make: str, install: str, what: str) -> list[str]:
    return [f"{make} && {_ACTIVATE}{install} {what}" if what else make]


def _joined_conda(tool: str, what: str) -> tuple[list[str], str]:
    run = run_in(tool, "./.venv", by="-p")
    make = f"{tool} create -y -p ./.venv python pip"
    return [make, f"{run}python -m pip install {what}"] if what else [make], run


def _create_conda(file: EnvironmentFile, path: str | None) -> tuple[list[str], str]:
    tool = conda_tool(path) or "conda"
    create = f"{tool} create -y" if tool == "micromamba" else f"{tool} env create"
    return [f"{create} -p ./.venv -f {shlex.quote(file.path)}"], run_in(tool, "./.venv", by="-p")


def _to_install(files: list[EnvironmentFile], imports: list[str]) -> str:
    """Return the arguments for pip: a requirements file, the project itself, or the imported packages."""
    requirements = sorted(
        (file.path for file in files if file.kind == "requirements"), key=lambda path: (path.count("/"), len(path))
    )
    parts = [f"-r {shlex.quote(requirements[0])}"] if requirements else []
    if any(file.installable for file in files):
        parts.append("-e .")
    return " ".join(parts) or " ".join(_PACKAGES.get(name, name) for name in imports)
