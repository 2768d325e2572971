"""The dashboard: one page and its static files. Open without a token, so nothing of the project is in them."""

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
_FIRST_PAGES = ("app.js", "home/home_page.js", "runs/runs_page.js")  # what most visits begin with
_LOOK_SECONDS = 1.0
_PRELOADS = "<!-- preloads -->"

router = APIRouter(include_in_schema=False)


@router.get("/")
def home() -> HTMLResponse:
    """Files are asked for under a name that changes with any of them: a browser asks for each once, and after an update
    no old module meets a new one."""
    return HTMLResponse(_page(version()), headers=_FRESH)


def version() -> str:
    """Of all files together, by their times and sizes."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    facts = [f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in ((path, path.stat()) for path in files)]
    return f"v-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def _page(current: str) -> str:
    """What the first pages import is named in it, to be fetched side by side and not one import after the other."""
    links = "\n    ".join(f'<link rel="modulepreload" href="dashboard/{name}">' for name in _imported(_FIRST_PAGES))
    text = (FOLDER / "index.html").read_text().replace(_PRELOADS, links)
    return text.replace('="dashboard/', f'="dashboard/{current}/')


def _imported(names: tuple[str, ...]) -> Iterator[str]:
    """These modules and all that they import, each once."""
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
        """Many are asked for at a time, and looking at all of them for each would be slow."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._version, self._looked_at = version(), time.monotonic()
        return self._version

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A page that was opened before an update gets what there is now, and keeps none of it."""
        versioned = _VERSIONED.fullmatch(path)
        response = await super().get_response(versioned[2] if versioned else path, scope)
        is_current = versioned is not None and versioned[1] == self._current()
        response.headers.update(_FOR_GOOD if is_current else _FRESH)
        return response
