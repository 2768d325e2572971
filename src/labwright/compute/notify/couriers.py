"""Deliver what happened to the channels: driven by the stored events, so that a restart neither loses nor repeats.

Each channel has a thread and a position of its own: one that hangs holds up nobody else, the engine least of all. What
is owed is stored with the position, and crossed out after it was sent: a kill in between sends it again, with its key.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from dataclasses import replace

from labwright.compute.lab import Lab
from labwright.compute.notify.answers import answer_to
from labwright.compute.notify.channels import Channel
from labwright.compute.notify.message import TYPES, Message, message_of
from labwright.compute.notify.senders import NotSent
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError, NotFound
from labwright.domain.event import Event
from labwright.domain.run import Run
from labwright.store import deliveries, events, runs
from labwright.store.database import Transaction
from labwright.store.deliveries import Delivery, DeliveryStatus

log = logging.getLogger(__name__)
ATTEMPTS = 5
MAX_WAITING = 500
_GROWTH = 5.0  # with 2 s: after 2, 10, 50 and 250 s
_PAGE = 200
_IDLE_SECONDS = 300.0
_STORAGE_RETRY_SECONDS = 5.0
_FAREWELL_SECONDS = 2.0


class Couriers:
    """All channels of a project."""

    def __init__(self, lab: Lab, channels: list[Channel]) -> None:
        self._lab = lab
        self.channels = channels
        self._couriers = [Courier(lab, channel) for channel in channels if not channel.sender.problem()]
        lab.private_variables = frozenset(channel.url_env for channel in channels if channel.url_env)
        lab.local.withhold(lab.private_variables)
        lab.db.on_commit(self._on_commit)

    def start(self) -> None:
        """After the engine: what it finds out about a restored database is no news."""
        with self._lab.db.transaction() as tx:
            deliveries.forget_others(tx, [courier.channel.name for courier in self._couriers])
        for courier in self._couriers:
            courier.start()

    def add(self, channel: Channel) -> None:
        """While the server runs: it is told what happens from now on."""
        self.channels = [*self.channels, channel]
        if not channel.sender.problem():
            courier = Courier(self._lab, channel)
            courier.start()
            self._couriers = [*self._couriers, courier]

    def drop(self, name: str) -> None:
        """What it still owed is forgotten with the next start."""
        for courier in self._couriers:
            if courier.channel.name == name:
                courier.ask_to_end()
        self.channels = [channel for channel in self.channels if channel.name != name]
        self._couriers = [courier for courier in self._couriers if courier.channel.name != name]

    def close(self) -> None:
        for courier in self._couriers:
            courier.ask_to_end()
        for courier in self._couriers:
            courier.join(_FAREWELL_SECONDS)

    def wake(self) -> None:
        for courier in self._couriers:
            courier.wake()

    def _on_commit(self, committed: list[Event]) -> None:
        if any(event.type in TYPES for event in committed):
            self.wake()


class Courier:
    def __init__(self, lab: Lab, channel: Channel) -> None:
        self.channel = channel
        self._lab = lab
        self._news = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name=f"notify-{channel.name}", daemon=True)

    def start(self) -> None:
        """A new channel, or a history it does not know: only what happens from now on."""
        reader, epoch = self._lab.db.reader(), self._lab.db.epoch
        if deliveries.position(reader, self.channel.name, epoch) is None:
            with self._lab.db.transaction() as tx:
                deliveries.set_position(tx, self.channel.name, epoch, events.last_seq(tx.connection))
        self._thread.start()

    def wake(self) -> None:
        self._news.set()

    def ask_to_end(self) -> None:
        self._closing = True
        self.wake()

    def join(self, seconds: float) -> None:
        """One that waits for an answer is left behind; what it carries is sent again after the next start."""
        self._thread.join(seconds)

    def _work(self) -> None:
        pause = 0.0
        while not self._closing:
            self._news.wait(pause)
            self._news.clear()
            try:
                self._collect()
                pause = self._send_due()
            except (LabwrightError, OSError, sqlite3.Error) as error:
                pause = _STORAGE_RETRY_SECONDS
                if not self._closing:
                    log.error("notifications to %s could not be recorded: %s", self.channel.name, error)

    def _collect(self) -> None:
        """From events to what is owed, together with how far they were read."""
        reader, epoch, name = self._lab.db.reader(), self._lab.db.epoch, self.channel.name
        position = deliveries.position(reader, name, epoch) or 0
        while found := events.after(reader, position, _PAGE, types=TYPES):
            position = found[-1].seq
            with self._lab.db.transaction() as tx:
                room = MAX_WAITING - deliveries.count_waiting(tx.connection, name)
                for message in filter(None, (self._message(tx, event) for event in found)):
                    refused = "" if room > 0 else f"{MAX_WAITING} others were waiting already"
                    deliveries.add(tx, name, message.to_dict(), time.time(), refused=refused)
                    room -= 1
                deliveries.set_position(tx, name, epoch, position)

    def _message(self, tx: Transaction, event: Event) -> Message | None:
        message = message_of(event, _run_of(tx, event), self._lab.paths.project.name)
        return message if message and self.channel.wants(message) else None

    def _send_due(self) -> float:
        """Answers for how long there is nothing to do."""
        reader, name = self._lab.db.reader(), self.channel.name
        for delivery in deliveries.due(reader, name, time.time(), _PAGE):
            if self._closing:
                return 0.0
            self._attempt(delivery)
        following = deliveries.next_due(reader, name)
        return _IDLE_SECONDS if following is None else min(_IDLE_SECONDS, max(0.0, following - time.time()))

    def _attempt(self, delivery: Delivery) -> None:
        key = f"{self._lab.db.epoch}-{delivery.id}"
        message = Message.from_dict(delivery.message)
        try:
            self.channel.sender.send(self._answerable(message), key, self._lab.settings.notify_timeout_seconds)
        except NotSent as error:
            self._failed(delivery, message, error)
            return
        ended = replace(
            delivery, status=DeliveryStatus.DELIVERED, attempts=delivery.attempts + 1, error="", ended_at=now()
        )
        with self._lab.db.transaction() as tx:
            deliveries.record(tx, ended)

    def _answerable(self, message: Message) -> Message:
        """With a token for this one question, made anew for each try: it is in no file."""
        if not self.channel.answers or message.approval is None:
            return message
        return replace(message, answer=answer_to(self._lab, message.approval["id"]))

    def _failed(self, delivery: Delivery, message: Message, error: NotSent) -> None:
        tries = delivery.attempts + 1
        pause = self._lab.settings.notify_retry_seconds * _GROWTH ** (tries - 1)
        tried = replace(delivery, attempts=tries, error=error.message, due=time.time() + max(pause, error.retry_after))
        with self._lab.db.transaction() as tx:
            if tries < ATTEMPTS:
                deliveries.record(tx, tried)
                return
            deliveries.record(tx, replace(tried, status=DeliveryStatus.GIVEN_UP, ended_at=now()))
            self._say_given_up(tx, message, error.message)

    def _say_given_up(self, tx: Transaction, message: Message, why: str) -> None:
        words = f"The notification to {self.channel.name} was given up after {ATTEMPTS} tries: {why}."
        log.warning("%s (%s)", words, message.title)
        run_id = (message.run or {}).get("id")
        try:
            run = runs.get(tx.connection, run_id) if run_id else None
        except NotFound:
            run = None
        if run is not None:
            runs.notice(tx, run, str(SYSTEM), words)


def _run_of(tx: Transaction, event: Event) -> Run | None:
    try:
        return runs.get(tx.connection, event.run_id) if event.run_id else None
    except NotFound:
        return None  # deleted meanwhile
