"""The `{{api_catalog}}` of the skills: what an agent may call, a line each, from the live description of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labwright.domain.actor import Scope
from labwright.server.openapi import SCOPES

Json = dict[str, Any]
_FIELDS_SHOWN = 24
_LONGEST_SUMMARY = 110


def api_catalog(schema: Json) -> str:
    """Grouped by what the calls are about; those that are a person's alone are named once, so that nobody tries."""
    groups: dict[str, list[str]] = {}
    for_people: list[str] = []
    for call, operation in _operations(schema):
        if Scope.AGENT in operation[SCOPES] or not operation["security"]:
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(_line(schema, call, operation))
        else:
            for_people.append(f"`{call}`")
    parts = [f"**{tag}**\n" + "\n".join(lines) for tag, lines in groups.items()]
    if for_people:
        parts.append(f"A person's alone, refused to you: {', '.join(for_people)}.")
    return "\n\n".join(parts)


def _operations(schema: Json) -> Iterator[tuple[str, Json]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def _line(schema: Json, call: str, operation: Json) -> str:
    words = " ".join(str(operation.get("description") or operation["summary"]).split())
    summary = words.split(". ")[0].rstrip(".")[:_LONGEST_SUMMARY]
    query = [part["name"] for part in operation.get("parameters", []) if part["in"] == "query"]
    asked = f"?{'&'.join(f'{name}=' for name in query)}" if query else ""
    body = _fields(schema, operation)
    return f"- `{call}{asked}`{f' `{{{body}}}`' if body else ''} — {summary}"


def _fields(schema: Json, operation: Json) -> str:
    """Names of what the body holds; those that must be there have a star."""
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
