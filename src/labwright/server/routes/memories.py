"""/memories: what is told to every conversation. An agent may propose; a person accepts, changes and deletes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from labwright.agent.conversation import memories
from labwright.domain.actor import Scope
from labwright.domain.session import Memory
from labwright.server.auth import PERSON, READERS, WRITERS, actor_of
from labwright.server.models.chat import MemoryIn, MemoryPatch
from labwright.server.requests import StrictJsonRoute, idempotency_key, lab_of

router = APIRouter(prefix="/memories", route_class=StrictJsonRoute, tags=["sessions"])


@router.get("", response_model=list[Memory], dependencies=[READERS()])
def list_memories(
    request: Request,
    response: Response,
    accepted: bool | None = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**62)] = None,
) -> list[dict[str, Any]]:
    """Newest first. An agent sees what was accepted, and not what other agents propose."""
    if actor_of(request).scope is Scope.AGENT:
        accepted = True
    found, following = memories.page(lab_of(request), accepted, q, limit, cursor)
    if following is not None:
        response.headers["X-Next-Cursor"] = str(following)
    return [memory.to_dict() for memory in found]


@router.post("", response_model=Memory, status_code=201, dependencies=[WRITERS()])
def add_memory(
    body: MemoryIn,
    request: Request,
    key: Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    """A person's is accepted at once, an agent's is a proposal."""
    once = idempotency_key(key, request, body)
    return memories.add(lab_of(request), body.text, actor_of(request), key=once).to_dict()


@router.patch("/{memory_id}", response_model=Memory, dependencies=[PERSON()])
def change_memory(memory_id: str, body: MemoryPatch, request: Request) -> dict[str, Any]:
    changes = body.model_dump(exclude_none=True)
    return memories.update(lab_of(request), memory_id, changes, actor_of(request)).to_dict()


@router.delete("/{memory_id}", status_code=204, dependencies=[PERSON()])
def delete_memory(memory_id: str, request: Request) -> Response:
    memories.delete(lab_of(request), memory_id, actor_of(request))
    return Response(status_code=204)
