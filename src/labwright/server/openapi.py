"""The description of the API: what FastAPI derives from the routes, plus tokens, scopes and references."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from labwright.domain.actor import Scope
from labwright.server.auth import OPEN_PATHS
from labwright.server.models.meta import ErrorDetail, ErrorOut
from labwright.server.requests import REFERENCES

_REFERENCE = "#/components/schemas/{model}"
_ERROR = {"content": {"application/json": {"schema": {"$ref": _REFERENCE.format(model=ErrorOut.__name__)}}}}
# Errors of every route, as references: models would be built again for each route.
ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((401, 403, 404, 409, 413, 422, 507), _ERROR)
_SCHEMES = {
    "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


SCOPES = "x-scopes"  # of an operation: the scopes of tokens that may call it
_Scopes = dict[tuple[str, str], list[str]]


def describe(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Add to `/openapi.json` which calls need a token, of which scope, and which parameters take names."""
    scopes = _scopes(routers)
    once = threading.Lock()  # models are built lazily, and two threads must not build them at once

    def schema() -> dict[str, Any]:
        with once:
            if app.openapi_schema is None:
                found = get_openapi(
                    title=app.title, version=app.version, description=app.description, routes=app.routes
                )
                app.openapi_schema = _with_security(_with_errors(found), scopes)
            return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _scopes(routers: Sequence[APIRouter]) -> _Scopes:
    found: _Scopes = {}
    for route in (route for router in routers for route in router.routes if isinstance(route, APIRoute)):
        checks = [getattr(needed.dependency, "allowed_scopes", ()) for needed in route.dependencies]
        for method in route.methods or ():
            found[method.lower(), route.path_format] = sorted(scope for scopes in checks for scope in scopes)
    return found


def _with_errors(schema: dict[str, Any]) -> dict[str, Any]:
    for model in (ErrorOut, ErrorDetail):
        described = model.model_json_schema(ref_template=_REFERENCE)
        schema["components"]["schemas"][model.__name__] = {
            name: part for name, part in described.items() if name != "$defs"
        }
    return schema


def _with_security(schema: dict[str, Any], scopes: _Scopes) -> dict[str, Any]:
    schema["components"]["securitySchemes"] = _SCHEMES
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            operation["security"] = [] if path in OPEN_PATHS else [{name: []} for name in _SCHEMES]
            operation[SCOPES] = scopes.get((method, path), [])
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in REFERENCES:
                    noun = REFERENCES[parameter["name"]]
                    parameter.setdefault("description", f"a {noun}: id, name, beginning of an id, or `last`")
    return schema


Json = dict[str, Any]
_FIELDS_SHOWN = 24
_LONGEST_SUMMARY = 110


def api_catalog(schema: Json) -> str:
    """Return the calls that an agent may make, grouped by tag, and the names of those that only a person may make."""
    groups: dict[str, list[str]] = {}
    for_people: list[str] = []
    calls = [
        (f"{method.upper()} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    for call, operation in calls:
        if Scope.AGENT in operation[SCOPES] or not operation["security"]:
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(_line(schema, call, operation))
        else:
            for_people.append(f"`{call}`")
    parts = [f"**{tag}**\n" + "\n".join(lines) for tag, lines in groups.items()]
    if for_people:
        parts.append(f"Only a person may call: {', '.join(for_people)}.")
    return "\n\n".join(parts)


def _line(schema: Json, call: str, operation: Json) -> str:
    text = " ".join(str(operation.get("description") or operation["summary"]).split())
    summary = text.split(". ")[0].rstrip(".")[:_LONGEST_SUMMARY]
    query = [part["name"] for part in operation.get("parameters", []) if part["in"] == "query"]
    parameters = f"?{'&'.join(f'{name}=' for name in query)}" if query else ""
    body = _fields(schema, operation)
    return f"- `{call}{parameters}`{f' `{{{body}}}`' if body else ''} — {summary}"


def _fields(schema: Json, operation: Json) -> str:
    """Return the fields of the body. Required fields have a star."""
    content = operation.get("requestBody", {}).get("content", {})
    form = _resolved(schema, content.get("application/json", {}).get("schema", {}))
    needed = set(form.get("required", ()))
    names = [f"{name}*" if name in needed else name for name in form.get("properties", {})]
    names.sort(key=lambda name: not name.endswith("*"))
    return ", ".join([*names[:_FIELDS_SHOWN], *(["…"] if len(names) > _FIELDS_SHOWN else [])])


def _resolved(schema: Json, form: Json) -> Json:
    for choice in form.get("anyOf", ()):
        if "$ref" in choice:
            form = choice
    if "$ref" in form:
        found: Json = schema["components"]["schemas"][form["$ref"].rsplit("/", 1)[1]]
        return found
    return form
