"""Which runs of a plan's sweep count."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.run import Run, RunStatus
from labwright.store import runs, sweeps


def counted_runs(lab: Lab, sweep_id: str) -> list[Run]:
    """One for each configuration and seed: where one was tried again, the one that finished, else the newest.

    What somebody else put into the sweep is not the plan's.
    """
    found: dict[tuple[str | None, int | None], Run] = {}
    for row in sweeps.runs_of(lab.db.reader(), sweep_id):
        if row.trial is None:
            continue
        run, known = runs.get(lab.db.reader(), row.id), found.get((row.config_hash, row.seed))
        if known is None or _rank(run) > _rank(known):
            found[row.config_hash, row.seed] = run
    return list(found.values())


def _rank(run: Run) -> tuple[bool, str]:
    return run.status is RunStatus.FINISHED, run.created_at
