"""Which queued runs start now: properties of the choice, for any queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labwright.compute.queue_reasons import Look, keeps_cards, why_queued
from labwright.compute.scheduler import Capacity, capacity_of, choose
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.store.queue import Holder, QueuedRun

NOW = 1_000_000.0
AGEING = 30.0
GROUPS = ["", "sweep-a", "sweep-b"]


def candidate(
    name: str, *, group: str = "", priority: int = 0, gpus: int = 0, waited: float = 0.0, named: tuple[str, ...] = ()
) -> QueuedRun:
    return QueuedRun(run_id=name, group=group, priority=priority, gpus=gpus, queued_at=NOW - waited, named=named)


def in_order(candidates: Iterable[QueuedRun]) -> dict[str, list[QueuedRun]]:
    """Return the runs as the database does: by priority, then arrival, for each sweep."""
    queues: dict[str, list[QueuedRun]] = {}
    for one in sorted(candidates, key=lambda c: (-c.priority, c.queued_at)):
        queues.setdefault(one.group, []).append(one)
    return queues


def pick(
    candidates: Iterable[QueuedRun],
    capacity: Capacity,
    active: Iterable[tuple[str, int]] = (),
    limits: Mapping[str, int] | None = None,
) -> list[str]:
    holders = [Holder(run_id=f"active-{i}", group=group, gpus=gpus) for i, (group, gpus) in enumerate(active)]
    return choose(in_order(candidates), holders, capacity, limits or {}, NOW, AGEING)


@st.composite
def queues_of_runs(draw: st.DrawFn) -> list[QueuedRun]:
    facts = draw(
        st.lists(
            st.tuples(
                st.sampled_from(GROUPS), st.integers(-2, 2), st.integers(0, 5), st.floats(0, 100, allow_nan=False)
            ),
            max_size=12,
        )
    )
    return [
        candidate(f"run-{i}", group=group, priority=priority, gpus=gpus, waited=waited)
        for i, (group, priority, gpus, waited) in enumerate(facts)
    ]


capacities = st.builds(Capacity, gpus=st.integers(0, 4), cpu_runs=st.integers(0, 4))
loads = st.lists(st.tuples(st.sampled_from(GROUPS), st.integers(0, 2)), max_size=5)
parallel = st.dictionaries(st.sampled_from(GROUPS[1:]), st.integers(0, 3))


@given(queues_of_runs(), capacities, loads, parallel)
def test_capacity_is_never_exceeded(
    queued: list[QueuedRun], capacity: Capacity, active: list[tuple[str, int]], limits: dict[str, int]
) -> None:
    chosen = pick(queued, capacity, active, limits)
    assert len(chosen) == len(set(chosen))
    by_id = {one.run_id: one for one in queued}
    new = [by_id[run_id] for run_id in chosen]
    if any(one.gpus for one in new):
        assert sum(one.gpus for one in new) + sum(gpus for _, gpus in active) <= capacity.gpus
    slots = [one for one in new if one.gpus == 0]
    if slots:
        assert len(slots) + sum(1 for _, gpus in active if gpus == 0) <= capacity.cpu_runs
    load = Counter(group for group, _ in active) + Counter(one.group for one in new)
    for group in {one.group for one in new}:
        assert load[group] <= limits.get(group, 1 << 30)


@given(queues_of_runs(), capacities, loads)
def test_no_run_waits_if_it_fits_and_no_older_run_needs_the_room(
    queued: list[QueuedRun], capacity: Capacity, active: list[tuple[str, int]]
) -> None:
    chosen = set(pick(queued, capacity, active))
    new = [one for one in queued if one.run_id in chosen]
    free_slots = capacity.cpu_runs - sum(1 for _, gpus in active if not gpus) - sum(1 for o in new if not o.gpus)
    free_gpus = capacity.gpus - sum(gpus for _, gpus in active) - sum(one.gpus for one in new)
    left = [one for one in queued if one.run_id not in chosen]
    assert not (free_slots > 0 and any(one.gpus == 0 for one in left))
    served_later = any(NOW - one.queued_at >= AGEING and free_gpus < one.gpus <= capacity.gpus for one in left)
    if not served_later:
        assert not any(0 < one.gpus <= free_gpus for one in left)


@given(queues_of_runs(), capacities)
def test_priority_goes_first_among_runs_of_one_width(queued: list[QueuedRun], capacity: Capacity) -> None:
    chosen = set(pick(queued, capacity))
    for started in (one for one in queued if one.run_id in chosen):
        for passed in (one for one in queued if one.run_id not in chosen and one.gpus == started.gpus):
            assert passed.priority <= started.priority


@given(st.integers(1, 4), st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_aged_wide_run_reserves_every_freed_card(cards: int, narrow: list[int]) -> None:
    wide = candidate("wide", gpus=cards, waited=AGEING + 50)
    others = [candidate(f"n{i}", gpus=min(g, cards), waited=5.0) for i, g in enumerate(narrow)]
    assert pick([wide, *others], Capacity(gpus=cards, cpu_runs=1), active=[("", 1)]) == []
    assert pick([wide, *others], Capacity(gpus=cards, cpu_runs=1))[0] == "wide"


def test_aged_wide_run_goes_before_a_sweep_with_fewer_active_runs() -> None:
    wide = candidate("wide", gpus=2, waited=AGEING + 1)
    sweep = [candidate(f"s{i}", group="sweep-a", gpus=1, waited=5) for i in range(3)]
    assert pick([wide, *sweep], Capacity(gpus=3, cpu_runs=1), active=[("", 1), ("", 1)]) == []
    assert pick([wide, *sweep], Capacity(gpus=3, cpu_runs=1), active=[("", 1)]) == ["wide"]


def test_runs_of_one_width_alternate_between_sweeps_whatever_their_age() -> None:
    queued = [candidate(f"a{i}", group="sweep-a", gpus=2, waited=AGEING + 50) for i in range(4)]
    queued += [candidate(f"b{i}", group="sweep-b", gpus=2, waited=AGEING + 1) for i in range(4)]
    assert Counter(name[0] for name in pick(queued, Capacity(gpus=8, cpu_runs=1))) == {"a": 2, "b": 2}


def test_run_waiting_for_its_cards_blocks_no_narrower_run() -> None:
    waiting = Holder(run_id="wide", group="", gpus=2, is_waiting=True)
    queued = in_order([candidate("pair", gpus=2, waited=9), candidate("narrow", gpus=1), candidate("more", gpus=1)])

    def chosen(*active: Holder) -> list[str]:
        return choose(queued, active, Capacity(gpus=2, cpu_runs=0), {}, NOW, AGEING)

    assert chosen(waiting) == ["narrow", "more"]
    assert chosen(waiting, Holder(run_id="busy", group="", gpus=1)) == ["narrow"]
    assert chosen(waiting, Holder(run_id="too", group="", gpus=1, is_waiting=True)) == []


def test_ended_command_holds_no_card_but_counts_in_its_sweep() -> None:
    over = Holder(run_id="over", group="sweep-a", gpus=1, is_over=True)
    queued = in_order([candidate("same", group="sweep-a", gpus=1), candidate("other", gpus=1)])

    def chosen(limits: dict[str, int]) -> list[str]:
        return choose(queued, [over], Capacity(gpus=2, cpu_runs=0), limits, NOW, AGEING)

    assert sorted(chosen({})) == ["other", "same"]
    assert chosen({"sweep-a": 1}) == ["other"]


@pytest.mark.parametrize("gpus", [0, 1])
def test_run_elsewhere_takes_no_room_but_counts_in_its_sweep(gpus: int) -> None:
    away = Holder(run_id="away", group="sweep-a", gpus=gpus, is_elsewhere=True)
    capacity = Capacity(gpus=gpus, cpu_runs=1 - gpus, runs=1)

    def chosen(group: str) -> list[str]:
        queues = in_order([candidate("x", group=group, gpus=gpus)])
        return choose(queues, [away], capacity, {"sweep-a": 1}, NOW, AGEING)

    assert (chosen(""), chosen("sweep-a")) == (["x"], [])
    there = Look(holders=[away], capacity=capacity)
    assert why_queued("run-x", gpus, 0, None, there) == ""
    assert why_queued("run-x", gpus, 0, sweep(parallel=1), there) == "its sweep runs 1 at a time"


def test_young_wide_run_lets_narrow_ones_pass() -> None:
    queued = [candidate("wide", gpus=2, waited=10), candidate("narrow", gpus=1, waited=5)]
    assert pick(queued, Capacity(gpus=2, cpu_runs=1), active=[("", 1)]) == ["narrow"]


def test_run_too_wide_for_the_machine_blocks_nobody() -> None:
    """It was queued when there were more cards. It can never start, so cards reserved for it would idle forever."""
    queued = [candidate("impossible", gpus=4, waited=AGEING * 10), candidate("narrow", gpus=1, waited=5)]
    assert pick(queued, Capacity(gpus=2, cpu_runs=1)) == ["narrow"]


def test_aged_wide_run_blocks_no_run_without_gpus() -> None:
    queued = [candidate("wide", gpus=2, waited=AGEING + 1), candidate("plain", waited=1)]
    assert pick(queued, Capacity(gpus=2, cpu_runs=1), active=[("", 1)]) == ["plain"]


def test_two_sweeps_share_the_machine_evenly() -> None:
    queued = [candidate(f"a{i}", group="sweep-a", waited=100 - i) for i in range(8)]
    queued += [candidate(f"b{i}", group="sweep-b", waited=10 - i) for i in range(8)]
    chosen = pick(queued, Capacity(gpus=0, cpu_runs=6))
    assert Counter(name[0] for name in chosen) == {"a": 3, "b": 3}


def test_late_sweep_catches_up_with_active_runs() -> None:
    queued = [candidate(f"a{i}", group="sweep-a", waited=100) for i in range(4)]
    queued += [candidate(f"b{i}", group="sweep-b", waited=1) for i in range(4)]
    chosen = pick(queued, Capacity(gpus=0, cpu_runs=6), active=[("sweep-a", 0), ("sweep-a", 0)])
    assert Counter(name[0] for name in chosen) == {"b": 3, "a": 1}


def test_freed_slot_goes_to_the_sweep_with_fewer_active_runs_before_the_end_is_recorded() -> None:
    groups = {"a0": "sweep-a", "a1": "sweep-a", "b0": "sweep-b", "b1": "sweep-b"}
    active = [Holder(run_id=name, group=group, gpus=1, is_over=name == "a0") for name, group in groups.items()]
    queued = in_order([candidate("a2", group="sweep-a", gpus=1), candidate("b2", group="sweep-b", gpus=1)])
    turns = {"sweep-b": 1, "sweep-a": 2}
    assert choose(queued, active, Capacity(gpus=4, cpu_runs=0), {}, NOW, AGEING, turns) == ["a2"]


def test_paused_sweep_starts_nothing() -> None:
    queued = [candidate("a", group="sweep-a"), candidate("b")]
    assert pick(queued, Capacity(gpus=0, cpu_runs=5), limits={"sweep-a": 0}) == ["b"]


def test_capacity_follows_the_kind_of_machine() -> None:
    cpu = Cluster(type=ClusterType.CPU_ONLY, cpu_count=8, max_parallel=4)
    assert capacity_of(cpu, 0) == Capacity(gpus=0, cpu_runs=4)
    assert capacity_of(cpu, 9) == Capacity(gpus=0, cpu_runs=9)
    gpu = Cluster(type=ClusterType.LOCAL_GPU, gpu_count=4, cpu_count=8, max_parallel=4)
    assert capacity_of(gpu, 0) == Capacity(gpus=4, cpu_runs=4)


@pytest.mark.parametrize("kind", ClusterType)
def test_manual_limit_counts_all_runs(kind: ClusterType) -> None:
    cards = 4 if kind is ClusterType.LOCAL_GPU else 0
    capacity = capacity_of(Cluster(type=kind, gpu_count=cards, cpu_count=8, parallel_by_hand=2), 6)
    queued = [candidate("a", gpus=cards and 1), candidate("b", gpus=cards and 1), candidate("c", gpus=0)]
    assert pick(queued, capacity) == ["a", "b"]
    assert pick(queued, capacity, active=[("", 0)]) == ["a"]
    full = Look(holders=[Holder(run_id=f"run-{name}", group="", gpus=0) for name in "xy"], capacity=capacity)
    assert why_queued("run-a", cards and 1, 0, None, full) == "2 runs at a time, as set by hand: run-x, run-y"


def look(*holders: tuple[str, str, int], gpus: int = 0, slots: int = 1, kept_for: str = "") -> Look:
    held = [Holder(run_id=run_id, group=group, gpus=cards) for run_id, group, cards in holders]
    return Look(holders=held, capacity=Capacity(gpus=gpus, cpu_runs=slots), kept_for=kept_for)


def sweep(parallel: int | None = None, status: SweepStatus = SweepStatus.RUNNING) -> Sweep:
    return Sweep(id="sweep-a", name="a", created_at="", created_by="", parallel=parallel, status=status)


def test_gpu_run_is_told_who_has_the_cards() -> None:
    full = look(("run-a", "", 3), ("run-b", "", 1), ("run-c", "", 0), gpus=4)
    assert why_queued("run-x", 1, 0, None, full) == "all 4 GPUs are in use by run-a, run-b"
    half = look(("run-a", "", 3), gpus=4)
    assert why_queued("run-x", 2, 0, None, half) == "it asks for 2 GPUs; 1 of 4 free, the others in use by run-a"
    assert why_queued("run-x", 5, 0, None, half) == "it asks for 5 GPUs; this machine has 4"
    assert why_queued("run-x", 1, 0, None, look(("run-a", "", 1), gpus=1)) == "the GPU is in use by run-a"


def test_run_waiting_for_a_card_is_not_shown_as_its_user() -> None:
    waiting = Holder(run_id="run-w", group="", gpus=1, is_waiting=True)
    one = replace(look(gpus=1), holders=[waiting])
    assert why_queued("run-x", 1, 0, None, one) == "the GPU is waited for by run-w"
    two = replace(look(gpus=2), holders=[waiting, Holder(run_id="run-a", group="", gpus=1)])
    assert why_queued("run-x", 1, 0, None, two) == "all 2 GPUs are in use by run-a and waited for by run-w"


def test_run_without_gpus_is_told_about_slots_and_runs_ahead() -> None:
    full = look(*((f"run-{i}", "", 0) for i in range(6)), slots=6)
    words = why_queued("run-x", 0, 5, None, full)
    assert words == "6 of 6 slots in use by run-0, run-1, run-2, run-3 and 2 more; 5 runs ahead"
    assert why_queued("run-x", 0, None, sweep(), full).endswith("; more than 100 runs of its sweep ahead")
    assert why_queued("run-x", 0, 0, None, look()) == ""


def test_run_is_told_that_its_sweep_holds_it_back() -> None:
    busy = look(("run-a", "sweep-a", 0), slots=4)
    assert why_queued("run-x", 0, 0, sweep(parallel=1), busy) == "its sweep runs 1 at a time"
    assert why_queued("run-x", 0, 0, sweep(parallel=2), busy) == ""
    assert why_queued("run-x", 0, 0, sweep(status=SweepStatus.PAUSED), busy) == "its sweep is paused"
    assert why_queued("run-x", 0, 0, sweep(status=SweepStatus.STOPPED), busy) == "its sweep was stopped"


def test_narrow_run_is_told_for_whom_free_cards_are_reserved() -> None:
    half = look(("run-a", "", 1), gpus=2)
    wide, narrow = candidate("run-w", gpus=2, waited=AGEING), candidate("run-x", gpus=1, waited=1)
    assert keeps_cards([wide, narrow], half, NOW, AGEING) == "run-w"
    kept = look(("run-a", "", 1), gpus=2, kept_for="run-w")
    assert why_queued("run-x", 1, 0, None, kept) == "1 GPU free, kept for run-w, which has waited longer"
    assert pick([wide, narrow], half.capacity, [("", 1)]) == []


def test_two_sweeps_alternate_if_one_run_fits_at_a_time() -> None:
    queued = [
        candidate(f"{group}{i}", group=group, waited=wait - i)
        for group, wait in (("a", 90), ("b", 50))
        for i in range(4)
    ]
    turns: dict[str, int] = {}
    started = []
    for number in range(1, 9):
        (run,) = choose(in_order(queued), (), Capacity(gpus=0, cpu_runs=1), {}, NOW, AGEING, turns)
        queued = [one for one in queued if one.run_id != run]
        turns[run[0]] = number
        started.append(run)
    assert started == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]


def test_run_that_names_a_crowded_card_never_blocks_other_cards() -> None:
    sharing = [Holder(run_id=f"on-0-{i}", group="", gpus=1, named=("0",), unleased=min(i, 1)) for i in range(2)]
    aged = candidate("crowded", gpus=1, named=("0",), waited=AGEING + 1)
    queues = in_order([aged, candidate("plain", gpus=1), candidate("on-1", gpus=1, named=("1",))])
    assert choose(queues, sharing, Capacity(gpus=2, cpu_runs=1), {}, NOW, AGEING) == ["plain"]
    taken = [*sharing[:1], Holder(run_id="on-1-0", group="", gpus=1, named=("1",))]
    assert choose(queues, taken, Capacity(gpus=2, cpu_runs=1), {}, NOW, AGEING) == []
    look = Look(holders=sharing, capacity=Capacity(gpus=2, cpu_runs=1))
    assert keeps_cards([aged], look, NOW, AGEING) == ""
    assert why_queued("crowded", 1, 0, None, look, ("0",)) == "it names GPU 0, as on-0-0, on-0-1 do"


def test_wide_run_that_names_its_cards_is_not_starved_by_narrow_ones() -> None:
    at_work = [Holder(run_id="narrow", group="", gpus=1)]
    wide = candidate("wide", gpus=2, named=("0", "1"), waited=AGEING + 1)
    queues = in_order([wide, candidate("narrow-too", gpus=1, waited=AGEING + 2)])
    two = Capacity(gpus=2, cpu_runs=1)
    assert choose(queues, at_work, two, {}, NOW, AGEING) == []
    assert keeps_cards([wide], Look(holders=at_work, capacity=two), NOW, AGEING) == "wide"
    assert choose(queues, (), two, {}, NOW, AGEING) == ["wide"]
