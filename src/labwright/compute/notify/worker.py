"""Deliver notifications to the channels. The stored events drive it, so a restart neither loses nor repeats any.

Each channel has its own thread and position in the events, so a channel that hangs delays no other. A message is stored
together with the position, and marked as delivered after it was sent. A kill in between sends it again, with the same
key.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.notify.channels import Channel
from labwright.compute.notify.message import TYPES, Notification, is_news, message_of
from labwright.compute.notify.senders import NotSent
from labwright.compute.worker import Worker
from labwright.domain.actor import SYSTEM, Scope
from labwright.domain.clock import now, rfc3339
from labwright.domain.errors import NotFound
from labwright.domain.event import Event
from labwright.domain.run import Run
from labwright.store import deliveries, events, runs
from labwright.store.database import Transaction
from labwright.store.deliveries import Delivery, DeliveryStatus
from labwright.tokens import mint

log = logging.getLogger(__name__)
ATTEMPTS = 5
MAX_WAITING = 500
_GROWTH = 5.0  # with 2 s: after 2, 10, 50 and 250 s
_PAGE = 200


class NotificationWorker(Worker):
    """A worker whose items are the names of the channels."""

    name = "notify"
    thread_per_item = True
    retry_seconds = 5.0
    close_seconds = 2.0  # a channel that does not answer is left behind; its message is sent again after a restart

    def __init__(self, lab: Lab, channels: list[Channel]) -> None:
        super().__init__(lab)
        self.channels = channels
        self._working = {channel.name: channel for channel in channels if not channel.sender.problem()}
        lab.private_variables = frozenset(channel.url_env for channel in channels if channel.url_env)
        lab.local.withhold(lab.private_variables)

    def concerned(self, events: list[Event]) -> list[str]:
        return list(self._working) if any(is_news(event) for event in events) else []

    def items_at_start(self) -> list[str]:
        """Return all channels. The engine starts before: its changes of a restored database are not news."""
        names = list(self._working)
        with self._lab.db.transaction() as tx:
            deliveries.forget_others(tx, names)
        for name in names:
            self._start_position(name)
        return names

    def wake_all(self) -> None:
        for name in list(self._working):
            self.wake(name)

    def add(self, channel: Channel) -> None:
        """Add a channel while the server runs. It receives what happens from now on."""
        self.channels = [*self.channels, channel]
        if not channel.sender.problem():
            self._start_position(channel.name)
            self._working = {**self._working, channel.name: channel}

    def remove(self, name: str) -> None:
        """Remove a channel. The next start deletes messages that still wait for it."""
        self.channels = [channel for channel in self.channels if channel.name != name]
        self._working = {key: channel for key, channel in self._working.items() if key != name}

    def _start_position(self, name: str) -> None:
        """Let a new channel start with the events from now on; also one whose position is of another database."""
        epoch = self._lab.db.epoch
        if deliveries.position(self._lab.db.reader(), name, epoch) is None:
            with self._lab.db.transaction() as tx:
                deliveries.set_position(tx, name, epoch, events.last_seq(tx.connection))

    def advance(self, item: str) -> float | None:
        """Collect and send what is due. Return the seconds until the next delivery is due."""
        if (channel := self._working.get(item)) is None:
            return None
        self._collect(channel)
        for delivery in deliveries.due(self._lab.db.reader(), item, time.time(), _PAGE):
            if self.closing or item not in self._working:
                return None
            self._attempt(channel, delivery)
        next_due = deliveries.next_due(self._lab.db.reader(), item)
        return None if next_due is None else max(0.0, next_due - time.time())

    def _collect(self, channel: Channel) -> None:
        """Turn new events into deliveries, together with the position up to which events were read."""
        reader, epoch, name = self._lab.db.reader(), self._lab.db.epoch, channel.name
        position = deliveries.position(reader, name, epoch) or 0
        while new := events.after(reader, position, _PAGE, types=TYPES):
            position = new[-1].seq
            with self._lab.db.transaction() as tx:
                room = MAX_WAITING - deliveries.count_waiting(tx.connection, name)
                for event in new:
                    message = message_of(event, _find_run(tx, event.run_id), self._lab.paths.project.name)
                    if message is None or not channel.wants(message):
                        continue
                    refused = "" if room > 0 else f"{MAX_WAITING} others were waiting already"
                    deliveries.add(tx, name, message.to_dict(), time.time(), refused=refused)
                    room -= 1
                deliveries.set_position(tx, name, epoch, position)

    def _attempt(self, channel: Channel, delivery: Delivery) -> None:
        key = f"{self._lab.db.epoch}-{delivery.id}"
        message = Notification.from_dict(delivery.message)
        try:
            channel.sender.send(self._with_token(channel, message), key, self._lab.settings.notify_timeout_seconds)
        except NotSent as error:
            self._on_failure(channel, delivery, message, error)
            return
        ended = replace(
            delivery, status=DeliveryStatus.DELIVERED, attempts=delivery.attempts + 1, error="", ended_at=now()
        )
        with self._lab.db.transaction() as tx:
            deliveries.record(tx, ended)

    def _with_token(self, channel: Channel, message: Notification) -> Notification:
        """Add a token to answer this approval request. It is new for each try and never stored."""
        if not channel.answers or message.approval is None:
            return message
        approval_id, seconds = message.approval["id"], self._lab.settings.notify_answer_hours * 3600
        answer: dict[str, Any] = {
            "method": "POST",
            "url": f"{self._lab.node_url or self._lab.url}/approvals/{approval_id}/respond",
            "header": "X-Auth-Token",
            "token": mint(self._lab.token, Scope.ANSWER, approval_id, seconds),
            "expires_at": rfc3339(time.time() + seconds),
        }
        return replace(message, answer=answer)

    def _on_failure(self, channel: Channel, delivery: Delivery, message: Notification, error: NotSent) -> None:
        tries = delivery.attempts + 1
        pause = self._lab.settings.notify_retry_seconds * _GROWTH ** (tries - 1)
        tried = replace(delivery, attempts=tries, error=error.message, due=time.time() + max(pause, error.retry_after))
        with self._lab.db.transaction() as tx:
            if tries < ATTEMPTS:
                deliveries.record(tx, tried)
                return
            deliveries.record(tx, replace(tried, status=DeliveryStatus.GIVEN_UP, ended_at=now()))
            notice = f"The notification to {channel.name} was given up after {ATTEMPTS} tries: {error.message}."
            log.warning("%s (%s)", notice, message.title)
            if run := _find_run(tx, (message.run or {}).get("id")):
                runs.notice(tx, run, str(SYSTEM), notice)


def _find_run(tx: Transaction, run_id: str | None) -> Run | None:
    try:
        return runs.get(tx.connection, run_id) if run_id else None
    except NotFound:
        return None  # deleted meanwhile
