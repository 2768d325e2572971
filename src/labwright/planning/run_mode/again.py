"""Runs that failed in an experiment that finished all the same: the next execution makes them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.errors import Conflict, NotFound
from labwright.domain.ids import SWEEP, is_id
from labwright.domain.run import RunStatus
from labwright.planning.record.state import PlanRunHandoff
from labwright.planning.run_mode.execution import plain
from labwright.planning.runs.carriers import counted_carriers
from labwright.store import sweeps
from labwright.workflow import Store, StoreInUse
from labwright.workspace import PlanWorkspaceHandle


def experiments_with_failed_runs(lab: Lab, handle: PlanWorkspaceHandle, handoff: PlanRunHandoff) -> list[str]:
    """Of the last execution; without those whose result was taken over from bytes that were approved before."""
    carriers = counted_carriers(handle)
    results = _last_results(Store(handle.paths.execution))
    return [
        step
        for step, result in results.items()
        if is_id(carrier := carriers.get(step, [""])[-1], SWEEP) and _lacks_runs(lab, result, carrier, handoff.digest)
    ]


def note_failed(handle: PlanWorkspaceHandle, steps: Iterable[str], reason: str) -> None:
    """So that the next execution makes another sweep for them, of what did not finish."""
    try:
        with Store(handle.paths.execution, sync="each") as store:
            for step in steps:
                store.append({"fact": "failed", "task": step, "step": step, "error": reason})
                store.forget(step)
    except StoreInUse as error:
        raise Conflict(f"Plan {handle.id} is still being ended.", hint="Execute it again in a moment.") from error


def _last_results(store: Store) -> dict[str, Any]:
    """By step; None where it is to be done again, which a kill left at that."""
    found: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for fact in store.facts():
        if fact["fact"] == "run_started":
            last = {}
        elif fact["fact"] == "finished":
            found[fact["key"]] = fact
        if fact["fact"] in ("finished", "reused"):
            last[fact["step"]] = found.get(fact["key"])
        elif fact["fact"] == "forgotten" and fact["step"] in last:
            last[fact["step"]] = None
    return {step: kept and plain(store.stored(kept).encoded) for step, kept in last.items()}


def _lacks_runs(lab: Lab, result: Any, sweep_id: str, digest: str) -> bool:
    if result is None:
        return True
    return any(run["status"] != RunStatus.FINISHED for run in result["runs"]) and _is_of(lab, sweep_id, digest)


def _is_of(lab: Lab, sweep_id: str, digest: str) -> bool:
    """The sweep is asked, as its failed runs may have been deleted."""
    try:
        return bool(sweeps.get(lab.db.reader(), sweep_id).template.get("approved") == digest)
    except NotFound:
        return False
