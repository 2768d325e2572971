"""What a plan's report does not tell yet: whoever reads it must not take old numbers for the newest."""

from __future__ import annotations

from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.run import RunStatus
from labwright.files import read_json
from labwright.planning.results.write import NUMBERS
from labwright.store import sweeps
from labwright.workspace import PlanWorkspaceHandle


def since_written(lab: Lab, handle: PlanWorkspaceHandle, plan: Plan) -> str:
    """A sentence; nothing where the report is the newest there is."""
    if plan.status is PlanStatus.EXECUTING:
        return "Another execution goes on; this is what was found before it. Its own report comes at its end."
    if count := sum(_made_up_for(lab, experiment) for experiment in _told(handle)):
        runs = "1 run that had failed has" if count == 1 else f"{count} runs that had failed have"
        return f"Since it was written, {runs} finished. Bring it up to date: labwright plan execute {plan.id}"
    return ""


def _told(handle: PlanWorkspaceHandle) -> list[dict[str, Any]]:
    """The numbers of the report, by experiment; none where somebody has removed or broken their file."""
    try:
        found: list[dict[str, Any]] = read_json(handle.paths.dir / NUMBERS)["experiments"]
    except (FileNotFoundError, ValueError, KeyError):
        return []
    return found


def _made_up_for(lab: Lab, experiment: dict[str, Any]) -> int:
    """How many of the runs that the report counts as unfinished were retried in their sweep, and finished then."""
    told = {run["run_id"]: run["status"] for run in experiment["runs"]}
    rows = [row for sweep_id in experiment["sweep_ids"] for row in sweeps.runs_of(lab.db.reader(), sweep_id)]
    unfinished = {(row.config_hash, row.seed) for row in rows if told.get(row.id, "finished") != RunStatus.FINISHED}
    finished = {(row.config_hash, row.seed) for row in rows if row.status == RunStatus.FINISHED and row.id not in told}
    return len(unfinished & finished)
