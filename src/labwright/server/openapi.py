"""The description of the API: what FastAPI derives from the routes, plus how to show a token."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from labwright.server.auth import OPEN_PATHS

_SCHEMES = {
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def describe(app: FastAPI) -> None:
    """Make `/openapi.json` say which calls need the token, so that tools (and `/docs`) can send it."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_security(
                get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _with_security(schema: dict[str, Any]) -> dict[str, Any]:
    schema["components"]["securitySchemes"] = _SCHEMES
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            operation["security"] = [] if path in OPEN_PATHS else [{name: []} for name in _SCHEMES]
    return schema
