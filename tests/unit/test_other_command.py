"""A rerun with another command has the parameters of that command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labwright.domain.actor import PERSON
from labwright.domain.command_line import params_after_change
from labwright.domain.run import Run
from labwright.services.runs import verbs as runs
from tests.support.lab import lab_in, make_run

OLD = "python train.py --lr 0.2 --batch-size=32 model=small 7 --amp"
PARAMS = {"lr": 0.2, "batch_size": 32, "model": "small", "width": 7, "amp": True, "data": "c10"}


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (OLD, {}),
        (OLD.replace("0.2", "0.20"), {}),
        (f"{OLD} --workers 0", {}),
        (OLD.replace("0.2", "9"), {"lr": 9}),
        (OLD.replace("32", "64"), {"batch_size": 64}),
        (OLD.replace("small", "large"), {"model": "large"}),
        (OLD.replace(" 7", " 8"), {"width": None}),
        (OLD.replace(" --amp", ""), {"amp": None}),
        ("exit 5", {"lr": None, "batch_size": None, "model": None, "width": None, "amp": None}),
    ],
)
def test_parameters_from_the_command_follow_it_and_others_stay(command: str, changed: dict[str, Any]) -> None:
    wanted = {name: value for name, value in {**PARAMS, **changed}.items() if value is not None}
    assert params_after_change(command, PARAMS, OLD) == wanted


def rerun_in(folder: Path, name: str, command: str, **changes: Any) -> Run:
    with lab_in(folder / "project") as lab:
        old = make_run(lab, name, "python train.py --lr 0.2 --seed 3", params={"lr": 0.2}, seed=3)
        return runs.rerun(lab, old.id, PERSON, {"command": command, **changes})


def test_rerun_with_another_value_is_another_configuration(tmp_path: Path) -> None:
    again = rerun_in(tmp_path, "lr=0.2 seed=3", "python train.py --lr 9 --seed 4")
    assert (again.params, again.seed, again.name) == ({"lr": 9}, 4, "python train.py --lr 9 --seed 4")


def test_name_given_by_a_user_stays(tmp_path: Path) -> None:
    again = rerun_in(tmp_path, "baseline", "python train.py --lr 0.2 --workers 0")
    assert (again.params, again.seed, again.name) == ({"lr": 0.2}, None, "baseline")
