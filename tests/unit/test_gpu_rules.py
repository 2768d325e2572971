"""When a card is free, who may take it, and how that is reported."""

from __future__ import annotations

import pytest

from labwright.domain.gpu import (
    BusyLimits,
    Gpu,
    GpuProcess,
    LeaseHolder,
    Waiter,
    by_preference,
    is_free,
    kept_for_others,
    kept_words,
    lease_words,
    pick_gpus,
    resolve_names,
    why_busy,
)
from labwright.services.runs.new_run import gpus_named_by

LIMITS = BusyLimits(memory_mb=1024, utilization=10)


def card(index: int = 0, **facts: object) -> Gpu:
    return Gpu(index=index, uuid=f"GPU-{index}aaa", name="H100", memory_total_mb=81920, **facts)  # type: ignore[arg-type]


def waiter(name: str, count: int, usable: str, since: float = 0.0) -> Waiter:
    return Waiter(run_id=name, user="u", count=count, usable=tuple(usable), since=since, ageing_seconds=30)


def test_idle_card_is_free() -> None:
    assert is_free(card(memory_used_mb=300, utilization=3), LIMITS)


def test_any_process_makes_a_card_busy() -> None:
    assert not is_free(card(processes=(GpuProcess(pid=7, memory_mb=1),)), LIMITS)


def test_own_process_does_not_make_a_card_busy() -> None:
    assert is_free(card(processes=(GpuProcess(pid=7, memory_mb=1),)), LIMITS, own_pids={7})


def test_desktop_process_does_not_make_a_card_busy_but_its_memory_may() -> None:
    desktop = (GpuProcess(pid=7, memory_mb=200, name="Xorg"),)
    assert is_free(card(processes=desktop, memory_used_mb=200), LIMITS)
    assert not is_free(card(processes=desktop, memory_used_mb=9000), LIMITS)


def test_memory_without_a_process_counts_as_use() -> None:
    assert why_busy(card(1, memory_used_mb=30720), LIMITS) == (
        "GPU 1 has 30.0 GB of memory in use but shows no process"
    )


def test_utilisation_without_a_process_counts_as_use() -> None:
    assert why_busy(card(utilization=80), LIMITS) == "GPU 0 is 80% busy but shows no process"


def test_message_names_the_process() -> None:
    gpu = card(1, processes=(GpuProcess(pid=12, memory_mb=30822, user="bob", name="python"),))
    assert why_busy(gpu, LIMITS) == "GPU 1 is in use by bob's python (pid 12, 30.1 GB)"
    unseen = card(0, processes=(GpuProcess(pid=12, memory_mb=1024),))
    assert why_busy(unseen, LIMITS) == "GPU 0 is in use by a hidden process (pid 12, 1.0 GB)"


def test_message_names_the_holder() -> None:
    assert lease_words(card(), LeaseHolder(run_id="run-1", user="alice")) == "GPU 0 is held by alice (run-1)"
    assert lease_words(card(), LeaseHolder(run_id="", user="")) == "GPU 0 is held by someone"


def test_message_names_the_waiter_a_card_is_reserved_for() -> None:
    assert kept_words(card(2), waiter("run-w", 4, "ab"), now=45.0) == (
        "GPU 2 is kept for run-w of u, waiting 45 s for 4 GPUs"
    )


def test_emptiest_card_is_preferred_then_the_lowest() -> None:
    cards = [card(0, memory_used_mb=500), card(2), card(1)]
    assert [gpu.index for gpu in by_preference(cards)] == [1, 2, 0]


def test_pick_is_all_or_nothing() -> None:
    assert pick_gpus("abc", (), 2) == ("a", "b")
    assert pick_gpus("abc", ("a",), 2) == ("b", "c")
    assert pick_gpus("abc", ("a", "b"), 2) == ()


def test_older_waiter_that_fits_comes_first() -> None:
    assert set(kept_for_others("a", [waiter("old", 1, "ab")], now=1.0)) == {"a"}


def test_young_wide_waiter_can_be_passed() -> None:
    assert kept_for_others("a", [waiter("wide", 2, "ab")], now=29.0) == {}


def test_aged_wide_waiter_gets_cards_reserved() -> None:
    assert set(kept_for_others("a", [waiter("wide", 2, "ab")], now=30.0)) == {"a"}


def test_cards_are_reserved_for_the_oldest_first() -> None:
    kept = kept_for_others("ab", [waiter("first", 1, "ab"), waiter("second", 2, "abc")], now=60.0)
    assert {uuid: who.run_id for uuid, who in kept.items()} == {"a": "first", "b": "second"}


def test_nothing_is_reserved_for_a_waiter_that_ending_leases_cannot_serve() -> None:
    assert kept_for_others("a", [waiter("blocked by a stranger", 2, "a")], now=999.0) == {}


@pytest.mark.parametrize(("name", "index"), [("1", 1), ("GPU-1aaa", 1), ("GPU-1a", 1), (" 0 ", 0)])
def test_cards_are_named_as_cuda_names_them(name: str, index: int) -> None:
    found, unknown = resolve_names([card(0), card(1)], [name])
    assert [gpu.index for gpu in found] == [index]
    assert unknown == ()


def test_names_that_match_no_card_are_reported() -> None:
    assert resolve_names([card(0)], ["7", "GPU-", "", "GPU-zzz"]) == ((), ("7", "GPU-", "", "GPU-zzz"))


@pytest.mark.parametrize(
    ("command", "cards"),
    [
        ("python train.py", None),
        ("CUDA_VISIBLE_DEVICES=1 python train.py", ("1",)),
        ("cd x && LR=1 CUDA_VISIBLE_DEVICES='0, 2' python train.py", ("0", "2")),
        ("CUDA_VISIBLE_DEVICES= python train.py", ()),
        ("CUDA_VISIBLE_DEVICES=0 python a.py & CUDA_VISIBLE_DEVICES=1 python b.py & wait", ("0", "1")),
        ("if true; then export CUDA_VISIBLE_DEVICES=3; fi", ("3",)),
        ("for i in 0 1; do nohup env CUDA_VISIBLE_DEVICES=$i python a.py & done", ("$i",)),
        ("{ CUDA_VISIBLE_DEVICES=1 python a.py; }", ("1",)),
        ("CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} python train.py", None),
        ('CUDA_VISIBLE_DEVICES="$CUDA_VISIBLE_DEVICES" python a.py; CUDA_VISIBLE_DEVICES=2 python b.py', ("2",)),
        ("# CUDA_VISIBLE_DEVICES=1", None),
    ],
)
def test_cards_are_found_wherever_a_command_sets_the_variable(command: str, cards: tuple[str, ...] | None) -> None:
    assert gpus_named_by(command, {}) == cards


@pytest.mark.parametrize("line", ["\n", "A=1\n", "env\n", "A=1 ", "; "])
def test_cards_are_found_quickly_at_the_end_of_a_long_command(line: str) -> None:
    """A million characters: rereading each line to the end took hours."""
    command = line * (1_000_000 // len(line))
    assert gpus_named_by(f"{command}\nCUDA_VISIBLE_DEVICES=1 python train.py", {}) == ("1",)


def test_environment_names_cards_if_the_command_does_not() -> None:
    env = {"CUDA_VISIBLE_DEVICES": "0,GPU-2f"}
    assert gpus_named_by("python train.py", env) == ("0", "GPU-2f")
    assert gpus_named_by("CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-3} python train.py", env) == ("0", "GPU-2f")
    assert gpus_named_by("CUDA_VISIBLE_DEVICES=1 python train.py", env) == ("1",)
