"""Which queued runs start now, and why the others wait. Both are pure functions; around them, what they need from the
database."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from labwright.domain.clock import epoch_seconds
from labwright.domain.cluster import Cluster, ClusterType, advise_parallel
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.store.statements import RUNS

_NO_LIMIT = 1 << 30
_LOOK_AHEAD = 4  # a few more than fit, since some may be passed over
COUNTED_AHEAD = 100  # beyond so many nobody wants the exact number, and counting would cost
_NAMED_HOLDERS = 4


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

    @property
    def may_keep_cards(self) -> bool:
        """Whether free cards can be kept until there are enough for it: those that are named may be anybody's."""
        return self.gpus > 0 and not self.named


def queue_of(group: str, gpus: int, named: Sequence[str]) -> str:
    """Runs of one sweep that ask for the same number of GPUs, or the same ones: if one does not fit, none of them does.
    As the database computes it for each run."""
    return f"{group}/{gpus}{json.dumps(named, ensure_ascii=False, separators=(',', ':')) if named else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    gpus: int
    cpu_runs: int
    runs: int = _NO_LIMIT  # at most so many in all, whatever they take

    @property
    def total(self) -> int:
        return min(self.gpus + self.cpu_runs, self.runs)

    def fitting(self, gpus: int) -> int:
        """How many runs that take so many cards each go at a time: one in any case, for it may wait."""
        return max(1, min(self.runs, self.gpus // gpus if gpus else self.cpu_runs))


def capacity_of(cluster: Cluster, max_parallel: int) -> Capacity:
    """One run for each GPU asked for; runs without GPUs by what the cores bear, or by the setting. A number set by hand
    limits all of them together.

    On Slurm as many as there are: what has no room yet waits in its queue, not in ours.
    """
    by_hand = cluster.parallel_by_hand
    runs = by_hand or _NO_LIMIT
    if cluster.type is ClusterType.SLURM:
        return Capacity(gpus=_NO_LIMIT, cpu_runs=_NO_LIMIT, runs=runs)
    cpu_runs = by_hand or max_parallel or advise_parallel(ClusterType.CPU_ONLY, 0, cluster.cpu_count)
    gpus = len(cluster.gpus) or cluster.gpu_count
    return Capacity(gpus=gpus if cluster.type is ClusterType.LOCAL_GPU else 0, cpu_runs=cpu_runs, runs=runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An active run and what it takes of the machine."""

    run_id: str
    group: str
    gpus: int  # that it asked for
    named: tuple[str, ...] = ()  # cards that it picked itself
    unleased: int = 0  # how many of those it has no lease of
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


class _Room:
    """What is free, and less of it with each run that is chosen."""

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

    def holds(self, candidate: Candidate) -> bool:
        """Whoever waits for cards has none, so what is narrower may try its luck beside it. Of runs that name one card
        only the first has its lease, so those are counted: as many go as there are cards."""
        if not candidate.gpus:
            return self._slots > 0
        if any(self._naming[name] >= self._cards for name in candidate.named):
            return False
        return candidate.gpus <= self._gpus + (self._claimed if candidate.gpus < self._narrowest else 0)

    def take(self, candidate: Candidate) -> None:
        self._slots -= candidate.gpus == 0
        self._gpus -= candidate.gpus
        self._naming.update(set(candidate.named))

    def keep_cards(self) -> None:
        self._gpus = self._claimed = 0


def choose(
    queues: Mapping[str, list[Candidate]],
    active: Iterable[Holder],
    capacity: Capacity,
    limits: Mapping[str, int],
    now: float,
    ageing_seconds: float,
    turns: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Priority first; among equals the sweep with the fewest runs at work, then the one whose turn was longest ago, so
    that sweeps alternate also where one run fits at a time; then order of arrival.

    A run too wide for what is free lets others pass until it has waited for `ageing_seconds`; then it goes before them,
    and cards are kept.
    """
    active = list(active)
    load = Counter(holder.group for holder in active)
    over = Counter(holder.group for holder in active if holder.is_over)  # the place is free, and was their sweep's
    active = here(active)
    room = _Room(active, capacity)
    waiting: dict[str, list[Candidate]] = {}
    for candidate in chain.from_iterable(queues.values()):
        waiting.setdefault(candidate.queue, []).append(candidate)
    chosen: list[str] = []
    had = dict(turns)
    first: set[str] | None = None
    while True:
        heads = [queue[0] for queue in waiting.values() if queue]
        heads = [head for head in heads if load[head.group] < limits.get(head.group, _NO_LIMIT)]
        if not heads or room.is_used_up or len(active) + len(chosen) >= capacity.runs:
            return chosen
        first = _go_first(heads, capacity, now, ageing_seconds) if first is None else first
        head = min(
            heads, key=lambda c: _place(c, c.run_id in first, load[c.group] - over[c.group], had.get(c.group, 0))
        )
        waiting[head.queue].pop(0)
        if room.holds(head):
            chosen.append(head.run_id)
            load[head.group] += 1
            had[head.group] = max(had.values(), default=0) + 1
            room.take(head)
        elif head.may_keep_cards and head.gpus <= capacity.gpus and now - head.queued_at >= ageing_seconds:
            room.keep_cards()


def here(holders: Iterable[Holder]) -> list[Holder]:
    """Those that take something of what there is to run on now; in their sweeps the others count too."""
    return [holder for holder in holders if not holder.is_elsewhere]


def _place(candidate: Candidate, goes_first: bool, load: int, had: int) -> tuple[float, ...]:
    return (-candidate.priority, not goes_first, load, had, candidate.queued_at)


def _go_first(heads: Iterable[Candidate], capacity: Capacity, now: float, ageing_seconds: float) -> set[str]:
    """Of each priority the oldest run that has aged and asks for more cards than others do: among the narrower ones it
    would never find room. One at a time, so that sweeps of wide runs alternate too."""
    on_cards = [head for head in heads if head.may_keep_cards and head.gpus <= capacity.gpus]
    narrowest = min((head.gpus for head in on_cards), default=0)
    aged = [head for head in on_cards if head.gpus > narrowest and now - head.queued_at >= ageing_seconds]
    return {head.run_id for head in {head.priority: head for head in sorted(aged, key=_newest_first)}.values()}


def _newest_first(candidate: Candidate) -> float:
    return -candidate.queued_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at the machine shows, for the reasons of many runs."""

    holders: Sequence[Holder]
    capacity: Capacity
    kept_for: str = ""  # the wide run that has waited so long that free cards are kept for it

    @property
    def here(self) -> list[Holder]:
        return here(self.holders)

    @property
    def free_gpus(self) -> int:
        return max(0, self.capacity.gpus - sum(holder.gpus - holder.unleased for holder in self.here))


def why_queued(
    run_id: str, gpus: int, ahead: int | None, sweep: Sweep | None, look: Look, named: Sequence[str] = ()
) -> str:
    """What keeps a queued run from starting, in words. `ahead` is None where more are than were counted."""
    words = [_held_by_sweep(sweep, look.holders)] if sweep else []
    words.append(_over_the_limit(look) or _crowded(named, look))
    words.append("" if words[-1] else (_lacks_gpus(run_id, gpus, look) if gpus else _lacks_slot(look)))
    if ahead != 0:
        words.append(_ahead_words(ahead, of_sweep=sweep is not None))
    return "; ".join(filter(None, words))


def _held_by_sweep(sweep: Sweep, holders: Sequence[Holder]) -> str:
    if sweep.status is SweepStatus.PAUSED:
        return "its sweep is paused"
    if sweep.status is SweepStatus.STOPPED:
        return "its sweep was stopped"
    own = sum(1 for holder in holders if holder.group == sweep.id)
    return f"its sweep runs {sweep.parallel} at a time" if sweep.parallel and own >= sweep.parallel else ""


def _over_the_limit(look: Look) -> str:
    runs = look.capacity.runs
    if len(look.here) < runs:
        return ""
    return f"{'1 run' if runs == 1 else f'{runs} runs'} at a time, as set by hand: {_names(look.here)}"


def _crowded(named: Sequence[str], look: Look) -> str:
    for name in named:
        using = [holder for holder in look.here if name in holder.named]
        if len(using) >= look.capacity.gpus:
            return f"it names GPU {name}, as {_names(using)} do"
    return ""


def _lacks_gpus(run_id: str, wanted: int, look: Look) -> str:
    on_cards = [holder for holder in look.here if holder.gpus > holder.unleased]
    gpus, free = look.capacity.gpus, look.free_gpus
    if wanted > gpus:
        return f"it asks for {_gpus(wanted)}; this machine has {gpus or 'none'}"
    if free == 0:
        return f"{'the GPU is' if gpus == 1 else f'all {gpus} GPUs are'} {_taken_by(on_cards)}"
    if free < wanted:
        return f"it asks for {_gpus(wanted)}; {free} of {gpus} free, the others {_taken_by(on_cards)}"
    kept = look.kept_for not in ("", run_id)
    return f"{_gpus(free)} free, kept for {look.kept_for}, which has waited longer" if kept else ""


def _lacks_slot(look: Look) -> str:
    in_slots = [holder for holder in look.here if not holder.gpus]
    slots = look.capacity.cpu_runs
    if len(in_slots) < slots:
        return ""
    return f"{len(in_slots)} of {slots} slots in use by {_names(in_slots)}"


def keeps_cards(heads: Iterable[Candidate], look: Look, now: float, ageing_seconds: float) -> str:
    """The run that free cards are kept for by `choose`, or none."""
    fits_later = [head for head in heads if head.may_keep_cards and look.free_gpus < head.gpus <= look.capacity.gpus]
    aged = [head for head in fits_later if now - head.queued_at >= ageing_seconds]
    return min(aged, key=lambda head: (-head.priority, head.queued_at)).run_id if aged else ""


def _ahead_words(ahead: int | None, *, of_sweep: bool) -> str:
    count = f"more than {COUNTED_AHEAD}" if ahead is None else str(ahead)
    return f"{count} {'run' if ahead == 1 else 'runs'}{' of its sweep' if of_sweep else ''} ahead"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _taken_by(holders: Sequence[Holder]) -> str:
    """A run that waits for a card itself has none; it only comes first."""
    using = _names([holder for holder in holders if not holder.is_waiting])
    waiting = _names([holder for holder in holders if holder.is_waiting])
    return " and ".join(filter(None, (using and f"in use by {using}", waiting and f"waited for by {waiting}")))


def _names(holders: Sequence[Holder]) -> str:
    named = ", ".join(holder.run_id for holder in holders[:_NAMED_HOLDERS])
    more = len(holders) - _NAMED_HOLDERS
    return f"{named} and {more} more" if more > 0 else named


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


def load_holders(connection: sqlite3.Connection, kind: ClusterType) -> list[Holder]:
    """All active runs; where they are, by what there is to run on now."""
    on_slurm = kind is ClusterType.SLURM
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
        for row in connection.execute(RUNS["active_load"])
    ]


def first_in_queue(connection: sqlite3.Connection, queue: str) -> list[str]:
    """The runs of one queue in order of start, as far as they are counted."""
    values = {"queue_group": queue, "limit": COUNTED_AHEAD + 1}
    return [row[0] for row in connection.execute(RUNS["first_in_queue"], values)]
