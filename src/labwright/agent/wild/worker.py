"""Advance wild loops in the background: a thread for each loop that has something to do.

While runs of a loop are active nothing is requested or checked, except that its time budget may end.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from labwright.agent.wild import verbs
from labwright.agent.wild.proposers import Proposers
from labwright.agent.wild.spending import seconds_left
from labwright.compute.lab import Lab
from labwright.compute.worker import Worker
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
_ALL = "all"  # an item of its own: find the loops, and advance each
_ENDS = frozenset(str(status) for status in TERMINAL)
_OF_A_SWEEP = (EventType.RUN_DELETED, EventType.SWEEP_STATUS)


class WildWorker(Worker):
    """Its items are the sweeps of the loops: events of runs name their sweep."""

    name = "wild"
    thread_per_item = True
    gather_seconds = 0.02  # runs that end together are handled together

    def __init__(self, lab: Lab, proposers: Proposers) -> None:
        super().__init__(lab)
        self._proposers = proposers
        self._engine: Engine | None = None
        self._sweeps: set[str] = set()  # those of loops that have not ended

    def concerned(self, events: list[Event]) -> set[str]:
        if any(_wakes(event) for event in events):
            return {_ALL}
        return {event.sweep_id for event in events if event.sweep_id in self._sweeps and _ends_something(event)}

    def items_at_start(self) -> tuple[str, ...]:
        return (_ALL,)

    def has_work(self, item: str) -> bool:
        loops = {wild.sweep_id: wild for wild in stored.unended(self._lab.db.reader())}
        self._sweeps = set(loops)
        if item == _ALL:
            for sweep_id in loops:
                self.wake(sweep_id)
            return False
        return item in loops and (loops[item].status in AT_WORK or loops[item].asked is not None)

    def advance(self, item: str) -> float | None:
        wild = self._loop_of(item)
        if wild is None:
            return None
        if wild.status is WildStatus.PAUSED:
            if wild.asked is not None:
                self._carry_out_answer(wild, wild.asked)
            return None
        try:
            self._the_engine().advance(wild.id)
        except StorageFailed:
            raise
        except LabwrightError as error:
            self._fail(wild, f"{error.message} {error.hint}".strip())
        after = self._loop_of(item)
        return (seconds_left(after) or None) if after else None  # once its time is up, the end of a run is awaited

    def _loop_of(self, sweep_id: str) -> Wild | None:
        loops = stored.unended(self._lab.db.reader())
        return next((wild for wild in loops if wild.sweep_id == sweep_id), None)

    def give_up(self, item: str, error: Exception) -> None:
        if (wild := self._loop_of(item)) is not None:
            self._fail(wild, f"Labwright hit an internal error: {error!r}; the server's log has the details")

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

    def _fail(self, wild: Wild, message: str) -> None:
        from labwright.agent.wild.records import Loop, NotAtWork

        try:
            Loop(self._lab, wild.id).end(WildStatus.FAILED, message)
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
