"""Choose which queued runs start now (a pure function), and how many runs the machine takes at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from labwright.domain.cluster import Cluster, ClusterType, advise_parallel
from labwright.store.queue import Holder, QueuedRun, here


def choose(
    queues: Mapping[str, list[QueuedRun]],
    active: Iterable[Holder],
    capacity: Capacity,
    limits: Mapping[str, int],
    now: float,
    ageing_seconds: float,
    turns: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Return the ids of the runs to start: by priority, then from the sweep with the fewest active runs, then from the
    sweep whose turn was longest ago (so that sweeps alternate even if one run fits at a time), then by arrival.

    A run that needs more GPUs than are free lets others pass until it has waited for `ageing_seconds`. Then it goes
    first, and GPUs are kept free for it.
    """
    aged = {c.run_id for c in chain.from_iterable(queues.values()) if now - c.queued_at >= ageing_seconds}
    choice = _Choice(queues, list(active), capacity, limits, turns, aged)
    choice.make()
    return choice.chosen


class _Choice:
    """One round of the scheduler: the remaining candidates, the free room, and the turns of the sweeps."""

    def __init__(
        self,
        queues: Mapping[str, list[QueuedRun]],
        active: Sequence[Holder],
        capacity: Capacity,
        limits: Mapping[str, int],
        turns: Mapping[str, int],
        aged: set[str],
    ) -> None:
        self.chosen: list[str] = []
        self._capacity = capacity
        self._limits = limits
        self._turns = dict(turns)
        self._aged = aged
        self._load = Counter(holder.group for holder in active)
        # Runs whose GPUs are free again: their place may be used by their own sweep first.
        self._over = Counter(holder.group for holder in active if holder.is_over)
        self._at_work = len(here(active))
        self._room = _Room(here(active), capacity)
        self._queues: dict[str, list[QueuedRun]] = {}
        for candidate in chain.from_iterable(queues.values()):
            self._queues.setdefault(candidate.queue, []).append(candidate)

    def make(self) -> None:
        first = self._go_first(self._heads())
        while (heads := self._heads()) and not self._is_full:
            self._see_to(min(heads, key=lambda head: self._place(head, head.run_id in first)))

    def _heads(self) -> list[QueuedRun]:
        heads = [queue[0] for queue in self._queues.values() if queue]
        return [head for head in heads if self._load[head.group] < self._limits.get(head.group, NO_LIMIT)]

    @property
    def _is_full(self) -> bool:
        return self._room.is_used_up or self._at_work + len(self.chosen) >= self._capacity.runs

    def _place(self, head: QueuedRun, goes_first: bool) -> tuple[float, ...]:
        load = self._load[head.group] - self._over[head.group]
        return (-head.priority, not goes_first, load, self._turns.get(head.group, 0), head.queued_at)

    def _see_to(self, head: QueuedRun) -> None:
        self._queues[head.queue].pop(0)
        if self._room.holds(head):
            self._room.take(head)
            self.chosen.append(head.run_id)
            self._load[head.group] += 1
            self._turns[head.group] = max(self._turns.values(), default=0) + 1
        elif self._fits_later(head) and head.run_id in self._aged:
            self._room.keep_cards()

    def _fits_later(self, head: QueuedRun) -> bool:
        """Return whether the run fits once enough GPUs are free."""
        return 0 < head.gpus <= self._capacity.gpus and not self._room.is_crowded_for(head)

    def _go_first(self, heads: Iterable[QueuedRun]) -> set[str]:
        """Return, for each priority, the oldest aged run that needs more GPUs than others: it would never find room
        among the narrower ones. One at a time, so that sweeps of wide runs alternate too."""
        on_cards = [head for head in heads if self._fits_later(head)]
        narrowest = min((head.gpus for head in on_cards), default=0)
        aged = [head for head in on_cards if head.gpus > narrowest and head.run_id in self._aged]
        newest_first = sorted(aged, key=lambda head: -head.queued_at)
        return {head.run_id for head in {head.priority: head for head in newest_first}.values()}


class _Room:
    """The free room, which shrinks with each chosen run."""

    def __init__(self, active: Sequence[Holder], capacity: Capacity) -> None:
        claims = [holder.gpus for holder in active if holder.is_waiting and holder.gpus]
        self._claimed, self._narrowest = sum(claims), min(claims, default=0)
        self._gpus = capacity.gpus - sum(holder.leased for holder in active)
        self._cards = capacity.gpus
        self._naming = Counter(name for holder in active for name in set(holder.named))
        self._slots = capacity.cpu_runs - sum(1 for holder in active if holder.gpus == 0)

    @property
    def is_used_up(self) -> bool:
        return self._gpus + self._claimed <= 0 and self._slots <= 0

    def holds(self, candidate: QueuedRun) -> bool:
        """Return whether a run fits. A run that waits for GPUs holds none yet: a narrower run may start beside it."""
        if not candidate.gpus:
            return self._slots > 0
        if self.is_crowded_for(candidate):
            return False
        return candidate.gpus <= self._gpus + (self._claimed if candidate.gpus < self._narrowest else 0)

    def is_crowded_for(self, candidate: QueuedRun) -> bool:
        """Return whether enough runs use a GPU that the candidate names. Only one of them has its lease, so they are
        counted: as many may start as there are GPUs. Other free GPUs do not help."""
        return any(self._naming[name] >= self._cards for name in candidate.named)

    def take(self, candidate: QueuedRun) -> None:
        self._slots -= candidate.gpus == 0
        self._gpus -= candidate.gpus
        self._naming.update(set(candidate.named))

    def keep_cards(self) -> None:
        self._gpus = self._claimed = 0


NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    gpus: int
    cpu_runs: int
    runs: int = NO_LIMIT  # the limit for all runs together

    @property
    def total(self) -> int:
        return min(self.gpus + self.cpu_runs, self.runs)

    def fitting(self, gpus: int) -> int:
        """Return how many runs with this many GPUs each fit at a time: at least one, as it may wait."""
        return max(1, min(self.runs, self.gpus // gpus if gpus else self.cpu_runs))


def capacity_of(cluster: Cluster, max_parallel: int) -> Capacity:
    """Return the capacity: one run per requested GPU; runs without GPUs by the number of cores, or by the setting. A
    number set by hand limits all runs together.

    On Slurm there is no limit: runs without room wait in Slurm's queue instead of ours.
    """
    by_hand = cluster.parallel_by_hand
    runs = by_hand or NO_LIMIT
    if cluster.type is ClusterType.SLURM:
        return Capacity(gpus=NO_LIMIT, cpu_runs=NO_LIMIT, runs=runs)
    cpu_runs = by_hand or max_parallel or advise_parallel(ClusterType.CPU_ONLY, 0, cluster.cpu_count)
    gpus = len(cluster.gpus) or cluster.gpu_count
    return Capacity(gpus=gpus if cluster.type is ClusterType.LOCAL_GPU else 0, cpu_runs=cpu_runs, runs=runs)
