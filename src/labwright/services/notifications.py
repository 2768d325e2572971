"""The verbs of notifications: list channels and deliveries, add and remove channels, send a test.

The address of a channel is a secret. It is stored in a separate file and never shown.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.notify import Channel, NotificationWorker, channels_of, is_web_address
from labwright.compute.notify.message import Notification, NotificationKind
from labwright.domain.actor import Actor
from labwright.domain.alert import Severity
from labwright.domain.clock import now, rfc3339
from labwright.domain.errors import Conflict, Invalid, NotFound
from labwright.files import write_whole
from labwright.services.settings import ConfigFile, Data, emit_changed
from labwright.store import deliveries
from labwright.store.deliveries import Delivery, DeliveryStatus


def overview(lab: Lab, notifier: NotificationWorker, limit: int) -> dict[str, Any]:
    recent = deliveries.recent(lab.db.reader(), limit)
    return {
        "channels": [
            {
                "name": channel.name,
                "kind": channel.kind,
                "target": channel.sender.target,
                "events": list(channel.events),
                "min_severity": channel.min_severity,
                "problem": channel.sender.problem(),
                "waiting": deliveries.count_waiting(lab.db.reader(), channel.name),
            }
            for channel in notifier.channels
        ],
        "deliveries": [_delivery(delivery) for delivery in recent],
    }


def send_test(lab: Lab, notifier: NotificationWorker, actor: Actor) -> list[int]:
    """Send a test message to every usable channel. Return the ids of the deliveries."""
    usable = [channel for channel in notifier.channels if not channel.sender.problem()]
    if not usable:
        raise Conflict("There is no usable channel.", hint="Add a [[notify]] table to labwright.toml.")
    message = Notification(
        kind=NotificationKind.TEST,
        severity=Severity.INFO,
        title="Test from Labwright",
        text=f"Notifications of {lab.paths.project.name} arrive here. Sent by {actor}.",
        time=now(),
        project=lab.paths.project.name,
    )
    with lab.db.transaction() as tx:
        made = [deliveries.add(tx, channel.name, message.to_dict(), time.time()) for channel in usable]
    notifier.wake_all()
    return made


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


_TABLE = "notify"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def add_channel(lab: Lab, notifier: NotificationWorker, table: Data, url: str, actor: Actor) -> None:
    """Add a channel; it works without a restart. `table` is its table in the file, without the address."""
    name = str(table.get("name") or table.get("kind"))
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name[:40]!r} is not a valid channel name.", hint="Use lower-case letters, digits and hyphens.")
    if url and not is_web_address(url.strip()):
        raise Invalid("The address is not an http or https URL.", hint="Copy the whole URL, starting with https://.")
    with lab.settings_lock:
        if any(channel.name == name for channel in notifier.channels):
            raise Conflict(
                f"The channel {name} already exists.", hint="Choose another name, or remove that channel first."
            )
        secret = lab.paths.channels / f"{name}.url"
        whole = {**table, "name": name, **({"url_file": os.path.relpath(secret, lab.paths.project)} if url else {})}
        if url:
            lab.paths.channels.mkdir(mode=0o700, exist_ok=True)
            write_whole(secret, f"{url}\n".encode())
        try:
            made = _append(lab, whole, name)
        except Invalid:
            secret.unlink(missing_ok=True)
            raise
        notifier.add(made)
    emit_changed(lab, [f"channel {name}"], actor)


def remove_channel(lab: Lab, notifier: NotificationWorker, name: str, actor: Actor) -> None:
    with lab.settings_lock:
        place = next((i for i, channel in enumerate(notifier.channels) if channel.name == name), None)
        file = ConfigFile(lab.paths.config)
        data = file.data()
        if place is None or place >= len(data.get(_TABLE, [])):
            raise NotFound(f"There is no channel {name[:40]!r}.", hint="List them with GET /notifications.")
        left = [table for i, table in enumerate(data[_TABLE]) if i != place]
        changed = {**data, _TABLE: left} if left else {key: value for key, value in data.items() if key != _TABLE}

        def edit(document: Any) -> None:
            if left:
                del document[_TABLE][place]
            else:
                del document[_TABLE]

        file.change(changed, edit, lambda _data: None)
        notifier.remove(name)
        (lab.paths.channels / f"{name}.url").unlink(missing_ok=True)
    emit_changed(lab, [f"channel {name}"], actor)


def _append(lab: Lab, table: Data, name: str) -> Channel:
    file = ConfigFile(lab.paths.config)
    data = file.data()
    changed = {**data, _TABLE: [*data.get(_TABLE, []), table]}

    def edit(document: Any) -> None:
        import tomlkit

        if _TABLE not in document:
            document[_TABLE] = tomlkit.aot()
        document[_TABLE].append(tomlkit.item(table))

    def channel(whole: Data) -> Channel:
        return next(one for one in channels_of(lab.paths, whole[_TABLE]) if one.name == name)

    file.change(changed, edit, channel)
    return channel(changed)
