"""A database as a long-used project has it: many runs with their whole history of events.

Made through the store, in one process and few transactions. The runs have rows and events but no folders.
"""

from __future__ import annotations

import functools
from pathlib import Path

from benchmarks.work_folder import new_folder
from labwright.domain.clock import rfc3339
from labwright.domain.ids import RUN, new_id
from labwright.domain.run import Run, RunStatus
from labwright.store import runs
from labwright.store.database import Database, Transaction

MANY = 100_000
_BATCH = 5_000
_FIRST_TIME = 1_750_000_000.0
_ENDS = (*[RunStatus.FINISHED] * 17, RunStatus.FAILED, RunStatus.STOPPED, None)  # of twenty; None stays ready


@functools.cache
def filled_database(count: int = MANY) -> Path:
    """Made once a session; whoever uses it copies it."""
    folder = new_folder("filled")
    database = Database(folder / "labwright.db")
    for first in range(0, count, _BATCH):
        with database.transaction() as tx:
            for number in range(first, min(first + _BATCH, count)):
                _store_one(tx, number)
    database._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return folder / "labwright.db"


def _store_one(tx: Transaction, number: int) -> None:
    end = _ENDS[number % len(_ENDS)]
    run = _new_run(number)
    if end is None:
        runs.insert(tx, run, "person")
        return
    queued = run.move(RunStatus.QUEUED, queued_at=run.created_at)
    runs.insert(tx, queued, "person")
    launched = queued.move(RunStatus.LAUNCHING, launched_at=run.created_at, launcher="local", run_dir=f"/r/{run.id}")
    started = launched.move(RunStatus.RUNNING, started_at=run.created_at, pid=4242, node="bench")
    code = {RunStatus.FINISHED: 0, RunStatus.FAILED: 1, RunStatus.STOPPED: 143}[end]
    ended = started.move(end, ended_at=rfc3339(_FIRST_TIME + number + 60), exit_code=code, usage={"wall_seconds": 60.0})
    for before, after in ((queued, launched), (launched, started), (started, ended)):
        runs.change(tx, before, after, "system")


def _new_run(number: int) -> Run:
    return Run(
        id=new_id(RUN),
        name=f"train lr={number % 100 / 1000}",
        command=f"python train.py --lr {number % 100 / 1000} --seed {number % 7}",
        workdir="/home/somebody/project",
        created_at=rfc3339(_FIRST_TIME + number),
        created_by="person",
        params={"lr": number % 100 / 1000},
        seed=number % 7,
        tags=("baseline",) if number % 3 else (),
        snapshot={"git_commit": "0" * 40, "dirty": False, "hash": f"{number // 50:064x}"},
    )
