"""The dashboard's files: cached under names that change with their content, and layered by folder."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest

from labwright.server.routes import dashboard


def cache_of(path: str) -> str:
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    answer = asyncio.run(dashboard.DashboardFiles().get_response(path, scope))
    assert answer.status_code == 200
    return answer.headers["cache-control"]


def test_page_names_its_files_by_content_and_all_exist() -> None:
    text = bytes(dashboard.home().body).decode()
    names = re.findall(r'="dashboard/([^/"]+)/([^"]+)"', text)
    assert {version for version, _ in names} == {dashboard.version()}
    assert not [name for _, name in names if not (dashboard.FOLDER / name).is_file()]
    assert {"app.js", "data/store.js", "vendor/preact.js", "runs/runs_page.js"} <= {name for _, name in names}


@pytest.mark.parametrize("name", ["app.js", "v-0123456789abcdef/app.js"])
def test_other_names_are_not_cached(name: str) -> None:
    assert cache_of(name) == "no-cache"


def test_current_names_are_cached_forever() -> None:
    assert "immutable" in cache_of(f"{dashboard.version()}/app.js")


# Lowest first. A folder that is not listed is a page.
SHARED = ("", "data", "ui", "charts", "work")
ABOVE_PAGES = ("shell",)


def test_imports_point_down() -> None:
    """A page uses its own folder and the shared ones, never another page. `app.js` is above everything."""
    wrong = [
        f"{name_of(file)} imports {name_of(imported)}"
        for file in scripts()
        if file.name != "app.js"
        for imported in imports_of(file)
        if not may_import(folder_of(file), folder_of(imported))
    ]
    assert wrong == []


def test_folders_stay_small() -> None:
    counts = Counter(folder_of(file) for file in scripts())
    assert [folder for folder, count in counts.items() if count > 15] == []


def may_import(folder: str, imported: str) -> bool:
    return folder == imported or level(imported) < level(folder)


def level(folder: str) -> int:
    if folder in SHARED:
        return SHARED.index(folder)
    return len(SHARED) + 1 if folder in ABOVE_PAGES else len(SHARED)


def scripts() -> list[Path]:
    return [path for path in dashboard.FOLDER.rglob("*.js") if folder_of(path) != "vendor"]


def imports_of(file: Path) -> list[Path]:
    """Return the dashboard modules that this one imports, statically or dynamically."""
    names = re.findall(r'(?:\bfrom |\bimport\(|^import )"(\.[^"]+)"', file.read_text(), re.MULTILINE)
    paths = [(file.parent / name).resolve() for name in names]
    return [path for path in paths if folder_of(path) != "vendor"]


def folder_of(file: Path) -> str:
    parts = file.relative_to(dashboard.FOLDER).parts
    return parts[0] if len(parts) > 1 else ""


def name_of(file: Path) -> str:
    return str(file.relative_to(dashboard.FOLDER))
