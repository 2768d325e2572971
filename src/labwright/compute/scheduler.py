"""Which queued runs start now. The choice is a pure function; around it, what it needs from the database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType
from labwright.store.statements import RUNS

_LOOK_AHEAD = 16  # how many runs of a sweep are looked at behind one that does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    run_id: str
    group: str  # the sweep, or "" for runs of none
    priority: int
    gpus: int
    queued_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    gpus: int
    cpu_runs: int

    @property
    def total(self) -> int:
        return self.gpus + self.cpu_runs


def capacity_of(cluster: Cluster, max_parallel: int) -> Capacity:
    """One run for each GPU asked for; runs without GPUs by what the cores bear, or by the setting."""
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
    waiting = {group: list(queue) for group, queue in queues.items()}
    chosen: list[str] = []
    while True:
        heads = [queue[0] for group, queue in waiting.items() if queue and load[group] < limits.get(group, 1 << 30)]
        if not heads or (free_gpus <= 0 and free_slots <= 0):
            return chosen
        head = min(heads, key=lambda c: (-c.priority, load[c.group], c.queued_at))
        waiting[head.group].pop(0)
        room = free_slots if head.gpus == 0 else free_gpus
        if max(1, head.gpus) <= room:
            chosen.append(head.run_id)
            load[head.group] += 1
            free_slots -= head.gpus == 0
            free_gpus -= head.gpus
        elif 0 < head.gpus <= capacity.gpus and now - head.queued_at >= ageing_seconds:
            free_gpus = 0


def load_queues(connection: sqlite3.Connection, closed: set[str], limit: int) -> dict[str, list[Candidate]]:
    """The first few of each sweep's queue: enough to choose from, however long the queues are."""
    groups = [row[0] for row in connection.execute(RUNS["queued_groups"])]
    return {group: _queue_of(connection, group, limit + _LOOK_AHEAD) for group in groups if group not in closed}


def _queue_of(connection: sqlite3.Connection, group: str, limit: int) -> list[Candidate]:
    rows = connection.execute(RUNS["queue_of_group"], {"queue_group": group, "limit": limit})
    return [
        Candidate(run_id=row[0], group=group, priority=row[1], gpus=row[2], queued_at=epoch_seconds(row[3]))
        for row in rows
    ]


def active_load(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in connection.execute(RUNS["active_load"])]
