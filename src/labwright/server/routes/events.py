"""/events: the stored stream of events, in pages or live."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid
from labwright.domain.event import OF_CONVERSATIONS, EventType
from labwright.server.auth import READERS, actor_of, while_valid
from labwright.server.models.meta import EventOut
from labwright.server.requests import ReferenceRoute, hub_of, lab_of
from labwright.server.stream import StreamFilter, event_dict, frame
from labwright.store import events

router = APIRouter(prefix="/events", route_class=ReferenceRoute, tags=["events"])
_SEE_CONVERSATIONS = frozenset({Scope.PERSON, Scope.VIEWER})
Types = Annotated[str | None, Query(description="one or more types, comma-separated")]


@router.get("", response_model=list[EventOut], dependencies=[READERS()])
def list_events(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    types: Types = None,
    run_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> list[dict[str, Any]]:
    """List events in order, after a position. An empty list is the end."""
    lab = lab_of(request)
    found = events.after(lab.db.reader(), after, limit, run_id, _visible_types(types, actor_of(request)))
    return [event_dict(lab.db.epoch, event) for event in found]


@router.get("/stream", dependencies=[READERS()], response_class=StreamingResponse)
async def stream_events(
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    types: Types = None,
    run_id: str | None = None,
    topics: Annotated[str | None, Query(pattern="^(events|hints)(,(events|hints))?$")] = None,
    last_event_id: Annotated[str | None, Header(max_length=60)] = None,
) -> StreamingResponse:
    """Stream server-sent events, from now or after a position. `reset` means that the database was restored."""
    hub, lab = hub_of(request), lab_of(request)
    actor = actor_of(request)
    chosen = StreamFilter(topics, _visible_types(types, actor), run_id, conversations=actor.scope in _SEE_CONVERSATIONS)
    newest = events.last_seq(lab.db.reader())
    epoch, _, position = (last_event_id or "").partition(":")
    known = position.isdecimal() and epoch == lab.db.epoch and int(position) <= newest
    start = int(position) if known else newest if after is None else min(after, newest)
    hello = frame("hello" if known or not last_event_id else "reset", {"epoch": lab.db.epoch, "seq": start})

    async def body() -> AsyncGenerator[bytes, None]:
        yield hello
        async for block in hub.follow(start, chosen):
            yield block

    frames = while_valid(request, body())
    return StreamingResponse(frames, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _visible_types(types: str | None, actor: Actor) -> frozenset[str] | None:
    """Return the requested types that the actor may see, or None for all. Agents do not see conversations."""
    names = frozenset(types.split(",")) if types else None
    for name in names or ():
        if name not in set(EventType):
            raise Invalid(f"{name!r} is not an event type.", hint=f"Choose: {', '.join(EventType)}.")
    if actor.scope in _SEE_CONVERSATIONS:
        return names
    return (names or frozenset(EventType)) - OF_CONVERSATIONS
