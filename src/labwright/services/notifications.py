"""The verbs of notifications: what channels there are and what became of their messages; a test."""

from __future__ import annotations

import time
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.notify import Channel, Couriers
from labwright.compute.notify.message import Message, News
from labwright.domain.actor import Actor
from labwright.domain.alert import Severity
from labwright.domain.clock import now, rfc3339
from labwright.domain.errors import Conflict
from labwright.store import deliveries
from labwright.store.deliveries import Delivery, DeliveryStatus


def overview(lab: Lab, couriers: Couriers, limit: int) -> dict[str, Any]:
    recent = deliveries.recent(lab.db.reader(), limit)
    return {
        "channels": [_channel(lab, channel) for channel in couriers.channels],
        "deliveries": [_delivery(delivery) for delivery in recent],
    }


def send_test(lab: Lab, couriers: Couriers, actor: Actor) -> list[int]:
    """One message to every channel that can work, the usual way; answers the deliveries to look for."""
    usable = [channel for channel in couriers.channels if not channel.sender.problem()]
    if not usable:
        raise Conflict("There is no channel that could be tested.", hint="Add a [[notify]] table to labwright.toml.")
    message = Message(
        kind=News.TEST,
        severity=Severity.INFO,
        title="A test from Labwright",
        text=f"Notifications of {lab.paths.project.name} arrive here. Sent by {actor}.",
        time=now(),
        project=lab.paths.project.name,
    )
    with lab.db.transaction() as tx:
        made = [deliveries.add(tx, channel.name, message.to_dict(), time.time()) for channel in usable]
    couriers.wake()
    return made


def _channel(lab: Lab, channel: Channel) -> dict[str, Any]:
    return {
        "name": channel.name,
        "kind": channel.kind,
        "target": channel.sender.target,
        "events": list(channel.events),
        "min_severity": channel.min_severity,
        "problem": channel.sender.problem(),
        "waiting": deliveries.count_waiting(lab.db.reader(), channel.name),
    }


def _delivery(delivery: Delivery) -> dict[str, Any]:
    message = delivery.message
    waiting = delivery.status is DeliveryStatus.WAITING
    return {
        "id": delivery.id,
        "channel": delivery.channel,
        "kind": message["kind"],
        "title": message["title"],
        "run_id": (message.get("run") or {}).get("id"),
        "alert_id": (message.get("alert") or {}).get("id"),
        "status": delivery.status,
        "attempts": delivery.attempts,
        "error": delivery.error,
        "created_at": delivery.created_at,
        "next_try_at": rfc3339(delivery.due) if waiting else None,
        "ended_at": delivery.ended_at,
    }
