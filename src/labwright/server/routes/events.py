"""/events: the stored stream, by position or live."""

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
_HEAR_CONVERSATIONS = frozenset({Scope.PERSON, Scope.VIEWER})
Types = Annotated[str | None, Query(description="only these, comma-separated")]


@router.get("", response_model=list[EventOut], dependencies=[READERS()])
def list_events(
    request: Request,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    types: Types = None,
    run_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> list[dict[str, Any]]:
    """In order, from a position on; an empty answer is the end."""
    lab = lab_of(request)
    found = events.after(lab.db.reader(), after, limit, run_id, _heard(types, actor_of(request)))
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
    """Server-sent events. Without `after` or `Last-Event-ID` it begins now; `reset` tells of a restored database."""
    hub, lab = hub_of(request), lab_of(request)
    actor = actor_of(request)
    wanted = StreamFilter(topics, _heard(types, actor), run_id, conversations=actor.scope in _HEAR_CONVERSATIONS)
    newest = events.last_seq(lab.db.reader())
    epoch, _, position = (last_event_id or "").partition(":")
    known = position.isdecimal() and epoch == lab.db.epoch and int(position) <= newest
    start = int(position) if known else newest if after is None else min(after, newest)
    hello = frame("hello" if known or not last_event_id else "reset", {"epoch": lab.db.epoch, "seq": start})

    async def body() -> AsyncGenerator[bytes, None]:
        yield hello
        async for block in hub.follow(start, wanted):
            yield block

    told = while_valid(request, body())
    return StreamingResponse(told, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _heard(types: str | None, actor: Actor) -> frozenset[str] | None:
    """The types that were asked for and may be heard, none for all: what is said to agents is not for other agents."""
    names = frozenset(types.split(",")) if types else None
    for name in names or ():
        if name not in set(EventType):
            raise Invalid(f"{name!r} is not a type of event.", hint=f"Choose: {', '.join(EventType)}.")
    if actor.scope in _HEAR_CONVERSATIONS:
        return names
    return (names or frozenset(EventType)) - OF_CONVERSATIONS
