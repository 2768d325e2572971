"""Explain why a queued run waits: pure functions over one snapshot of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labwright.compute.scheduler import Capacity
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.store.queue import COUNTED_AHEAD, Holder, QueuedRun, here

_NAMED_HOLDERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The state of the machine, used to explain many runs."""

    holders: Sequence[Holder]
    capacity: Capacity
    kept_for: str = ""  # the run that free GPUs are kept for, because it has waited long

    @property
    def here(self) -> list[Holder]:
        return here(self.holders)

    @property
    def free_gpus(self) -> int:
        return max(0, self.capacity.gpus - sum(holder.gpus - holder.unleased for holder in self.here))


def why_queued(
    run_id: str, gpus: int, ahead: int | None, sweep: Sweep | None, look: Look, named: Sequence[str] = ()
) -> str:
    """Return why a queued run does not start. `ahead` is None if more runs are ahead than were counted."""
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


def keeps_cards(heads: Iterable[QueuedRun], look: Look, now: float, ageing_seconds: float) -> str:
    """Return the run that `choose` keeps free GPUs for, or ""."""
    wide = [head for head in heads if look.free_gpus < head.gpus <= look.capacity.gpus]
    fits_later = [head for head in wide if not _crowded(head.named, look)]
    aged = [head for head in fits_later if now - head.queued_at >= ageing_seconds]
    return min(aged, key=lambda head: (-head.priority, head.queued_at)).run_id if aged else ""


def _ahead_words(ahead: int | None, *, of_sweep: bool) -> str:
    count = f"more than {COUNTED_AHEAD}" if ahead is None else str(ahead)
    return f"{count} {'run' if ahead == 1 else 'runs'}{' of its sweep' if of_sweep else ''} ahead"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _taken_by(holders: Sequence[Holder]) -> str:
    """Name the runs that use GPUs, and those that wait for them and come first."""
    using = _names([holder for holder in holders if not holder.is_waiting])
    waiting = _names([holder for holder in holders if holder.is_waiting])
    return " and ".join(filter(None, (using and f"in use by {using}", waiting and f"waited for by {waiting}")))


def _names(holders: Sequence[Holder]) -> str:
    named = ", ".join(holder.run_id for holder in holders[:_NAMED_HOLDERS])
    more = len(holders) - _NAMED_HOLDERS
    return f"{named} and {more} more" if more > 0 else named
