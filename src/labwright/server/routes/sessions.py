"""/sessions, /chat, /approvals, /suggestions, /memories: conversations and the questions that they raise.

Only a person takes part in a conversation; an agent cannot read the sessions of others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from labwright.agent.conversation import approvals, memories, sessions, suggestions
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid
from labwright.domain.session import ApprovalRequest, ApprovalStatus, Memory, Mode, Session, SuggestionStatus
from labwright.server.auth import PERSON, READERS, WRITERS, actor_of, allow, while_valid
from labwright.server.models.chat import (
    ApprovalAnswer,
    ChatIn,
    MemoryIn,
    MemoryPatch,
    PieceOut,
    SessionIn,
    SessionOut,
    SessionPatch,
    SpentOut,
    SuggestionAccept,
    SuggestionOut,
)
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
    """List sessions, newest first."""
    found, following = sessions.page(lab_of(request), limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [_out(request, session) for session in found]


@router.post("/sessions", status_code=201, dependencies=[PERSON()])
def create_session(body: SessionIn, request: Request, key: Key = None) -> SessionOut:
    """Create a session."""
    once = idempotency_key(key, request, body)
    made = sessions.create(lab_of(request), title=body.title, mode=body.mode, actor=actor_of(request), key=once)
    return _out(request, made)


@router.get("/sessions/{session_id}", dependencies=[allow(Scope.VIEWER)])
def get_session(session_id: str, request: Request) -> SessionOut:
    """Return one session."""
    return _out(request, sessions.get(lab_of(request), session_id))


@router.patch("/sessions/{session_id}", dependencies=[PERSON()])
def change_session(session_id: str, body: SessionPatch, request: Request) -> SessionOut:
    """Change the title, or the mode of the next turns."""
    changes = body.model_dump(exclude_none=True)
    return _out(request, sessions.update(lab_of(request), session_id, changes, actor_of(request)))


@router.delete("/sessions/{session_id}", status_code=204, dependencies=[PERSON()])
def delete_session(session_id: str, request: Request) -> Response:
    """Delete a session with its messages. Runs that it started stay."""
    sessions.delete(lab_of(request), session_id, actor_of(request))
    return Response(status_code=204)


@router.post("/sessions/{session_id}/stop", dependencies=[PERSON()])
def stop_session(session_id: str, request: Request) -> SessionOut:
    """Stop the turn immediately and cancel its waits. Runs that it started continue."""
    return _out(request, sessions.stop(lab_of(request), session_id, actor_of(request)))


@router.get("/sessions/{session_id}/pieces", dependencies=[allow(Scope.VIEWER)])
def list_pieces(
    session_id: str, request: Request, after: Position = 0, limit: Annotated[int, Query(ge=1, le=5000)] = 1000
) -> list[PieceOut]:
    """List messages and tool calls in order, after a position. An empty list is the end."""
    found = sessions.pieces(lab_of(request), session_id, after, limit)
    return [PieceOut(**piece.to_dict()) for piece in found]


@router.get("/sessions/{session_id}/stream", dependencies=[allow(Scope.VIEWER)], response_class=StreamingResponse)
async def stream_session(
    session_id: str,
    request: Request,
    after: Position = 0,
    last_event_id: Annotated[str | None, Header(max_length=60)] = None,
) -> StreamingResponse:
    """Stream messages and tool calls as server-sent events. `id:` is the position to continue from."""
    sessions.get(lab_of(request), session_id)
    start = int(last_event_id) if last_event_id and last_event_id.isdecimal() else after
    frames = while_valid(request, hub_of(request).follow_session(session_id, start))
    return StreamingResponse(frames, **_STREAM)  # type: ignore[arg-type]


@router.post("/chat", dependencies=[PERSON()], response_class=StreamingResponse)
def chat(body: ChatIn, request: Request, key: Key = None) -> StreamingResponse:
    """Send a message and stream the turn until its end. The turn continues if the connection breaks."""
    lab, actor = lab_of(request), actor_of(request)
    once = idempotency_key(key, request, body)
    session_id = (
        body.session_id or sessions.create(lab, title=None, mode=body.mode or Mode.AGENT, actor=actor, key=once).id
    )
    message = sessions.say(lab, session_id, body.message, body.mode, actor, once and once.again("say"))

    async def turn() -> AsyncIterator[bytes]:
        async for block in hub_of(request).follow_session(session_id, message.last_seq - 1, turn=message.turn):
            yield block

    return StreamingResponse(turn(), **_STREAM)  # type: ignore[arg-type]


def _out(request: Request, session: Session) -> SessionOut:
    return SessionOut(**session.to_dict(), spent=SpentOut(**models_of(request).spent(session.id)))


@router.get("/approvals", response_model=list[ApprovalRequest], dependencies=[allow(Scope.VIEWER)])
def list_approvals(
    request: Request,
    response: Response,
    status: ApprovalStatus | None = None,
    session_id: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """List approvals, newest first."""
    found, following = approvals.page(lab_of(request), status, session_id, limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [approval.to_dict() for approval in found]


@router.post("/approvals/{approval_id}/respond", response_model=ApprovalRequest, dependencies=[allow(Scope.ANSWER)])
def respond_to_approval(approval_id: str, body: ApprovalAnswer, request: Request) -> dict[str, Any]:
    """Answer a request for approval. The turn continues, and an approved action is done in your name.

    A token of scope `answer`, which a channel receives with the request, answers that request once.
    """
    actor = actor_of(request)
    if actor.scope is Scope.ANSWER:  # the channel answers for the person who configured it
        actor = Actor(Scope.PERSON, "webhook")
    answered = approvals.respond(lab_of(request), approval_id, approved=body.approved, reason=body.reason, actor=actor)
    return answered.to_dict()


@router.get("/suggestions", dependencies=[allow(Scope.VIEWER)])
def list_suggestions(
    request: Request, session_id: str | None = None, status: SuggestionStatus | None = None
) -> list[SuggestionOut]:
    """List suggestions, newest first."""
    return [SuggestionOut(**found) for found in suggestions.page(lab_of(request), session_id, status)]


@router.post("/suggestions/{suggestion_id}/accept", dependencies=[PERSON()])
def accept_suggestion(suggestion_id: str, body: SuggestionAccept, request: Request) -> SuggestionOut:
    """Accept a suggestion into a skill of the project, or save its template in the folder `templates`."""
    lab, actor = lab_of(request), actor_of(request)
    if body.into == "skill":
        name = body.name or suggestions.SKILL
        return SuggestionOut(**suggestions.accept_into_skill(lab, suggestion_id, name, actor))
    if body.name is None:
        raise Invalid("A template needs a name.", hint="Send a file name, such as lr.yaml.", field=("name",))
    return SuggestionOut(**suggestions.accept_into_template(lab, suggestion_id, body.name, actor))


@router.post("/suggestions/{suggestion_id}/dismiss", dependencies=[PERSON()])
def dismiss_suggestion(suggestion_id: str, request: Request) -> SuggestionOut:
    """Dismiss a suggestion. It is no longer listed as open."""
    return SuggestionOut(**suggestions.dismiss(lab_of(request), suggestion_id, actor_of(request)))


@router.get("/memories", response_model=list[Memory], dependencies=[READERS()])
def list_memories(
    request: Request,
    response: Response,
    accepted: bool | None = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """List memories, newest first. An agent sees only accepted ones."""
    if actor_of(request).scope is Scope.AGENT:
        accepted = True
    found, following = memories.page(lab_of(request), accepted, q, limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [memory.to_dict() for memory in found]


@router.post("/memories", response_model=Memory, status_code=201, dependencies=[WRITERS()])
def add_memory(
    body: MemoryIn,
    request: Request,
    key: Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    """Add a memory. An agent's memory is a proposal until a person accepts it."""
    once = idempotency_key(key, request, body)
    return memories.add(lab_of(request), body.text, actor_of(request), key=once).to_dict()


@router.patch("/memories/{memory_id}", response_model=Memory, dependencies=[PERSON()])
def change_memory(memory_id: str, body: MemoryPatch, request: Request) -> dict[str, Any]:
    changes = body.model_dump(exclude_none=True)
    return memories.update(lab_of(request), memory_id, changes, actor_of(request)).to_dict()


@router.delete("/memories/{memory_id}", status_code=204, dependencies=[PERSON()])
def delete_memory(memory_id: str, request: Request) -> Response:
    memories.delete(lab_of(request), memory_id, actor_of(request))
    return Response(status_code=204)
