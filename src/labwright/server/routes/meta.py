"""/health and /docs: open to anyone who reaches the port, so they tell nothing of the project."""

from __future__ import annotations

import base64
import hashlib
import re

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

from labwright.server.models.meta import HealthOut
from labwright.server.requests import lab_of
from labwright.version import __version__

router = APIRouter(tags=["server"])
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


@router.get("/health")
def health(request: Request) -> HealthOut:
    """`degraded`: it answers, but cannot start runs at the moment; `labwright doctor` says why."""
    lab = lab_of(request)
    return HealthOut(status="ok" if lab.is_healthy else "degraded", version=__version__)


@router.get("/docs", include_in_schema=False)
def docs() -> HTMLResponse:
    """Swagger UI from our own files: works without internet."""
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="Labwright API",
        swagger_js_url="assets/swagger-ui-bundle.js",
        swagger_css_url="assets/swagger-ui.css",
        swagger_favicon_url="assets/favicon.svg",
    )
    page.headers["Content-Security-Policy"] = _docs_policy(bytes(page.body))
    return page


def _docs_policy(page: bytes) -> str:
    """Swagger UI starts by one inline script, allowed by its hash, and styles its elements inline."""
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(page)]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in hashes)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
