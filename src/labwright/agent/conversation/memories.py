"""List, add, change and delete memories: facts that every conversation is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.ids import MEMORY, new_id
from labwright.domain.session import Memory
from labwright.store import memories
from labwright.store.idempotency import IdempotencyKey, recall, remember


def page(
    lab: Lab, accepted: bool | None, q: str | None, limit: int, before: int | None
) -> tuple[list[Memory], int | None]:
    return memories.page(lab.db.reader(), accepted, q, limit, before)


def add(
    lab: Lab, text: str, actor: Actor, *, session_id: str | None = None, key: IdempotencyKey | None = None
) -> Memory:
    """Add a memory. A person's is accepted immediately; an agent's is a proposal."""
    at = now()
    memory = Memory(
        id=new_id(MEMORY),
        text=text,
        created_at=at,
        created_by=str(actor),
        updated_at=at,
        accepted=actor.scope is Scope.PERSON,
        session_id=session_id,
    )
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Memory.from_dict(json.loads(answer))
        memories.insert(tx, memory, str(actor))
        remember(tx, key, memory.to_dict())
    return memory


def update(lab: Lab, memory_id: str, changes: dict[str, Any], actor: Actor) -> Memory:
    with lab.db.transaction() as tx:
        changed = replace(memories.get(tx.connection, memory_id), **changes, updated_at=now())
        memories.change(tx, changed, str(actor))
    return changed


def delete(lab: Lab, memory_id: str, actor: Actor) -> None:
    with lab.db.transaction() as tx:
        memories.delete(tx, memories.get(tx.connection, memory_id), str(actor))
