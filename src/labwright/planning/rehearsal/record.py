"""What a rehearsal came to, as it stands in `validation/rehearsal.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import yaml

from labwright.planning.ir.drafts import Strict
from labwright.planning.scan import ProjectScan
from labwright.workspace import PlanWorkspaceHandle

FILE = "validation/rehearsal.yaml"


class RehearsedRun(Strict):
    run_id: str
    params: dict[str, Any]
    seed: int | None = None
    shortened_by: str = ""  # --max-steps 2
    status: str
    over_time: bool = False  # ended by the time limit, without a fault until then
    seconds: float
    memory_mb: float | None = None
    is_whole: bool = False  # as long as the plan's own runs
    reported: bool = False  # a value of the metric that decides
    said: str = ""  # of one that failed, its last words


class Prediction(Strict):
    """Of the whole plan. Intervals, never one number; none where nothing was measured that would say."""

    runs: int
    at_a_time: int
    run_seconds: tuple[float, float] | None = None
    total_seconds: tuple[float, float] | None = None
    memory_mb: float | None = None  # the most that a rehearsed run used
    basis: str


class Rehearsal(Strict):
    outcome: Literal["passed", "failed", "not_possible", "off"]
    reason: str = ""
    cannot_run: bool = False  # not possible because this machine lacks something that the plan's runs need as well
    runs: tuple[RehearsedRun, ...] = ()
    prediction: Prediction | None = None
    notes: tuple[str, ...] = ()  # what it does not cover
    digest: str = ""  # of what was rehearsed

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


Rehearse = Callable[[PlanWorkspaceHandle, ProjectScan], Rehearsal]


def rehearsed(
    rehearse: Rehearse | None, handle: PlanWorkspaceHandle, scan: ProjectScan, digest: str, *, sound: bool
) -> Rehearsal:
    """The last step of validation, and only of what is `sound` so far; written down whatever it comes to."""
    if not sound:
        found = Rehearsal(outcome="not_possible", reason="the checks found faults, which come first")
    elif rehearse is None:
        found = Rehearsal(outcome="not_possible", reason="no server: a rehearsal is made of tracked runs")
    else:
        found = rehearse(handle, scan)
    found = found.model_copy(update={"digest": digest})
    handle.write(FILE, found.to_yaml().encode())
    return found
