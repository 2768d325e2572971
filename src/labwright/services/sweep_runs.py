"""The runs that a sweep made: put into the store, put into the queue; and what they use."""

from __future__ import annotations

from collections.abc import Sequence

from labwright.compute.lab import Lab
from labwright.compute.slurm.allocation import gpus_held
from labwright.domain.actor import Actor
from labwright.domain.clock import epoch_seconds, now
from labwright.domain.cluster import ClusterType
from labwright.domain.run import Run, RunRecord, RunStatus
from labwright.domain.sweep import Sweep
from labwright.store import runs, sweeps
from labwright.store.database import Transaction


def add_runs(lab: Lab, tx: Transaction, made: Sequence[RunRecord], actor: Actor) -> None:
    runs.insert_many(tx, made, str(actor))
    lab.journal.note_records(tx, (record.text for record in made))


def queue_ready(tx: Transaction, sweep: Sweep, limit: int, actor: Actor) -> int:
    """The next of those that the sweep made and has not queued yet; answers how many there were.

    Not in the journal: after a rebuild they are ready again, and the keeper queues them again.
    """
    found = [runs.get(tx.connection, run_id) for run_id in sweeps.ready_ids(tx.connection, sweep.id, limit)]
    at = now()
    runs.move_many(tx, [(run, run.move(RunStatus.QUEUED, queued_at=at)) for run in found], str(actor))
    return len(found)


def gpus_of_each(lab: Lab, sweep: Sweep) -> int:
    """How many cards one of its runs holds; on Slurm those of all its nodes, however they were asked for.

    Runs that join one by one have nothing in common to tell by.
    """
    if not sweep.template:
        return 0
    run = Run.from_dict(sweep.template)
    return gpus_held(run, lab.slurm.defaults) if lab.cluster.current.type is ClusterType.SLURM else run.gpus


def wall_seconds(sweep: Sweep) -> float:
    """How long it has been at work, without pauses."""
    if sweep.running_since is None:
        return sweep.active_seconds
    return sweep.active_seconds + max(0.0, epoch_seconds(now()) - epoch_seconds(sweep.running_since))
