"""/tools: what assistants outside of conversations can do. `labwright mcp` serves these tools."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Request

from labwright.agent.wild.verbs import RULES
from labwright.server.auth import READERS, WRITERS, actor_of
from labwright.server.requests import StrictJsonRoute, hub_of, lab_of

router = APIRouter(prefix="/tools", route_class=StrictJsonRoute, tags=["tools"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


@router.get("", dependencies=[READERS()])
def list_tools(request: Request) -> list[dict[str, Any]]:
    """List the tools that this token may call, with their JSON schemas."""
    from labwright.agent.tools import outside  # here, because most servers never need the tools

    return outside.described(actor_of(request).scope)


@router.post("/{name}", dependencies=[WRITERS()])
async def call_tool(
    name: str, request: Request, arguments: Annotated[dict[str, Any], Body()], key: Key = None
) -> dict[str, Any]:
    """Call a tool. A wait returns at the latest after its `max_seconds`."""
    from labwright.agent.tools import outside

    return await outside.call(
        lab_of(request),
        name,
        arguments,
        actor_of(request),
        proposer=request.app.state.models.proposer or RULES,
        key=key or "",
        closing=lambda: hub_of(request).closing,
    )
