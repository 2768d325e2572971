"""Compile and execute plans in the background: one thread for each plan that has work.

The plan's record says what to do, so a restarted server finds the same work and continues.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

from pydantic import ValidationError

from labwright.compute.lab import Lab
from labwright.compute.worker import RETRIED, Worker
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.plan import Plan, PlanStatus
from labwright.llm import Model
from labwright.planning.interrupted import Stopping
from labwright.planning.plans import folder_of, settle_approval
from labwright.store import plans

log = logging.getLogger(__name__)
_COMPILED_AT_ONCE = 2
_MOST_TRIES = 30  # of a compilation that the machine lets down: somebody waits for it at a terminal
_MATTERS = (EventType.PLAN_CREATED, EventType.PLAN_UPDATED, EventType.PLAN_STATUS, EventType.PLAN_DELETED)
Work = Callable[[Plan, threading.Event], None]
Planner = Callable[[str], Model]  # by the plan's id, to whose account it goes


class PlanWorker(Worker):
    name = "plans"
    thread_per_item = True

    def __init__(self, lab: Lab, planner: Planner) -> None:
        super().__init__(lab)
        self._planner = planner
        self._stopping: dict[str, threading.Event] = {}  # plans that a thread works on
        self._last: dict[str, tuple[Plan, Work]] = {}  # the last work that was started for each
        self._tries: Counter[str] = Counter()
        self._compiling = threading.BoundedSemaphore(_COMPILED_AT_ONCE)

    def concerned(self, events: list[Event]) -> set[str]:
        touched = {str(event.data["plan_id"]) for event in events if event.type in _MATTERS}
        if touched:
            with self._lab.plan_news:
                self._lab.plan_news.notify_all()
        return touched

    def items_at_start(self) -> list[str]:
        found = plans.every(self._lab.db.reader())
        for plan in found:
            try:
                settle_approval(self._lab, plan)
            except (Invalid, ValidationError) as error:
                log.warning("The manifest of %s cannot be read: %s", plan.id, error)
        return [plan.id for plan in found]

    def interrupt(self, item: str) -> None:
        """A plan that is told to stop ends at its next recorded fact."""
        stopping = self._stopping.get(item)
        if stopping is not None and (self.closing or self._is_stopped(item)):
            stopping.set()

    def _is_stopped(self, plan_id: str) -> bool:
        try:
            return bool(plans.get(self._lab.db.reader(), plan_id).stopped_by)
        except NotFound:
            return False

    def has_work(self, item: str) -> bool:
        try:
            return self._work_for(plans.get(self._lab.db.reader(), item)) is not None
        except NotFound:
            return False

    def advance(self, item: str) -> float | None:
        stopping = self._stopping[item] = threading.Event()
        try:
            work = self._work_for(plans.get(self._lab.db.reader(), item))
            if work is None:
                return None
            with self._compiling if work == self._compile else nullcontext():
                plan = plans.get(self._lab.db.reader(), item)  # it may have changed while it waited for its turn
                if self._work_for(plan) == work and not stopping.is_set() and not self.closing:
                    self._try(plan, work, stopping)
        except NotFound:
            return None
        except Stopping:
            log.info("The work on %s is interrupted", item)
        finally:
            del self._stopping[item]
        return 0.0  # something else may be left to do

    def _try(self, plan: Plan, work: Work, stopping: threading.Event) -> None:
        self._last[plan.id] = (plan, work)
        try:
            work(plan, stopping)
            del self._tries[plan.id]
        except NotFound:
            raise
        except RETRIED as error:
            self._tries[plan.id] += 1
            if work != self._compile or self._tries[plan.id] < _MOST_TRIES:
                raise
            del self._tries[plan.id]
            self._fail(plan, work, f"Tried {_MOST_TRIES} times, and each time: {error}.")

    def give_up(self, item: str, error: Exception) -> None:
        if item in self._last:
            words = f"Labwright hit an internal error: {error!r}. The server's log (.labwright/logs) has the details."
            self._fail(*self._last[item], words)

    def _fail(self, plan: Plan, work: Work, message: str) -> None:
        from labwright.planning import compile_job, execute_job
        from labwright.planning.record.state import change_state

        if work == self._execute:
            execute_job.finish(self._lab, plan, message)
            return
        handle = folder_of(self._lab, plan.id)
        compile_job.finish(self._lab, plan, change_state(handle, status="failed", error=message, ready_for_run=False))

    def _work_for(self, plan: Plan) -> Work | None:
        if plan.compiling_by:
            return self._leave_off if plan.stopped_by else self._compile
        return self._execute if plan.status is PlanStatus.EXECUTING else None

    def _execute(self, plan: Plan, stopping: threading.Event) -> None:
        from labwright.planning import execute_job  # here and below, as the planner is large and may never be needed

        execute_job.carry_out(self._lab, plan, stopping)

    def _leave_off(self, plan: Plan, _stopping: threading.Event) -> None:
        from labwright.planning import compile_job

        compile_job.leave_off(self._lab, plan)

    def _compile(self, plan: Plan, stopping: threading.Event) -> None:
        from labwright.planning import compile_job

        compile_job.carry_out(self._lab, plan, self._planner(plan.id), stopping)
