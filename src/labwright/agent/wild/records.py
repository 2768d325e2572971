"""One loop's record as the engine changes it: each fact is one transaction, with the words that tell it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from labwright.agent.wild import verbs
from labwright.agent.wild.experiment import Experiment
from labwright.agent.wild.news import tell, tell_of_end
from labwright.agent.wild.noise import own_runs
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.domain.ids import ALERT, new_id
from labwright.domain.run import Run
from labwright.domain.wild import AT_WORK, Wild, WildStatus
from labwright.services.runs import verbs as run_verbs
from labwright.store import alerts
from labwright.store import wild as stored

BUDGET_RULE, FAULT_RULE, PROTECTED_RULE = "wild_budget:", "wild_fault", "wild_protected"
TOKENS = "tokens"  # the part of a budget that a model uses
RAISE, CONTINUE, STOP = "raise", "continue", "stop"


class NotAtWork(Exception):
    """Somebody has paused or ended the loop."""


class Loop:
    """As it was when it was looked at last; writing looks again."""

    def __init__(self, lab: Lab, wild_id: str) -> None:
        self.lab = lab
        self.wild = stored.get(lab.db.reader(), wild_id)
        self.actor = Actor(Scope.AGENT, wild_id)

    def look_again(self) -> None:
        self.wild = stored.get(self.lab.db.reader(), self.wild.id)

    @cached_property
    def experiment(self) -> Experiment:
        """The project is read once in a row of steps."""
        return Experiment.of(self.lab, self.wild)

    def write(self, change: Callable[[Wild], Wild], words: str = "", alert: Alert | None = None) -> Wild:
        """Nothing is written to a loop that somebody has paused or ended."""
        with self.lab.db.transaction() as tx:
            before = stored.get(tx.connection, self.wild.id)
            if before.status not in AT_WORK:
                raise NotAtWork
            after = verbs.change(self.lab, tx, before, change(before), self.actor)
            if alert is not None:
                alerts.insert(tx, alert, str(self.actor))
            if words:
                tell(self.lab, tx, after, words)
            elif after.status not in AT_WORK:
                tell_of_end(self.lab, tx, after)
        return after

    def wait(self) -> bool:
        """False, as there is nothing more to do now."""
        if self.wild.status is not WildStatus.WAITING:
            self.write(lambda found: found.move(WildStatus.WAITING))
        return False

    def unended_runs(self) -> list[Run]:
        every = (run for one in self.wild.open_iterations for _seed, run in own_runs(self.lab, one))
        return [run for run in every if not run.is_terminal]

    def stop_runs(self) -> None:
        for run in self.unended_runs():
            with contextlib.suppress(Conflict):  # it has ended by itself
                run_verbs.stop(self.lab, run.id, self.actor, "its wild loop needs it no more")

    def ask_for_more(self, part: str, words: str) -> bool:
        """Once nothing is under way any more: what runs may still come to something."""
        if self.unended_runs():
            return self.wait()
        return self.pause(f"its budget ended: {words}", f"{BUDGET_RULE}{part}", (RAISE, STOP))

    def pause(self, words: str, rule: str, choices: tuple[str, ...]) -> bool:
        """With an alert that a person answers, and a report of what is known by now."""
        if self.unended_runs():
            return self.wait()
        alert = self._alert(rule, f"is paused: {words.rstrip('.')}", Severity.WARNING, choices)

        def still(found: Wild) -> Wild:
            return verbs.reported(self.lab, verbs.stood_still(found, words, alert.id))

        self.write(still, alert=alert)
        return False

    def halt(self, words: str) -> None:
        """Stopped by what happened to the project, which somebody has to hear of."""
        alert = self._alert(PROTECTED_RULE, f"was stopped: {words}", Severity.CRITICAL)
        self.end(WildStatus.STOPPED, words, alert)

    def end(self, status: WildStatus, reason: str, alert: Alert | None = None) -> bool:
        self.stop_runs()
        last = self.write(lambda found: verbs.ended(self.lab, found, status, reason), alert=alert)
        verbs.end_sweep(self.lab, last, self.actor)
        return False

    def _alert(self, rule: str, words: str, severity: Severity, choices: tuple[str, ...] = ()) -> Alert:
        facts: dict[str, Any] = {"rule": rule, "severity": severity, "choices": choices, "created_at": now()}
        message = f"Wild loop {self.wild.id} {words}."
        return Alert(id=new_id(ALERT), run_id=None, wild_id=self.wild.id, message=message, **facts)
