"""Which variants of a grid are tried, how a run is shortened, and what short runs say about long ones."""

from __future__ import annotations

from typing import Any

import pytest

from labwright.planning.ir.model import GridIR, MetricIR, ParameterIR
from labwright.planning.rehearsal.code_paths import paths_to_try
from labwright.planning.rehearsal.prediction import Measured, predict, run_seconds
from labwright.planning.rehearsal.shortening import scaling, shortenings
from labwright.planning.scan import EntryPoint, Flag, Role, SetBy


def grid(baseline: dict[str, Any] | None = None, **values: list[Any]) -> GridIR:
    parameters = tuple(ParameterIR(name=name, flag=name, values=tuple(given)) for name, given in values.items())
    metric = MetricIR(name="m", direction="minimize")
    return GridIR(task="train", parameters=parameters, baseline=baseline, metric=metric)


def test_each_choice_each_switch_and_both_ends_of_a_range_are_tried_once() -> None:
    tried, left_out = paths_to_try(grid(lr=[0.1, 0.01, 1.0, 0.5], kind=["a", "b", "c"], double=[True, False]))
    assert {config["kind"] for config in tried} == {"a", "b", "c"}
    assert {config["double"] for config in tried} == {True, False}
    assert {config["lr"] for config in tried} == {0.01, 1.0}
    assert (len(tried), left_out) == (3, [])


def test_baseline_outside_the_grid_is_tried_too() -> None:
    assert paths_to_try(grid(baseline={"lr": 5.0}, lr=[0.1, 0.2]))[0] == [{"lr": 0.1}, {"lr": 0.2}, {"lr": 5.0}]
    assert len(paths_to_try(grid(baseline={"lr": 0.2}, lr=[0.1, 0.2]))[0]) == 2


def test_number_of_variants_is_limited_and_omitted_ones_are_named() -> None:
    tried, (words,) = paths_to_try(grid(kind=[f"k{n}" for n in range(20)]))
    assert len(tried) == 8 and "k8" in words


def flag(name: str, role: Role, **facts: Any) -> Flag:
    return Flag(**{"name": name, "option": f"--{name.replace('_', '-')}", "type": "int", "role": role, **facts})


STEPS = flag("max_steps", Role.STEPS, default=500)
EPOCHS = flag("epochs", Role.EPOCHS, default=25)
VARIABLE = flag("max_steps", Role.STEPS, option="MAX_STEPS=", set_by=SetBy.ENVIRONMENT, default=500)


def entry(*flags: Flag) -> EntryPoint:
    return EntryPoint(path="train.py", command="python train.py", flags=flags)


def shortened(command: str, *flags: Flag, activation: str = "") -> str | None:
    found = shortenings(entry(*flags), command, set())
    return found[0].apply(command, found[0].least, activation) if found else None


@pytest.mark.parametrize(
    ("command", "flags", "activation", "wanted"),
    [
        ("python train.py --lr 1", (EPOCHS, STEPS), "", "python train.py --lr 1 --max-steps 2"),
        ("python train.py", (EPOCHS,), "", "python train.py --epochs 1"),
        ("LR=1 python train.py", (VARIABLE,), "", "MAX_STEPS=2 LR=1 python train.py"),
        (
            "source v && LR=1 python train.py",
            (VARIABLE,),
            "source v && ",
            "source v && MAX_STEPS=2 LR=1 python train.py",
        ),
        ("MAX_STEPS=90 python train.py", (VARIABLE,), "", "MAX_STEPS=2 python train.py"),
        ("python train.py | tee log", (STEPS,), "", None),
        ("python train.py && echo done", (STEPS,), "", None),
        ("python train.py --name 'a|b'", (STEPS,), "", "python train.py --name 'a|b' --max-steps 2"),
        ("python train.py", (), "", None),
    ],
)
def test_scripts_own_flag_makes_the_run_short(
    command: str, flags: tuple[Flag, ...], activation: str, wanted: str | None
) -> None:
    assert shortened(command, *flags, activation=activation) == wanted


def test_flag_varied_by_the_plan_does_not_make_the_run_short() -> None:
    (found,) = shortenings(entry(STEPS, EPOCHS), "python train.py --max-steps {max_steps}", {"max_steps"})
    assert found.flag is EPOCHS


def test_full_length_is_from_the_command_or_the_scripts_default() -> None:
    assert scaling(shortenings(entry(STEPS), "python train.py", set())).full == 500  # type: ignore[union-attr]
    given = shortenings(entry(STEPS), "python train.py --max-steps 90", set())
    assert scaling(given).full == 90  # type: ignore[union-attr]
    unlimited = flag("max_steps", Role.STEPS, default=0)
    assert scaling(shortenings(entry(unlimited), "python train.py", set())) is None
    both = scaling(shortenings(entry(unlimited, EPOCHS), "python train.py", set()))
    assert both is not None and both.flag is EPOCHS


def test_rate_is_extrapolated_to_the_full_length_with_an_interval() -> None:
    low, high = run_seconds(Measured(10, 2.0), Measured(110, 12.0), 1010)
    assert low < 102.0 < high and high < 2 * 102.0


def test_shorter_measurement_gives_a_wider_interval() -> None:
    sure = run_seconds(Measured(1, 1.0), Measured(101, 11.0), 1000)
    unsure = run_seconds(Measured(1, 1.0), Measured(11, 2.0), 1000)
    assert unsure[1] - unsure[0] > sure[1] - sure[0]


def test_run_of_full_length_is_its_own_estimate() -> None:
    low, high = run_seconds(Measured(1, 1.0), Measured(100, 10.0), 100)
    assert low <= 10.0 <= high <= 15.0


def test_total_time_is_the_sum_of_its_waves() -> None:
    found = predict([(1.0, 2.0), (1.5, 4.0)], runs=10, at_a_time=4, memory_mb=50.0, basis="")
    assert found.run_seconds == (1.0, 4.0)
    assert found.total_seconds == (2.5, 12.0)


def test_without_a_measurement_there_is_no_estimate() -> None:
    found = predict([], runs=10, at_a_time=4, memory_mb=None, basis="nothing says")
    assert (found.run_seconds, found.total_seconds, found.basis) == (None, None, "nothing says")
