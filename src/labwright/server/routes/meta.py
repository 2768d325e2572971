"""/health and /docs: open to anyone who reaches the port, so they tell nothing of the project."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, RedirectResponse

from labwright.server.models import HealthOut
from labwright.version import __version__

router = APIRouter(tags=["server"])


@router.get("/health")
def health() -> HealthOut:
    return HealthOut(status="ok", version=__version__)


@router.get("/", include_in_schema=False)
def home() -> RedirectResponse:
    return RedirectResponse("docs")


@router.get("/docs", include_in_schema=False)
def docs() -> HTMLResponse:
    """Swagger UI from our own files: works without internet."""
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Labwright API",
        swagger_js_url="assets/swagger-ui-bundle.js",
        swagger_css_url="assets/swagger-ui.css",
        swagger_favicon_url="assets/favicon.svg",
    )
