"""Runs are averaged over seeds only if nothing else differs."""

from __future__ import annotations

from typing import Any

import pytest

from labwright.domain.search.configurations import same_but_for_seed
from tests.unit.test_run_moves import a_run


def are_one_configuration(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return len(same_but_for_seed([a_run(**one), a_run(**other)])) == 1


def command(text: str, **facts: Any) -> dict[str, Any]:
    return {"command": text, **facts}


def of_sweep(seed: int, text: str, **facts: Any) -> dict[str, Any]:
    return {"command": text, "seed": seed, "sweep_id": "sweep-1", "trial": 0, "params": {"lr": 0.1}, **facts}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (command("train.py --seed 1"), command("train.py --seed 22")),
        (command("train.py --lr 0.1 --random-seed=1"), command("train.py --lr 0.1 --random-seed=2")),
        (command("SEED=1 python train.py lr=0.1"), command("SEED=2 python train.py lr=0.1")),
        (command("train.py trainer.seed=1 lr=0.1"), command("train.py trainer.seed=2 lr=0.1")),
        (command("train.py 0 1", seed=0), command("train.py 0 1", seed=1)),
        (command("train.py", env={"SEED": "1"}, seed=1), command("train.py", env={"SEED": "2"}, seed=2)),
        (command("t", params={"lr": 1, "seed": 1}), command("t", params={"lr": 1.0, "seed": 2})),
        (command("t", seed=1, snapshot={"hash": "a"}), command("t", seed=2, snapshot={"hash": "b"})),
        (command("t", snapshot={"hash": "a"}), command("t", snapshot={"hash": "a"})),
        (of_sweep(3, "train.py --layers 3 --out runs/3"), of_sweep(4, "train.py --layers 3 --out runs/4")),
    ],
)
def test_runs_that_differ_in_their_seed_are_one_configuration(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert are_one_configuration(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (command("train.py --lr 0.1"), command("train.py --lr 0.01")),
        (command("train.py --lr 0.1 --seed 1"), command("train.py --lr 0.01 --seed 2")),
        (command("seed.py 1"), command("seed.py 2")),
        (command("train.py 1", seed=1), command("train.py 2", seed=2)),
        (command("t", params={"lr": 0.1}), command("t", params={"lr": 0.2})),
        (command("t", env={"LR": "0.1"}), command("t", env={"LR": "0.2"})),
        (command("t", workdir="/a"), command("t", workdir="/b")),
        (command("t", snapshot={"hash": "a"}), command("t", snapshot={"hash": "b"})),
        (of_sweep(1, "a.py"), of_sweep(2, "b.py", sweep_id="sweep-2")),
        (of_sweep(1, "t"), of_sweep(2, "t", params={"lr": 0.2})),
    ],
)
def test_runs_that_differ_in_anything_else_are_separate_configurations(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert not are_one_configuration(one, other)
