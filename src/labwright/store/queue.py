"""Queued and active runs as the scheduler sees them, and why a run waits."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType
from labwright.store.statements import RUNS

_LOOK_AHEAD = 4  # more than fit, because some may be skipped
COUNTED_AHEAD = 100  # counting beyond this would be slow, and nobody needs the exact number


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRun:
    run_id: str
    group: str  # the sweep, or "" for runs without one
    priority: int
    gpus: int
    queued_at: float
    named: tuple[str, ...] = ()  # GPUs that the command picks itself, even if someone holds them

    @property
    def queue(self) -> str:
        return queue_of(self.group, self.gpus, self.named)


def queue_of(group: str, gpus: int, named: Sequence[str]) -> str:
    """Return the queue of a run: runs of one sweep that request the same number of GPUs, or the same GPUs.

    If one of them does not fit, none does. The database computes the same value for each run.
    """
    return f"{group}/{gpus}{json.dumps(named, ensure_ascii=False, separators=(',', ':')) if named else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An active run and the resources that it uses."""

    run_id: str
    group: str
    gpus: int  # requested
    named: tuple[str, ...] = ()  # GPUs that it picked itself
    unleased: int = 0  # how many of those do not block others: not leased, or not managed by this server
    is_waiting: bool = False  # it is its turn, but someone else uses the GPU
    is_elsewhere: bool = False  # on Slurm while new runs go to this machine, or vice versa
    is_over: bool = False  # its command has ended and its GPUs are free, but its end is not recorded yet

    @property
    def leased(self) -> int:
        return 0 if self.is_over else self.gpus - self.unleased

    @property
    def keeps_others_out(self) -> bool:
        is_here = not (self.is_waiting or self.is_over or self.is_elsewhere)
        return is_here and (not self.gpus or self.leased > 0)


def here(holders: Iterable[Holder]) -> list[Holder]:
    """Return the runs that use the current machine or cluster. The others count only in their sweeps."""
    return [holder for holder in holders if not holder.is_elsewhere]


def load_queues(connection: sqlite3.Connection, closed: set[str], limit: int) -> dict[str, list[QueuedRun]]:
    """Return the first few runs of each queue: enough to choose from, however long the queues are."""
    queues = [row[0] for row in connection.execute(RUNS["queued_groups"])]
    return {
        queue: _first_of(connection, queue, limit + _LOOK_AHEAD)
        for queue in queues
        if queue.partition("/")[0] not in closed
    }


def _first_of(connection: sqlite3.Connection, queue: str, limit: int) -> list[QueuedRun]:
    rows = connection.execute(RUNS["queue_of_group"], {"queue_group": queue, "limit": limit})
    return [
        QueuedRun(
            run_id=row[0],
            group=queue.partition("/")[0],
            priority=row[1],
            gpus=row[2],
            queued_at=epoch_seconds(row[3]),
            named=tuple(json.loads(row[4])),
        )
        for row in rows
    ]


def load_holders(connection: sqlite3.Connection, cluster: Cluster) -> list[Holder]:
    """Return all active runs, and whether each uses the current machine or cluster.

    Of the GPUs that a run names, only those managed by this server block other runs.
    """
    on_slurm = cluster.type is ClusterType.SLURM
    cards = json.dumps([gpu.uuid for gpu in cluster.gpus])
    return [
        Holder(
            group=row[0],
            gpus=row[1],
            run_id=row[2],
            is_waiting=bool(row[3]),
            is_elsewhere=bool(row[4]) != on_slurm,
            named=tuple(json.loads(row[5])),
            unleased=row[6],
        )
        for row in connection.execute(RUNS["active_load"], {"cards": cards})
    ]


def first_in_queue(connection: sqlite3.Connection, queue: str) -> list[str]:
    """Return the runs of one queue in order of start, up to the counting limit."""
    values = {"queue_group": queue, "limit": COUNTED_AHEAD + 1}
    return [row[0] for row in connection.execute(RUNS["first_in_queue"], values)]
