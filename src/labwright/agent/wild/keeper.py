"""Keeps wild loops going: one thread, woken by committed events; each loop that has something to do gets a thread.

All it knows is in the database: after a restart the same look finds the same loops. While runs are under way nothing is
asked and nothing is looked at, except that a budget of time ends.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

from labwright.agent.wild import verbs
from labwright.agent.wild.proposers import Proposers
from labwright.agent.wild.spending import seconds_left
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, LabwrightError, StorageFailed
from labwright.domain.event import Event, EventType
from labwright.domain.run import TERMINAL
from labwright.domain.search.budget import raise_budget
from labwright.domain.wild import AT_WORK, Wild, WildStatus
from labwright.store import alerts
from labwright.store import wild as stored

if TYPE_CHECKING:
    from labwright.agent.wild.engine import Engine

log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 2.0
_GATHER_SECONDS = 0.02  # runs that end together are looked at together
_ENDS = frozenset(str(status) for status in TERMINAL)
_OF_A_SWEEP = (EventType.RUN_DELETED, EventType.SWEEP_STATUS)


class WildKeeper:
    def __init__(self, lab: Lab, proposers: Proposers) -> None:
        self._lab = lab
        self._proposers = proposers
        self._news = threading.Event()
        self._touched: set[str] = set()  # sweeps of which something ended
        self._all = True  # every loop is to be looked at
        self._busy: dict[str, threading.Thread] = {}
        self._engine: Engine | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="wild", daemon=True)
        lab.db.on_commit(self._hear)

    def start(self) -> None:
        self._news.set()
        self._thread.start()

    def close(self) -> None:
        """What is under way stays at work in the database, and goes on at the next start."""
        self._closing = True
        self._news.set()
        self._thread.join(timeout=_PATIENCE_SECONDS)
        for thread in list(self._busy.values()):
            thread.join(timeout=_PATIENCE_SECONDS)

    def _hear(self, events: list[Event]) -> None:
        """Called with the database locked, so it only takes notes."""
        touched = {event.sweep_id for event in events if event.sweep_id and _ends_something(event)}
        wakes = any(_wakes(event) for event in events)
        if touched or wakes:
            self._touched |= touched
            self._all = self._all or wakes
            self._news.set()

    def _loop(self) -> None:
        left: float | None = None
        while not self._closing:
            self._news.wait(left)
            time.sleep(_GATHER_SECONDS)
            self._news.clear()
            try:
                left = self._look()
            except (OSError, sqlite3.Error, LabwrightError):
                log.exception("wild loops could not be looked at; they are again soon")
                self._all, left = True, _RETRY_SECONDS

    def _look(self) -> float | None:
        """Answers when to look again though nothing happened: at the first end of a budget of time."""
        everything, self._all = self._all, False
        touched, self._touched = self._touched, set()
        loops = stored.unended(self._lab.db.reader())
        ends = {wild.id: left for wild in loops if (left := seconds_left(wild)) is not None}
        for wild in loops:
            if everything or wild.sweep_id in touched or ends.get(wild.id) == 0:
                self._see_to(wild)
        return min((left for left in ends.values() if left > 0), default=None)

    def _see_to(self, wild: Wild) -> None:
        if wild.status is WildStatus.PAUSED and wild.asked is not None:
            self._carry_out_answer(wild, wild.asked)
        elif wild.status in AT_WORK and not self._closing:
            if wild.id in self._busy:
                self._again(wild)  # whoever is at it may have looked already
                return
            self._busy[wild.id] = threading.Thread(
                target=self._advance, args=(wild,), name=f"wild {wild.id}", daemon=True
            )
            self._busy[wild.id].start()

    def _carry_out_answer(self, wild: Wild, alert_id: str) -> None:
        """What somebody answered to the alert that the loop waits for; looked up, so that a kill loses no answer."""
        alert = alerts.get(self._lab.db.reader(), alert_id)
        if alert.answer is None or alert.answered_by is None:
            return
        from labwright.agent.wild import records

        actor = Actor.of(alert.answered_by)
        try:
            if alert.answer == records.STOP:
                verbs.stop(self._lab, wild.id, actor)
            elif alert.answer in (records.RAISE, records.CONTINUE):
                verbs.resume(
                    self._lab, wild.id, actor, self._raised(wild, alert.rule.removeprefix(records.BUDGET_RULE))
                )
        except Conflict as error:  # somebody else has decided meanwhile
            log.info("the answer to %s came too late: %s", alert_id, error.message)

    def _raised(self, wild: Wild, part: str) -> dict[str, float]:
        if part in wild.budget:
            return raise_budget(wild.budget, wild.first_budget, part)
        if part == "tokens":
            self._proposers.allow_more(wild.id)
        return {}

    def _advance(self, wild: Wild) -> None:
        """In a thread of its own, since a model may take minutes to answer."""
        try:
            self._the_engine().advance(wild.id)
        except (OSError, sqlite3.Error, StorageFailed) as error:
            log.error("%s could not go on and is tried again: %s", wild.id, error, exc_info=True)
            time.sleep(_RETRY_SECONDS)
            self._touched.add(wild.sweep_id)
        except LabwrightError as error:
            self._give_up(wild, f"{error.message} {error.hint}".strip())
        except Exception as error:
            log.exception("%s cannot go on", wild.id)
            self._give_up(wild, f"Labwright hit a fault of its own: {error!r}; the server's log has the details")
        finally:
            del self._busy[wild.id]
            if self._touched:
                self._news.set()

    def _again(self, wild: Wild) -> None:
        """When the thread that is at it has ended; by now it may have, and then nobody else tells."""
        self._touched.add(wild.sweep_id)
        if wild.id not in self._busy:
            self._news.set()

    def _give_up(self, wild: Wild, words: str) -> None:
        from labwright.agent.wild.records import Loop, NotAtWork

        try:
            Loop(self._lab, wild.id).end(WildStatus.FAILED, words)
        except NotAtWork:
            log.info("%s was paused or ended meanwhile", wild.id)

    def _the_engine(self) -> Engine:
        if self._engine is None:
            from labwright.agent.wild.engine import Engine  # here, as most servers never need it

            self._engine = Engine(self._lab, self._proposers)
        return self._engine


def _wakes(event: Event) -> bool:
    """What a loop writes itself is no news to it."""
    if event.type is EventType.WILD_CHANGED:
        return event.actor != str(Actor(Scope.AGENT, event.data["wild_id"]))
    return event.type is EventType.ALERT_RESOLVED


def _ends_something(event: Event) -> bool:
    if event.type is EventType.RUN_STATUS:
        return str(event.data.get("to")) in _ENDS
    return event.type in _OF_A_SWEEP
