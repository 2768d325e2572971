"""What waits in the queues and what is at work, as the database has it: for the scheduler, and for who asks why."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType
from labwright.store.statements import RUNS

_LOOK_AHEAD = 4  # a few more than fit, since some may be passed over
COUNTED_AHEAD = 100  # beyond so many nobody wants the exact number, and counting would cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    run_id: str
    group: str  # the sweep, or "" for runs of none
    priority: int
    gpus: int
    queued_at: float
    named: tuple[str, ...] = ()  # cards that it picks itself: it goes onto them also where somebody holds them

    @property
    def queue(self) -> str:
        return queue_of(self.group, self.gpus, self.named)


def queue_of(group: str, gpus: int, named: Sequence[str]) -> str:
    """Runs of one sweep that ask for the same number of GPUs, or the same ones: if one does not fit, none of them does.
    As the database computes it for each run."""
    return f"{group}/{gpus}{json.dumps(named, ensure_ascii=False, separators=(',', ':')) if named else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An active run and what it takes of the machine."""

    run_id: str
    group: str
    gpus: int  # that it asked for
    named: tuple[str, ...] = ()  # cards that it picked itself
    unleased: int = 0  # how many of those it keeps from nobody: not leased, or not this server's to give
    is_waiting: bool = False  # its turn has come, but somebody else is on the card
    is_elsewhere: bool = False  # on Slurm while runs go to this machine, or the other way round
    is_over: bool = False  # its command is gone and its cards are given back; it counts as a run until its end is told

    @property
    def leased(self) -> int:
        return 0 if self.is_over else self.gpus - self.unleased

    @property
    def keeps_others_out(self) -> bool:
        is_here = not (self.is_waiting or self.is_over or self.is_elsewhere)
        return is_here and (not self.gpus or self.leased > 0)


def here(holders: Iterable[Holder]) -> list[Holder]:
    """Those that take something of what there is to run on now; in their sweeps the others count too."""
    return [holder for holder in holders if not holder.is_elsewhere]


def load_queues(connection: sqlite3.Connection, closed: set[str], limit: int) -> dict[str, list[Candidate]]:
    """The first few of each queue: enough to choose from, however long the queues are."""
    queues = [row[0] for row in connection.execute(RUNS["queued_groups"])]
    return {
        queue: _first_of(connection, queue, limit + _LOOK_AHEAD)
        for queue in queues
        if queue.partition("/")[0] not in closed
    }


def _first_of(connection: sqlite3.Connection, queue: str, limit: int) -> list[Candidate]:
    rows = connection.execute(RUNS["queue_of_group"], {"queue_group": queue, "limit": limit})
    return [
        Candidate(
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
    """All active runs; where they are, by what there is to run on now. Of cards that they name, only those which are
    this server's to give are taken from others."""
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
    """The runs of one queue in order of start, as far as they are counted."""
    values = {"queue_group": queue, "limit": COUNTED_AHEAD + 1}
    return [row[0] for row in connection.execute(RUNS["first_in_queue"], values)]
