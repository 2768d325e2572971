"""The dashboard's files: kept for good under the name that they have now, and under no other; in layers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from labwright.server.routes import dashboard


def cache_of(path: str) -> str:
    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    answer = asyncio.run(dashboard.DashboardFiles().get_response(path, scope))
    assert answer.status_code == 200
    return answer.headers["cache-control"]


def test_the_page_names_its_files_by_what_is_in_them_and_all_of_them_are_there() -> None:
    text = bytes(dashboard.home().body).decode()
    names = re.findall(r'="dashboard/([^/"]+)/([^"]+)"', text)
    assert {version for version, _ in names} == {dashboard.version()}
    assert not [name for _, name in names if not (dashboard.FOLDER / name).is_file()]
    assert {"app.js", "store.js", "vendor/preact.js", "pages/runs.js"} <= {name for _, name in names}


@pytest.mark.parametrize("name", ["app.js", "v-0123456789abcdef/app.js"])
def test_what_has_another_name_than_now_is_asked_for_anew(name: str) -> None:
    assert cache_of(name) == "no-cache"


def test_what_has_the_name_of_now_is_kept_for_good() -> None:
    assert "immutable" in cache_of(f"{dashboard.version()}/app.js")


def test_imports_point_down_from_pages_to_parts_to_what_lies_beside_them() -> None:
    """The way in, `app.js`, is above all."""
    files = [path for path in dashboard.FOLDER.rglob("*.js") if "vendor" not in path.parts and path.name != "app.js"]
    wrong = [
        f"{file.name}: {name}" for file in files for name in imports_of(file) if level(file.parent / name) > level(file)
    ]
    assert len(files) > 100
    assert wrong == []


def imports_of(file: Path) -> list[str]:
    return re.findall(r'^import .*from "(\.[^"]+)";', file.read_text(), re.MULTILINE)


def level(file: Path) -> int:
    return {"pages": 2, "parts": 1}.get(file.resolve().parent.name, 0)
