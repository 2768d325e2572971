"""Ending what an execution or a rehearsal started: its sweeps, and its runs outside of them."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.run import ACTIVE, RunStatus
from labwright.domain.sweep import SweepStatus
from labwright.planning.run_mode import note_failed
from labwright.planning.runs.carriers import counted_carriers
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import runs, sweeps
from labwright.workspace import PlanWorkspaceHandle


def stop_what_it_started(lab: Lab, plan_id: str, actor: Actor) -> None:
    reader = lab.db.reader()
    for status in (SweepStatus.RUNNING, SweepStatus.PAUSED):
        for sweep in sweeps.with_status(reader, status):
            if sweep.plan_id == plan_id:
                sweep_verbs.stop(lab, sweep.id, actor)
    for run in runs.with_status(reader, RunStatus.READY, RunStatus.QUEUED, *ACTIVE):
        if run.plan_id == plan_id and run.sweep_id is None:
            run_verbs.stop(lab, run.id, actor)


def stop_what_is_paused(lab: Lab, handle: PlanWorkspaceHandle, reason: str, actor: Actor) -> None:
    """Of a plan that failed: its runs would stay in the queue, as nobody waits for them any more.

    The step is noted as failed before, so that the next execution makes a sweep of what is left.
    """
    paused = {sweep.id for sweep in sweeps.with_status(lab.db.reader(), SweepStatus.PAUSED)}
    for step, carriers in counted_carriers(handle).items():
        if carriers[-1] in paused:
            note_failed(handle, [step], reason)
            sweep_verbs.stop(lab, carriers[-1], actor)
