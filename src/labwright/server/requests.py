"""What every route does with a request: find the lab, resolve references, read the body strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid
from labwright.domain.ids import PLAN, RUN, SWEEP, is_id
from labwright.server.stream import Hub
from labwright.services.references import full_id
from labwright.store.idempotency import IdempotencyKey

# Parameters and fields that name runs, sweeps or plans. `_LISTS` are separated by commas in a query.
REFERENCES = {"run_id": RUN, "sweep_id": SWEEP, "plan_id": PLAN}
_IN_QUERY = {**REFERENCES, "run_ids": RUN, "ids": RUN}
_IN_BODY = {"sweep_id": SWEEP, "parent_run_id": RUN, "after": RUN}
_LISTS = frozenset({"run_ids", "ids"})
_PERMISSIONS = "labwright.permissions"  # in the scope of a request: the checks of its route


def lab_of(request: Request) -> Lab:
    lab: Lab = request.app.state.lab
    return lab


def hub_of(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


def idempotency_key(key: str | None, request: Request, body: BaseModel) -> IdempotencyKey | None:
    """Return the key with a digest of the request as it was sent: `last` may mean another run when it is repeated."""
    if key is None:
        return None
    sent = getattr(request.state, "sent", None) or body.model_dump_json().encode()
    return IdempotencyKey.of(key, f"{request.method} {request.url.path}", sent)


class ReferenceRoute(APIRoute):
    """A route whose path and query may name runs, sweeps and plans by name, beginning of an id, or `last`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        permissions = [each.dependency for each in self.dependencies if hasattr(each.dependency, "allowed_scopes")]

        async def resolved(request: Request) -> Response:
            request.scope[_PERMISSIONS] = permissions
            request.scope["path_params"] = await _resolved(request, request.scope["path_params"], REFERENCES)
            if query := request.scope["query_string"]:
                request.scope["query_string"] = await _resolved_query(request, query)
            return await handle(request)

        return resolved


class StrictJsonRoute(ReferenceRoute):
    """Also resolves references in the body, and refuses a body that has a field twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = strict_loads(await self.body())
        found = await _resolved(self, body, _IN_BODY) if isinstance(body, dict) else body
        if found is not body:
            self.state.sent = json.dumps(body, sort_keys=True).encode()
        return found


def strict_loads(text: bytes) -> Any:
    return json.loads(text, object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Invalid("The JSON has the same field twice.", hint="Send each field once.")
    return fields


def has_full_ids(path: dict[str, Any], body: Any) -> bool:
    """Whether the request names everything by its full id, so that nothing has to be resolved."""
    in_body = _open_references(body, _IN_BODY) if isinstance(body, dict) else []
    return not in_body and not _open_references(path, REFERENCES)


def _open_references(values: dict[str, Any], kinds: dict[str, str]) -> list[tuple[str, str]]:
    """Return the references that are not full ids, each with its kind."""
    found = [(kind, value) for name, kind in kinds.items() if (value := values.get(name))]
    each = [(kind, item) for kind, value in found for item in (value if isinstance(value, list) else [value])]
    # Anything else, such as text with unpaired surrogates, is left to the validation of the field.
    texts = [(kind, item) for kind, item in each if isinstance(item, str) and item and item.isprintable()]
    return [(kind, item) for kind, item in texts if not is_id(item, kind)]


async def _resolved(request: Request, values: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """Return the values with full ids; the same object if it has nothing to resolve."""
    references = _open_references(values, kinds)
    if not references:
        return values
    for check in request.scope[_PERMISSIONS]:  # before the response reveals what exists
        await check(request)
    lab = lab_of(request)
    ids = await run_in_threadpool(lambda: {key: full_id(lab, *key) for key in references})

    def swap(kind: str, value: Any) -> Any:
        return ids.get((kind, value), value) if isinstance(value, str) else value

    return {
        name: value
        if name not in kinds
        else [swap(kinds[name], item) for item in value]
        if isinstance(value, list)
        else swap(kinds[name], value)
        for name, value in values.items()
    }


async def _resolved_query(request: Request, query: bytes) -> bytes:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    found = {}
    for name, text in pairs:
        if name in _IN_QUERY:
            found[name] = [part.strip() for part in text.split(",")] if name in _LISTS else text
    resolved = await _resolved(request, found, _IN_QUERY)
    if resolved is found:
        return query
    texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in resolved.items()}
    return urlencode([(name, texts.get(name, text)) for name, text in pairs]).encode()
