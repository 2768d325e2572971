"""What validation finds in a workflow, without running any of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labwright.workflow import Experiment, Metric, Output, Report, Workflow, describe, task, validate_contract


class Scores(TypedDict):
    best: float
    table: list[float]


@task
def number(seed: int = 0) -> float:
    return seed / 2


@task
def numbers(count: int) -> list[float]:
    return [float(index) for index in range(count)]


@task
def total(values: list[float]) -> float:
    return sum(values)


@task
def half(value: float) -> float:
    return value / 2


@task
def is_large(value: float) -> bool:
    return value > 10


@task
def score(values: list[float]) -> Scores:
    return {"best": max(values), "table": sorted(values)}


@task(writes=["results/table.csv"])
def save(values: list[float]) -> Path:
    return Path("results") / f"{len(values)}.csv"


def train(**changes: Any) -> Experiment:
    facts: dict[str, Any] = {
        "name": "train",
        "command": "python train.py --lr {lr} --seed {seed} --data {data}",
        "grid": {"lr": [0.1, 0.01]},
        "seeds": [0, 1, 2],
        "metric": Metric("val_acc", "maximize"),
        "produces": ["val_acc", "loss"],
        "baseline": {"lr": 0.1},
        "max_runs": 6,
    }
    return Experiment(**{**facts, **changes})


def good() -> Workflow:
    workflow = Workflow("good")
    values = workflow.add(numbers, inputs={"count": 3})
    halves = workflow.map(half, over={"value": values.output()})
    scores = workflow.add(score, inputs={"values": halves.output()})
    runs = workflow.add(train(), inputs={"data": "data/"})
    workflow.result("best", scores.output("best"))
    workflow.result("runs", runs.output("runs"))
    return workflow


def test_a_good_workflow_has_no_findings() -> None:
    assert validate_contract(good()) == Report()


def with_result(build: Callable[[Workflow], Any]) -> Workflow:
    workflow = Workflow("w")
    step = build(workflow)
    workflow.result("out", step.output())
    return workflow


def _circle(workflow: Workflow) -> Any:
    workflow.add(half, name="a", inputs={"value": Output("b")})
    return workflow.add(half, name="b", inputs={"value": Output("a")})


def _duplicates(workflow: Workflow) -> Any:
    first = workflow.add(number)
    workflow.add(half, name="number", inputs={"value": first.output()})
    return first


def _two_writers(workflow: Workflow) -> Any:
    first = workflow.add(save, inputs={"values": [1.0]})
    return workflow.add(save, name="again", inputs={"values": [2.0]}, after=[first])


def _orphan(workflow: Workflow) -> Any:
    workflow.add(numbers, inputs={"count": 2})
    return workflow.add(number)


def _stub(body: Any) -> Callable[[Workflow], Any]:
    return lambda workflow: workflow.add(task(body), name="stub", inputs={"x": 1.0})


def raises(x: float) -> float:
    """Not done yet."""
    raise NotImplementedError("later")


def passes(x: float) -> None:
    pass


def dots(x: float) -> float: ...  # type: ignore[empty-body]


def constant(x: float) -> dict[str, float]:
    print(x)
    return {"accuracy": 0.95, "loss": -0.1}


def constant_by_name(x: float) -> float:
    accuracy = 0.95
    return accuracy  # noqa: RET504 - as a model writes it


def constant_by_arithmetic(x: float) -> dict[str, float]:
    """A number that looks computed."""
    rows = dict(accuracy=0.9 + 0.05, loss=float("0.1"))  # noqa: C408
    return rows  # noqa: RET504


async def raises_at_the_end(x: float) -> float:
    print(x)
    raise NotImplementedError


def untyped(x, y: float) -> float:  # type: ignore[no-untyped-def]
    return x + y


def many(*values: float) -> float:
    return sum(values)


def no_such_type(x: NoSuchType) -> float:  # type: ignore[name-defined]  # noqa: F821
    return float(x)


FAULTY: dict[str, tuple[str, Callable[[Workflow], Any]]] = {
    "missing input": ("missing_input", lambda w: w.add(half)),
    "unknown input": ("unknown_input", lambda w: w.add(number, inputs={"sead": 1})),
    "unknown step": ("unknown_source", lambda w: w.add(half, inputs={"value": Output("nowhere")})),
    "unknown after": ("unknown_source", lambda w: w.add(number, after=["nowhere"])),
    "undeclared output": ("undeclared_output", lambda w: w.add(half, inputs={"value": w.add(number).output("y")})),
    "float into list[float]": ("type_mismatch", lambda w: w.add(total, inputs={"values": w.add(number).output()})),
    "list[float] into float": (
        "type_mismatch",
        lambda w: w.add(half, inputs={"value": w.add(numbers, inputs={"count": 1}).output()}),
    ),
    "text for a float": ("type_mismatch", lambda w: w.add(half, inputs={"value": "0.5"})),
    "fan-out over a float": ("type_mismatch", lambda w: w.map(half, over={"value": w.add(number).output()})),
    "fan-out over text": ("bad_fan_out", lambda w: w.map(half, over={"value": "abc"})),
    "fan-out over nothing": ("bad_fan_out", lambda w: w.map(number, over={})),
    "fan-out of wrong values": ("type_mismatch", lambda w: w.map(half, over={"value": [1.0, "x"]})),
    "condition that is no bool": ("type_mismatch", lambda w: w.add(number, name="n", when=w.add(number).output())),
    "circle": ("cycle", _circle),
    "itself": ("cycle", lambda w: w.add(half, name="a", inputs={"value": Output("a")})),
    "duplicate": ("duplicate_name", _duplicates),
    "hyphen": ("bad_id", lambda w: w.add(number, name="my-step")),
    "dots": ("bad_id", lambda w: w.add(number, name="..")),
    "slash": ("bad_id", lambda w: w.add(number, name="a/b")),
    "keyword": ("bad_id", lambda w: w.add(number, name="class")),
    "two writers": ("two_writers", _two_writers),
    "artifact outside": ("bad_artifact", lambda w: w.add(task(writes=["../x"])(number.body))),
    "orphan": ("orphan", _orphan),
    "no task": ("not_a_task", lambda w: w.add(len, name="length")),
    "raises": ("stub", _stub(raises)),
    "passes": ("stub", _stub(passes)),
    "only dots": ("stub", _stub(dots)),
    "constant": ("stub", _stub(constant)),
    "constant by name": ("stub", _stub(constant_by_name)),
    "constant by arithmetic": ("stub", _stub(constant_by_arithmetic)),
    "raises at the end": ("stub", _stub(raises_at_the_end)),
    "no annotation": ("missing_annotation", lambda w: w.add(task(untyped), inputs={"x": 1, "y": 1.0})),
    "star": ("unnamed_input", lambda w: w.add(task(many))),
    "unknown type": ("unresolved_annotation", lambda w: w.add(task(no_such_type), inputs={"x": 1})),
    "no metric": ("no_metric", lambda w: w.add(train(metric=None), {"data": "d"})),
    "no direction": ("metric_without_direction", lambda w: w.add(train(metric=Metric("val_acc")), {"data": "d"})),
    "metric that no name with a hole fits": (
        "metric_not_produced",
        lambda w: w.add(train(produces=["*_loss"]), {"data": "d"}),
    ),
    "unproduced metric": ("metric_not_produced", lambda w: w.add(train(produces=["loss"]), {"data": "d"})),
    "over budget": ("over_budget", lambda w: w.add(train(max_runs=5), {"data": "d"})),
    "unused parameter": ("unused_parameter", lambda w: w.add(train(command="train {lr} {data}"), {"data": "d"})),
    "no seeds": ("missing_input", lambda w: w.add(train(seeds=[]), {"data": "d"})),
    "placeholder without source": ("missing_input", lambda w: w.add(train())),
    "broken command": ("bad_command", lambda w: w.add(train(command="awk '{print $1}'"))),
    "no values": ("bad_grid", lambda w: w.add(train(grid={"lr": []}, baseline=None), {"data": "d"})),
    "value twice": ("bad_grid", lambda w: w.add(train(grid={"lr": [1, 1]}, baseline={"lr": 1}), {"data": "d"})),
    "open baseline": ("bad_baseline", lambda w: w.add(train(baseline={}), {"data": "d"})),
}


@pytest.mark.parametrize("name", FAULTY)
def test_refused(name: str) -> None:
    code, build = FAULTY[name]
    found = validate_contract(with_result(build)).findings
    assert code in {finding.code for finding in found}
    assert all(finding.place and finding.message for finding in found)


def test_an_empty_workflow_and_other_objects_are_refused() -> None:
    assert validate_contract(Workflow("w")).codes == ["empty"]
    assert validate_contract(None).codes == ["not_a_workflow"]
    assert validate_contract({"name": "w"}).codes == ["not_a_workflow"]


def test_a_result_that_names_nothing_is_refused() -> None:
    workflow = with_result(lambda w: w.add(number))
    workflow.result("other", Output("nowhere"))
    assert validate_contract(workflow).codes == ["unknown_source"]


def test_a_type_mismatch_names_both_types_and_a_fix() -> None:
    (finding,) = validate_contract(with_result(FAULTY["float into list[float]"][1])).findings
    assert finding.place == "total.inputs.values"
    assert "number.result is float, but the input takes list[float]" in finding.message
    assert "workflow.map" in finding.hint


def _varies(x: float) -> str:
    return "high" if x > 1 else "low"


def _two_constants(x: float) -> str:
    if x > 1:
        return "high"
    return "low"


def _fills(x: float) -> list[float]:
    rows: list[float] = []
    rows.append(x)
    return rows


def _overwrites(x: float) -> float:
    best = 0.0
    if x > 0:
        best = 1.0
    return best


def _rounds(x: float) -> float:
    return round(x * 0.5, 3)


def _starts_from_a_constant(x: float) -> dict[str, float]:
    rows = dict(accuracy=0.9)  # noqa: C408
    rows["loss"] = x
    return rows


def _does_something(x: float) -> None:
    print(x)


@pytest.mark.parametrize(
    "body", [_varies, _two_constants, _fills, _overwrites, _rounds, _starts_from_a_constant, _does_something]
)
def test_a_short_body_is_not_a_stub(body: Any) -> None:
    assert validate_contract(with_result(_stub(body))).ok


def test_outputs_of_several_steps_are_gathered_in_a_list() -> None:
    def gather(workflow: Workflow) -> Any:
        one, two = workflow.add(number), workflow.add(number, name="other", inputs={"seed": 4})
        return workflow.add(total, inputs={"values": [one.output(), two.output()]})

    assert validate_contract(with_result(gather)).ok


def test_a_metric_name_may_have_a_part_known_only_at_run_time() -> None:
    workflow = Workflow("w")
    runs = workflow.add(train(produces=["*_acc"]), {"data": "d"})
    workflow.result("runs", runs.output("runs"))
    assert validate_contract(workflow) == Report()


def test_an_experiment_knows_its_runs_and_their_commands() -> None:
    experiment = train(baseline={"lr": 0.5})
    configurations = experiment.configurations()
    assert len(configurations) == experiment.size == 9
    assert configurations[0].params == {"lr": 0.5}
    assert experiment.command_for(configurations[-1], {"data": "my data"}) == (
        "python train.py --lr 0.01 --seed 2 --data 'my data'"
    )


def test_the_size_of_a_huge_grid_is_computed_without_listing_it() -> None:
    grid = {f"p{index}": list(range(100)) for index in range(10)}
    assert train(grid=grid, baseline=None, seeds=[]).size == 100**10


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


_VALUES = st.one_of(
    st.none(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.builds(Output, st.sampled_from(["a", "b", "c", "../x", ""]), st.sampled_from(["result", "best", "", "x"])),
    st.builds(Hostile),
    st.lists(st.builds(Output, st.sampled_from(["a", "b"])), max_size=2),
)
_WORKS = st.sampled_from(
    [number, half, total, score, numbers, len, None, 3, "half", Hostile(), train(), train(grid=None)]
)


@given(
    st.lists(
        st.tuples(
            _WORKS,
            st.sampled_from(["a", "b", "c", "", "a-b", "../x", "class"]),
            st.dictionaries(st.sampled_from(["value", "values", "count", "", "data"]), _VALUES, max_size=3),
            st.one_of(st.none(), st.dictionaries(st.sampled_from(["value", "count"]), _VALUES, max_size=2)),
            _VALUES,
        ),
        max_size=5,
    )
)
def test_validation_never_raises(steps: list[Any]) -> None:
    workflow = Workflow("w")
    for work, name, inputs, over, when in steps:
        if over is None:
            workflow.add(work, inputs, name=name, when=when)
        else:
            workflow.map(work, over, inputs, name=name, when=when)
    assert isinstance(validate_contract(workflow), Report)


def test_a_workflow_is_described_as_plain_data() -> None:
    import json

    described = json.loads(json.dumps(describe(good())))
    steps = {step["id"]: step for step in described["steps"]}
    assert steps["half"]["over"] == {"value": {"step": "numbers", "output": "result"}}
    assert steps["score"]["task"]["gives"] == {"best": "float", "table": "list[float]", "result": "Scores"}
    assert steps["train"]["experiment"]["size"] == 6
    assert steps["train"]["experiment"]["metric"]["fields"] == {"name": "val_acc", "direction": "maximize"}
