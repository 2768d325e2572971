"""Which queued runs start now. The choice is a pure function; around it, what it needs from the database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType
from labwright.store.statements import RUNS

_NO_LIMIT = 1 << 30
_LOOK_AHEAD = 4  # a few more than fit, since some may be passed over


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    run_id: str
    group: str  # the sweep, or "" for runs of none
    priority: int
    gpus: int
    queued_at: float

    @property
    def queue(self) -> str:
        """Runs of one sweep that ask for the same number of GPUs: if one does not fit, none of them does."""
        return f"{self.group}/{self.gpus}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    gpus: int
    cpu_runs: int

    @property
    def total(self) -> int:
        return self.gpus + self.cpu_runs


def capacity_of(cluster: Cluster, max_parallel: int) -> Capacity:
    """One run for each GPU asked for; runs without GPUs by what the cores bear, or by the setting.

    On Slurm as many as there are: what has no room yet waits in its queue, not in ours.
    """
    if cluster.type is ClusterType.SLURM:
        return Capacity(gpus=_NO_LIMIT, cpu_runs=_NO_LIMIT)
    gpus = len(cluster.gpus) or cluster.gpu_count
    return Capacity(
        gpus=gpus if cluster.type is ClusterType.LOCAL_GPU else 0,
        cpu_runs=max_parallel or (cluster.max_parallel if not gpus else max(1, cluster.cpu_count // 2)),
    )


def choose(
    queues: Mapping[str, list[Candidate]],
    active: Iterable[tuple[str, int]],
    capacity: Capacity,
    limits: Mapping[str, int],
    now: float,
    ageing_seconds: float,
) -> list[str]:
    """Priority first; among equals the sweep with the fewest active runs; then order of arrival.

    A run too wide for what is free lets others pass until it has waited for `ageing_seconds`; then cards are kept.
    """
    active = list(active)
    load = Counter(group for group, _ in active)
    free_gpus = capacity.gpus - sum(gpus for _, gpus in active)
    free_slots = capacity.cpu_runs - sum(1 for _, gpus in active if gpus == 0)
    waiting: dict[str, list[Candidate]] = {}
    for candidate in chain.from_iterable(queues.values()):
        waiting.setdefault(candidate.queue, []).append(candidate)
    chosen: list[str] = []
    while True:
        heads = [queue[0] for queue in waiting.values() if queue]
        heads = [head for head in heads if load[head.group] < limits.get(head.group, 1 << 30)]
        if not heads or (free_gpus <= 0 and free_slots <= 0):
            return chosen
        head = min(heads, key=lambda c: (-c.priority, load[c.group], c.queued_at))
        waiting[head.queue].pop(0)
        room = free_slots if head.gpus == 0 else free_gpus
        if max(1, head.gpus) <= room:
            chosen.append(head.run_id)
            load[head.group] += 1
            free_slots -= head.gpus == 0
            free_gpus -= head.gpus
        elif 0 < head.gpus <= capacity.gpus and now - head.queued_at >= ageing_seconds:
            free_gpus = 0


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
        )
        for row in rows
    ]


def active_load(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in connection.execute(RUNS["active_load"])]
