"""/sessions and /chat: conversations. What is said in them is a person's; agents have no way into others' sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from labwright.agent.conversation import sessions
from labwright.domain.actor import Scope
from labwright.domain.session import Mode, Session
from labwright.server.auth import PERSON, actor_of, allow, while_valid
from labwright.server.models.chat import ChatIn, PieceOut, SessionIn, SessionOut, SessionPatch, SpentOut
from labwright.server.requests import StrictJsonRoute, hub_of, idempotency_key, lab_of
from labwright.server.routes.models import models_of

router = APIRouter(route_class=StrictJsonRoute, tags=["sessions"])
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Position = Annotated[int, Query(ge=0, le=2**53)]
_STREAM = {"media_type": "text/event-stream", "headers": {"Cache-Control": "no-store"}}


@router.get("/sessions", dependencies=[allow(Scope.VIEWER)])
def list_sessions(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[SessionOut]:
    """Newest first."""
    found, following = sessions.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [_out(request, session) for session in found]


@router.post("/sessions", status_code=201, dependencies=[PERSON()])
def create_session(body: SessionIn, request: Request, key: Key = None) -> SessionOut:
    once = idempotency_key(key, request, body)
    made = sessions.create(lab_of(request), title=body.title, mode=body.mode, actor=actor_of(request), key=once)
    return _out(request, made)


@router.get("/sessions/{session_id}", dependencies=[allow(Scope.VIEWER)])
def get_session(session_id: str, request: Request) -> SessionOut:
    return _out(request, sessions.get(lab_of(request), session_id))


@router.patch("/sessions/{session_id}", dependencies=[PERSON()])
def change_session(session_id: str, body: SessionPatch, request: Request) -> SessionOut:
    """Its title, or the mode of the turns to come."""
    changes = body.model_dump(exclude_none=True)
    return _out(request, sessions.update(lab_of(request), session_id, changes, actor_of(request)))


@router.delete("/sessions/{session_id}", status_code=204, dependencies=[PERSON()])
def delete_session(session_id: str, request: Request) -> Response:
    """With all that was said; what it started stays."""
    sessions.delete(lab_of(request), session_id, actor_of(request))
    return Response(status_code=204)


@router.post("/sessions/{session_id}/stop", dependencies=[PERSON()])
def stop_session(session_id: str, request: Request) -> SessionOut:
    """At once, and what it waited for no longer wakes it. Runs that it started go on."""
    return _out(request, sessions.stop(lab_of(request), session_id, actor_of(request)))


@router.get("/sessions/{session_id}/pieces", dependencies=[allow(Scope.VIEWER)])
def list_pieces(
    session_id: str, request: Request, after: Position = 0, limit: Annotated[int, Query(ge=1, le=5000)] = 1000
) -> list[PieceOut]:
    """What was said and done, in order, from a position on; an empty answer is the end."""
    found = sessions.pieces(lab_of(request), session_id, after, limit)
    return [PieceOut(**piece.to_dict()) for piece in found]


@router.get("/sessions/{session_id}/stream", dependencies=[allow(Scope.VIEWER)], response_class=StreamingResponse)
async def stream_session(
    session_id: str,
    request: Request,
    after: Position = 0,
    last_event_id: Annotated[str | None, Header(max_length=60)] = None,
) -> StreamingResponse:
    """The same as server-sent events, going on as it happens; `id:` is the number to go on from."""
    sessions.get(lab_of(request), session_id)
    start = int(last_event_id) if last_event_id and last_event_id.isdecimal() else after
    told = while_valid(request, hub_of(request).follow_session(session_id, start))
    return StreamingResponse(told, **_STREAM)  # type: ignore[arg-type]


@router.post("/chat", dependencies=[PERSON()], response_class=StreamingResponse)
def chat(body: ChatIn, request: Request, key: Key = None) -> StreamingResponse:
    """Say something; the answer streams until the end of the turn. It goes on without you if the connection breaks."""
    lab, actor = lab_of(request), actor_of(request)
    once = idempotency_key(key, request, body)
    session_id = (
        body.session_id or sessions.create(lab, title=None, mode=body.mode or Mode.AGENT, actor=actor, key=once).id
    )
    said = sessions.say(lab, session_id, body.message, body.mode, actor, once and once.again("say"))

    async def turn() -> AsyncIterator[bytes]:
        async for block in hub_of(request).follow_session(session_id, said.last_seq - 1, turn=said.turn):
            yield block

    return StreamingResponse(turn(), **_STREAM)  # type: ignore[arg-type]


def _out(request: Request, session: Session) -> SessionOut:
    return SessionOut(**session.to_dict(), spent=SpentOut(**models_of(request).spent(session.id)))
