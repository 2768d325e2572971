"""The docs name everything that exists, and no link is broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi import FastAPI

from labwright.cli.main import app as cli
from labwright.domain.event import EventType
from labwright.domain.plan import PlanStatus
from labwright.domain.plan_document.document import TITLE, Header
from labwright.domain.plan_document.reader import read as read_plan
from labwright.domain.run import RunStatus
from labwright.paths import ProjectPaths, RunPaths
from labwright.server.app import make_api
from labwright.server.opening import open_lab, prepare_state
from labwright.services.figures import figures
from labwright.settings import BOUNDS, Settings

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def read(name: str) -> str:
    return (REFERENCE / name).read_text()


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(path for path in found if ".labwright" not in path.parts)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    project = tmp_path_factory.mktemp("project")
    lab = open_lab(prepare_state(project), Settings(lease_dir=str(project / "leases")), "http://127.0.0.1:1")
    yield make_api(lab)
    lab.db.close()


def test_every_route_is_in_the_http_reference(application: FastAPI) -> None:
    text = read("http.md")
    operations = [
        f"{method.upper()} {path}" for path, methods in application.openapi()["paths"].items() for method in methods
    ]
    assert len(operations) > 20
    assert [operation for operation in operations if f"`{operation}`" not in text] == []


def test_http_reference_names_only_existing_routes(application: FastAPI) -> None:
    paths = application.openapi()["paths"]
    named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`? ]*)`", read("http.md"))
    beside = {"/docs", "/openapi.json"}
    assert [f"{verb} {path}" for verb, path in named if path not in beside and verb.lower() not in paths[path]] == []


def test_every_request_field_and_option_is_in_its_http_section(application: FastAPI) -> None:
    parts = re.split(r"^(?=## )", read("http.md"), flags=re.MULTILINE)
    common = next(part for part in parts if part.startswith("## Common to all"))
    api: dict[str, Any] = application.openapi()
    missing = []
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            told = common + "".join(part for part in parts if f"`{name}`" in part)
            wanted = {*fields_of(operation, api["components"]["schemas"]), *options_of(operation)}
            missing += [f"{name}: {word}" for word in sorted(wanted) if not re.search(rf"\b{word}\b", told)]
    assert missing == []


def fields_of(operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """Return the fields of the body, without those of nested models, which have their own sections."""
    for form in re.findall(r"schemas/(\w+)", str(operation.get("requestBody"))):
        yield from schemas[form].get("properties", {})


def options_of(operation: dict[str, Any]) -> Iterator[str]:
    yield from (each["name"] for each in operation.get("parameters", ()) if each["in"] == "query")


def test_every_prometheus_metric_is_in_the_how_to(application: FastAPI) -> None:
    table = (ROOT / "docs" / "how-to" / "watch-the-server.md").read_text()
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert named == {figure.name for figure in figures(application.state.lab)}


def test_every_run_status_is_in_the_http_reference() -> None:
    assert [status for status in RunStatus if f"`{status}`" not in read("http.md")] == []


def test_every_plan_status_and_header_is_in_the_reference() -> None:
    assert [status for status in PlanStatus if f"`{status}`" not in read("http.md")] == []
    assert [header for header in (TITLE, *Header) if header not in read("plan-format.md")] == []


def test_plan_example_has_the_exact_format() -> None:
    example = re.search(r"^````markdown\n(.*?)^````", read("plan-format.md"), re.MULTILINE | re.DOTALL)
    assert example
    assert read_plan(example[1]).faults == ()


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", read("settings.md"), re.MULTILINE))
    defaults = {field.name: _as_toml(field.default) for field in fields(Settings)}
    assert rows == defaults


def test_limits_of_every_number_are_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `[^`]*` \| ([\d.,]+ – [\d.,]+) \|", read("settings.md"), re.MULTILINE))
    assert rows == {name: f"{low:g} – {high:,.15g}" for name, (low, high) in BOUNDS.items()}


def _as_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_every_event_type_is_documented() -> None:
    assert set(re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", read("events.md"), re.MULTILINE)) == set(EventType)


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Return every command below this one, with the words that call it. Groups are loaded as for a user."""
    context = typer.Context(command, info_name=name)
    if not hasattr(command, "list_commands"):
        return
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        yield f"{name} {child}", found
        yield from commands(found, f"{name} {child}")


def test_every_command_and_option_is_in_the_cli_reference() -> None:
    text = read("cli.md")
    sections = dict(re.findall(r"^#+ `(labwright [^`]+)`\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL))
    missing = []
    for name, command in commands(typer.main.get_command(cli), "labwright"):
        if name not in sections:
            missing.append(name)
            continue
        options = {option for param in command.params for option in param.opts if option.startswith("--")}
        common = {"--help", "--project", "--json"}  # documented once, for all commands
        missing += [f"{name} {option}" for option in sorted(options - common) if f"`{option}" not in sections[name]]
    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_are_valid(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_FENCED.sub("", page.read_text())):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_picture_is_shown_by_a_page() -> None:
    shown = {Path(target).name for page in pages() for target in _LINK.findall(page.read_text())}
    assert sorted(path.name for path in (ROOT / "docs" / "images").iterdir() if path.name not in shown) == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes from headings."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_state_and_run_file_is_in_the_reference() -> None:
    project, run = ProjectPaths(Path("/project")), RunPaths("/run")
    named = {Path(path).name for path in (*vars(project).values(), *vars(run).values())}
    beside = {project.project.name, project.state.name, Path(run.dir).name, Path(run.control).name}
    told = {Path(name).name for name in re.findall(r"`([^`\n]+)`", read("run-folder.md"))}
    told |= {Path(name).parts[0] for name in re.findall(r"`([\w.-]+/[^`\n]*)`", read("run-folder.md"))}
    assert sorted(named - beside - told) == []


def test_every_workspace_refusal_is_in_the_reference() -> None:
    package = ROOT / "src" / "labwright"
    checks = "".join(path.read_text() for path in (package / "planning").rglob("*.py"))
    workflow = "".join(path.read_text() for path in (package / "workflow").glob("*.py"))
    codes = {
        *re.findall(r'\bFound\(\s*code="(\w+)"', checks),
        *re.findall(r'(?:Finding|LoadFault|_guarded|_fault)\(\s*"(\w+)"', workflow),
    }
    assert len(codes) > 50
    assert sorted(code for code in codes if f"`{code}`" not in read("validation.md")) == []


def test_code_walks_name_existing_functions() -> None:
    """They name `file.py: name` or `file.py: Class.method`, or only the file if the folder was named before."""
    source = ROOT / "src" / "labwright"
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "architecture").glob("*.md"))
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", text)
    assert len(named) > 30
    missing = []
    for file, name in named:
        texts = [path.read_text() for path in source.rglob(Path(file).name) if str(path).endswith(f"/{file}")]
        defined = [rf"^\s*(async )?(def|class) {part}\b|^{part}\b.*=" for part in name.split(".")]
        if not any(all(re.search(each, text, re.MULTILINE) for each in defined) for text in texts):
            missing.append(f"{file}: {name}")
    assert missing == []


def test_engineering_pages_name_only_existing_files() -> None:
    text = "\n".join(
        page.read_text() for page in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs/architecture").glob("*.md"))
    )
    named = set(re.findall(r"`([\w/.-]+\.(?:py|js))(?::[^`]*)?`", text))
    folders = [ROOT / name for name in ("src", "tests", "scripts", "benchmarks")]
    there = {str(path) for folder in folders for ending in ("py", "js") for path in folder.rglob(f"*.{ending}")}
    assert named
    assert sorted(name for name in named if not any(path.endswith(f"/{name}") for path in there)) == []
