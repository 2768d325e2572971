"""What was done before in a project, as far as a new plan may build upon it. Whoever has the records fills it in."""

from __future__ import annotations

import re

from labwright.planning.ir.compile import name_of
from labwright.planning.ir.drafts import ExperimentDraft, Strict

_CITED = 3  # of a kind: a plan is read by people
_OVER = ("archived", "failed")


class EarlierPlan(Strict):
    id: str
    title: str
    status: str = "draft"
    script: str = ""
    parameters: tuple[str, ...] = ()  # flags, as the project calls them
    metric: str = ""


class EarlierRun(Strict):
    id: str
    command: str
    status: str = "finished"
    metrics: dict[str, float] = {}  # the last value of each


class EarlierSweep(Strict):
    id: str
    name: str = ""
    command: str = ""
    status: str = "completed"
    parameters: tuple[str, ...] = ()
    runs: int = 0  # finished ones: others have nothing to build upon


class History(Strict):
    """Newest first."""

    plans: tuple[EarlierPlan, ...] = ()
    runs: tuple[EarlierRun, ...] = ()
    sweeps: tuple[EarlierSweep, ...] = ()

    def cited(self, draft: ExperimentDraft, path: str) -> ExperimentDraft:
        """The draft with what it builds upon and which plans it overlaps: found by rules, so that every id is one."""
        return draft.model_copy(
            update={"builds_on": self._builds_on(draft, path), "overlaps": self._overlaps(draft, path)}
        )

    def _builds_on(self, draft: ExperimentDraft, path: str) -> tuple[str, ...]:
        sweeps = [
            f"sweep @{sweep.id} ({_shared(draft, sweep.parameters)}; {sweep.runs} finished runs)"
            for sweep in self.sweeps
            if sweep.runs and path in sweep.command.split() and _shared(draft, sweep.parameters)
        ]
        runs = [
            f"run @{run.id} ({draft.metric} {run.metrics[draft.metric]:.6g})"
            for run in self.runs
            if run.status == "finished" and path in run.command.split() and draft.metric in run.metrics
        ]
        return (*sweeps[:_CITED], *runs[:_CITED])

    def _overlaps(self, draft: ExperimentDraft, path: str) -> tuple[str, ...]:
        found = [
            f"plan @{plan.id} ({_plain(plan.title)}; {plan.status}) varies {_shared(draft, plan.parameters)} too"
            for plan in self.plans
            if plan.script == path and plan.status not in _OVER and _shared(draft, plan.parameters)
        ]
        return tuple(found[:_CITED])


def _plain(title: str) -> str:
    """Somebody else's words inside a line of ours: nothing in them ends the line or its parts."""
    return " ".join(re.sub(r"[^\w .,:/-]", " ", title).split())[:80]


def _shared(draft: ExperimentDraft, theirs: tuple[str, ...]) -> str:
    """The flags that both vary, however each spells them: a sweep knows `optimizer.lr` as `optimizer_lr`."""
    known = {name_of(name) for name in theirs}
    return ", ".join(parameter.flag for parameter in draft.parameters if name_of(parameter.flag) in known)
