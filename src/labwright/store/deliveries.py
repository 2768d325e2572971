"""Notifications due for each channel and their results.

They are stored together with the position in the events, so none is sent twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labwright.domain.clock import now
from labwright.store.database import Transaction
from labwright.store.statements import load_statements

DELIVERIES = load_statements("deliveries")
KEPT = 1000  # per channel


class DeliveryStatus(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    id: int
    channel: str
    message: dict[str, Any]
    status: DeliveryStatus
    attempts: int
    error: str
    created_at: str
    due: float
    ended_at: str | None


def position(connection: sqlite3.Connection, channel: str, epoch: str) -> int | None:
    """Return the position, or None if the channel is new or has read another history."""
    row = connection.execute(DELIVERIES["position"], {"name": channel, "epoch": epoch}).fetchone()
    return int(row[0]) if row else None


def set_position(tx: Transaction, channel: str, epoch: str, seq: int) -> None:
    tx.execute(DELIVERIES["set_position"], name=channel, epoch=epoch, position=seq)


def forget_others(tx: Transaction, channels: Collection[str]) -> None:
    """Forget removed channels. A channel that is added again does not get older events."""
    names = json.dumps(list(channels))
    tx.execute(DELIVERIES["forget_channels"], names=names)
    tx.execute(DELIVERIES["give_up_others"], names=names, time=now(), error="the channel is no longer configured")


def add(tx: Transaction, channel: str, message: dict[str, Any], at: float, *, refused: str = "") -> int:
    made = tx.execute(
        DELIVERIES["insert"],
        channel=channel,
        message=json.dumps(message, ensure_ascii=False),
        status=DeliveryStatus.GIVEN_UP if refused else DeliveryStatus.WAITING,
        error=refused,
        created_at=now(),
        due=at,
        ended_at=now() if refused else None,
    )
    tx.execute(DELIVERIES["prune"], channel=channel, kept=KEPT)
    return made.lastrowid or 0


def count_waiting(connection: sqlite3.Connection, channel: str) -> int:
    return int(connection.execute(DELIVERIES["count_waiting"], {"channel": channel}).fetchone()[0])


def due(connection: sqlite3.Connection, channel: str, at: float, limit: int) -> list[Delivery]:
    rows = connection.execute(DELIVERIES["due"], {"channel": channel, "now": at, "limit": limit}).fetchall()
    return [_delivery(row) for row in rows]


def next_due(connection: sqlite3.Connection, channel: str) -> float | None:
    found: float | None = connection.execute(DELIVERIES["next_due"], {"channel": channel}).fetchone()[0]
    return found


def record(tx: Transaction, delivery: Delivery) -> None:
    names = ("id", "status", "attempts", "error", "due", "ended_at")
    tx.execute(DELIVERIES["record"], **{name: getattr(delivery, name) for name in names})


def recent(connection: sqlite3.Connection, limit: int) -> list[Delivery]:
    return [_delivery(row) for row in connection.execute(DELIVERIES["recent"], {"limit": limit})]


def _delivery(row: tuple[Any, ...]) -> Delivery:
    number, channel, message, status, attempts, error, created_at, at, ended_at = row
    return Delivery(
        id=number,
        channel=channel,
        message=json.loads(message),
        status=DeliveryStatus(status),
        attempts=attempts,
        error=error,
        created_at=created_at,
        due=at,
        ended_at=ended_at,
    )
