"""A creating call sent twice with one key is carried out once and answered twice."""

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
    request: str  # which call, e.g. "POST /runs"
    digest: str  # of the body: the same key for something else is a mistake, and is said

    @classmethod
    def of(cls, key: str, request: str, body: bytes) -> IdempotencyKey:
        return cls(key, request, hashlib.sha256(body).hexdigest())

    def again(self, step: str) -> IdempotencyKey:
        """For a second thing that the same call makes."""
        return replace(self, request=f"{self.request} {step}")


def recall(tx: Transaction, key: IdempotencyKey | None) -> str | None:
    """The first answer as JSON, if this very request was carried out before."""
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
    """What this very request made when it came first: by its key, or by an id that it brings itself.

    Such an id outlives the remembered answers and a rebuild of the database.
    """
    if key is not None and (answer := first_answer(connection, key)):
        return read(json.loads(answer))
    with contextlib.suppress(NotFound):
        return get(connection, own_id) if own_id else None
    return None


def refuse_other(key: IdempotencyKey, digest: str) -> None:
    """`digest`: of what was sent with this key before."""
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
