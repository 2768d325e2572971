"""Does what plans are waiting for: a thread for each that is compiled or executed, found in the database.

What is to be done stands in the plan's record, so a restart finds the same and goes on; nothing is known here alone.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

from pydantic import ValidationError

from labwright.compute.lab import Lab
from labwright.domain.errors import Invalid, LabwrightError, NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.plan import Plan, PlanStatus
from labwright.llm import Model
from labwright.planning.interrupted import Stopping
from labwright.planning.plans import folder_of, settle_approval
from labwright.store import plans

log = logging.getLogger(__name__)
_COMPILED_AT_ONCE = 2
_RETRY_SECONDS = 2.0
_MOST_TRIES = 30  # of a compilation that the machine lets down: somebody waits for it at a terminal
_PATIENCE_SECONDS = 5.0
_MATTERS = (EventType.PLAN_CREATED, EventType.PLAN_UPDATED, EventType.PLAN_STATUS, EventType.PLAN_DELETED)
Work = Callable[[Lab, Plan, threading.Event], None]
Planner = Callable[[str], Model]  # by the plan's id, to whose account it goes


class PlanKeeper:
    def __init__(self, lab: Lab, planner: Planner) -> None:
        self._lab = lab
        self._planner = planner
        self._news = threading.Event()
        self._touched: set[str] = set()
        self._busy: dict[str, _Job] = {}
        self._tries: Counter[str] = Counter()
        self._compiling = threading.BoundedSemaphore(_COMPILED_AT_ONCE)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="plans", daemon=True)
        lab.db.on_commit(self._hear)

    def start(self) -> None:
        for plan in plans.every(self._lab.db.reader()):
            self._settle(plan)
            self._touched.add(plan.id)
        self._news.set()
        self._thread.start()

    def _settle(self, plan: Plan) -> None:
        try:
            settle_approval(self._lab, plan)
        except (Invalid, ValidationError) as error:
            log.warning("the manifest of %s cannot be understood: %s", plan.id, error)

    def close(self) -> None:
        """What is under way ends at its next fact, or with the process: it goes on at the next start."""
        self._closing.set()
        self._news.set()
        self._thread.join(timeout=_PATIENCE_SECONDS)
        for job in list(self._busy.values()):
            job.stopping.set()
        for job in list(self._busy.values()):
            job.thread.join(timeout=_PATIENCE_SECONDS)

    def _hear(self, events: list[Event]) -> None:
        """Called with the database locked, so it only takes notes."""
        touched = {str(event.data["plan_id"]) for event in events if event.type in _MATTERS}
        if touched:
            self._touched |= touched
            self._news.set()
            with self._lab.plan_news:
                self._lab.plan_news.notify_all()

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._news.wait()
            self._news.clear()
            touched, self._touched = self._touched, set()
            for plan_id in touched:
                self._see_to(plan_id)

    def _see_to(self, plan_id: str) -> None:
        try:
            plan = plans.get(self._lab.db.reader(), plan_id)
        except NotFound:
            return
        work, job = self._work_for(plan), self._busy.get(plan_id)
        if job is not None and plan.stopped_by:
            job.stopping.set()
        if work is not None and job is None and not self._closing.is_set():
            self._busy[plan_id] = _Job(self, plan_id, work)
            self._busy[plan_id].thread.start()

    def do(self, plan_id: str, work: Work, stopping: threading.Event) -> None:
        """In a thread of its own."""
        try:
            with self._compiling if work == self._compile else nullcontext():
                plan = plans.get(self._lab.db.reader(), plan_id)
                if self._work_for(plan) == work and not stopping.is_set():
                    self._try(plan, work, stopping)
        except (Stopping, NotFound):
            log.info("%s is left as it is for now", plan_id)
        except (OSError, sqlite3.Error, LabwrightError) as error:
            log.error("%s could not go on and is tried again: %s", plan_id, error, exc_info=True)
            time.sleep(_RETRY_SECONDS)
        finally:
            del self._busy[plan_id]
            self._touched.add(plan_id)
            self._news.set()

    def _try(self, plan: Plan, work: Work, stopping: threading.Event) -> None:
        try:
            work(self._lab, plan, stopping)
            del self._tries[plan.id]
        except (Stopping, NotFound):
            raise
        except (OSError, sqlite3.Error, LabwrightError) as error:
            self._tries[plan.id] += 1
            if work != self._compile or self._tries[plan.id] < _MOST_TRIES:
                raise
            del self._tries[plan.id]
            self._give_up(plan, work, f"Tried {_MOST_TRIES} times, and each time: {error}.")
        except Exception as error:
            log.exception("%s cannot go on", plan.id)
            words = f"Labwright hit a fault of its own: {error!r}. The server's log (.labwright/logs) has the details."
            self._give_up(plan, work, words)

    def _give_up(self, plan: Plan, work: Work, words: str) -> None:
        from labwright.planning import compile_job, execute_job
        from labwright.planning.record.state import change_state

        if work == self._execute:
            execute_job.finish(self._lab, plan, words)
            return
        handle = folder_of(self._lab, plan.id)
        compile_job.finish(self._lab, plan, change_state(handle, status="failed", error=words, ready_for_run=False))

    def _work_for(self, plan: Plan) -> Work | None:
        if plan.compiling_by:
            return self._leave_off if plan.stopped_by else self._compile
        return self._execute if plan.status is PlanStatus.EXECUTING else None

    def _execute(self, lab: Lab, plan: Plan, stopping: threading.Event) -> None:
        from labwright.planning import execute_job  # here and below, as the planner is large and may never be needed

        execute_job.carry_out(lab, plan, stopping)

    def _leave_off(self, lab: Lab, plan: Plan, _stopping: threading.Event) -> None:
        from labwright.planning import compile_job

        compile_job.leave_off(lab, plan)

    def _compile(self, lab: Lab, plan: Plan, stopping: threading.Event) -> None:
        from labwright.planning import compile_job

        compile_job.carry_out(lab, plan, self._planner(plan.id), stopping)


class _Job:
    def __init__(self, keeper: PlanKeeper, plan_id: str, work: Work) -> None:
        self.stopping = threading.Event()
        self.thread = threading.Thread(
            target=keeper.do, args=(plan_id, work, self.stopping), name=f"plan {plan_id}", daemon=True
        )
