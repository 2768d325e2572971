"""What the server knows that a new plan of this project may build upon: the newest plans, finished runs and sweeps."""

from __future__ import annotations

import json

from labwright.compute.lab import Lab
from labwright.domain.plan import Plan, PlanStatus
from labwright.domain.plan_document.reader import read
from labwright.domain.run import Run, RunStatus
from labwright.planning.record.earlier import EarlierPlan, EarlierRun, EarlierSweep, History
from labwright.planning.scan import ProjectScan
from labwright.store import plans, runs, sweeps

_LOOKED_AT = 100  # of each kind, newest first
_REHEARSAL = "rehearsal"


def earlier_work(lab: Lab, scan: ProjectScan, plan_id: str) -> History:
    """Without the plan itself, runs of sweeps (the sweep stands for them) and rehearsals, which are no results."""
    reader = lab.db.reader()
    earlier, _ = plans.page(reader, PlanStatus, None, _LOOKED_AT, None)
    records, _ = runs.page(reader, runs.Filter(status=(RunStatus.FINISHED,)), _LOOKED_AT, None)
    tried, _ = sweeps.page(reader, _LOOKED_AT, None)
    counts = sweeps.counts_of_all(reader)
    alone = [
        run
        for run in (Run.from_dict(json.loads(record)) for record in records)
        if run.sweep_id is None and _REHEARSAL not in run.tags
    ]
    return History(
        plans=tuple(_plan(lab, scan, plan) for plan in earlier if plan.id != plan_id),
        runs=tuple(_run(run) for run in alone),
        sweeps=tuple(
            EarlierSweep(
                id=sweep.id,
                name=sweep.name,
                command=sweep.base_command,
                status=sweep.status,
                parameters=tuple(sweep.parameters),
                runs=counts.get(sweep.id, {}).get(RunStatus.FINISHED, 0),
            )
            for sweep in tried
            if sweep.plan_id != plan_id
        ),
    )


def _plan(lab: Lab, scan: ProjectScan, plan: Plan) -> EarlierPlan:
    """Its parameters are those of its table, its script the one of the project that its text names."""
    text = plans.version(lab.db.reader(), plan.id, plan.version).raw_markdown
    sections = read(text).sections
    script = next((entry.path for entry in scan.entry_points if entry.path in text), "")
    return EarlierPlan(
        id=plan.id,
        title=plan.title,
        status=plan.status,
        script=script,
        parameters=tuple(row.name for row in sections.parameters),
        metric=sections.metrics.primary.name if sections.metrics.primary else "",
    )


def _run(run: Run) -> EarlierRun:
    last = {key: known.get("last") for key, known in run.summary.items()}
    metrics = {key: float(value) for key, value in last.items() if isinstance(value, int | float)}
    return EarlierRun(id=run.id, command=run.command, status=run.status, metrics=metrics)
