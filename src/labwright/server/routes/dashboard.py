"""The dashboard: one page and its static files. Open without a token, so nothing of the project is in them."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parents[1] / "dashboard"
# Asked for anew each time, answered with 304 as a rule: after an update no old module meets a new one.
_FRESH = {"Cache-Control": "no-cache"}

router = APIRouter(include_in_schema=False)


@router.get("/")
def home() -> FileResponse:
    return FileResponse(FOLDER / "index.html", headers=_FRESH)


class DashboardFiles(StaticFiles):
    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_FRESH)
        return response
