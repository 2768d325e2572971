"""Idempotency keys: a creating call sent twice with one key is executed once and gets the same result twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from labwright.domain.clock import now
from labwright.domain.errors import Conflict, NotFound
from labwright.store.database import Transaction
from labwright.store.statements import REST

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    key: str
    request: str  # the call, e.g. "POST /runs"
    digest: str  # of the body: reusing a key for another request is an error

    @classmethod
    def of(cls, key: str, request: str, body: bytes) -> IdempotencyKey:
        return cls(key, request, hashlib.sha256(body).hexdigest())

    def again(self, step: str) -> IdempotencyKey:
        """Return a key for a second object that the same call creates."""
        return replace(self, request=f"{self.request} {step}")


def recall(tx: Transaction, key: IdempotencyKey | None) -> str | None:
    """Return the first result as JSON if this request was executed before, or None."""
    return None if key is None else first_answer(tx.connection, key)


def first_answer(connection: sqlite3.Connection, key: IdempotencyKey) -> str | None:
    row = connection.execute(REST["remembered_answer"], {"key": key.key, "request": key.request}).fetchone()
    if row is None:
        return None
    refuse_other(key, row[0])
    return str(row[1])


def made_before(
    connection: sqlite3.Connection,
    key: IdempotencyKey | None,
    own_id: str | None,
    *,
    read: Callable[[dict[str, Any]], Made],
    get: Callable[[sqlite3.Connection, str], Made],
) -> Made | None:
    """Return what this request created the first time, found by its key or by an id that it contains.

    Such an id outlives the remembered answers and a rebuild of the database.
    """
    if key is not None and (answer := first_answer(connection, key)):
        return read(json.loads(answer))
    with contextlib.suppress(NotFound):
        return get(connection, own_id) if own_id else None
    return None


def refuse_other(key: IdempotencyKey, digest: str) -> None:
    """Raise Conflict if the key was used with another body. `digest` is that of the earlier body."""
    if digest != key.digest:
        raise Conflict(
            "This Idempotency-Key was used for a different request.", hint="Use a new key for a new request."
        )


def remember(tx: Transaction, key: IdempotencyKey | None, answer: object) -> None:
    if key is not None:
        tx.execute(
            REST["remember_answer"],
            key=key.key,
            request=key.request,
            digest=key.digest,
            answer=json.dumps(answer, ensure_ascii=False),
            time=now(),
        )


def forget_before(tx: Transaction, when: str) -> None:
    tx.execute(REST["forget_answers"], time=when)
