"""The dashboard: one page and its static files. They need no token and contain no project data."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parents[1] / "dashboard"
_FRESH = {"Cache-Control": "no-cache"}
_FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
_VERSIONED = re.compile(r"(v-[0-9a-f]{16})/(.*)", re.DOTALL)
_IMPORT = re.compile(r'^(?:import|export) [^;]*?from "(\.{1,2}/[^"]+)"', re.MULTILINE)
_FIRST_PAGES = ("app.js", "home/home_page.js", "runs/runs_page.js")  # the first pages of most visits
_LOOK_SECONDS = 1.0
_PRELOADS = "<!-- preloads -->"

router = APIRouter(include_in_schema=False)


@router.get("/")
def home() -> HTMLResponse:
    """Return the page. The path of its files changes with every version, so browsers can cache them forever."""
    return HTMLResponse(_page(version()), headers=_FRESH)


def version() -> str:
    """Return a version of all files, from their times and sizes."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    facts = [f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in ((path, path.stat()) for path in files)]
    return f"v-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def _page(current: str) -> str:
    """Return the page. It lists the modules of the first pages, so that the browser fetches them in parallel."""
    links = "\n    ".join(f'<link rel="modulepreload" href="dashboard/{name}">' for name in _imported(_FIRST_PAGES))
    text = (FOLDER / "index.html").read_text().replace(_PRELOADS, links)
    return text.replace('="dashboard/', f'="dashboard/{current}/')


def _imported(names: tuple[str, ...]) -> Iterator[str]:
    """Return these modules and everything that they import, each once."""
    found, ahead = set(names), list(names)
    while ahead:
        name = ahead.pop(0)
        yield name
        module = FOLDER / name
        for wanted in _IMPORT.findall(module.read_text()):
            path = str((module.parent / wanted).resolve().relative_to(FOLDER))
            if path not in found:
                found.add(path)
                ahead.append(path)


class DashboardFiles(StaticFiles):
    def __init__(self) -> None:
        super().__init__(directory=FOLDER)
        self._version, self._looked_at = "", -_LOOK_SECONDS

    def _current(self) -> str:
        """Return the version, cached for a moment: a page requests many files at once."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._version, self._looked_at = version(), time.monotonic()
        return self._version

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Serve a file. A page from before an update gets the current file, which it must not cache."""
        versioned = _VERSIONED.fullmatch(path)
        response = await super().get_response(versioned[2] if versioned else path, scope)
        is_current = versioned is not None and versioned[1] == self._current()
        response.headers.update(_FOR_GOOD if is_current else _FRESH)
        return response
