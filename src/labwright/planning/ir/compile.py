"""From the draft of an experiment to the IR, by rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from labwright.planning.ir.drafts import ExperimentDraft, Scalar
from labwright.planning.ir.model import (
    SEED,
    GridIR,
    InputIR,
    MetricIR,
    ParameterIR,
    ResourcesIR,
    StepIR,
    TaskIR,
    WorkflowIR,
)
from labwright.planning.scan import EntryPoint, Environment, Flag, Role, SwitchPlaceholder, run_command, words_for

EXPERIMENT = "train"
_TYPES = {
    "Row": {"params": "dict[str, Any]", "mean": "float", "std": "float", "finished": "int", "failed": "int"},
    "Best": {"params": "dict[str, Any]", "mean": "float", "std": "float", "finished": "int"},
    "Effect": {"parameter": "str", "best_value": "Any", "spread": "float"},
    "Comparison": {"baseline": "float", "best": "float", "gain": "float", "noise": "float", "exceeds_noise": "bool"},
}
_PLACE = re.compile(r"@(\w+)@")


def name_of(flag: str) -> str:
    """An identifier for a flag: `optimizer.lr` becomes `optimizer_lr`."""
    name = re.sub(r"\W", "_", flag).strip("_")
    return name if name.isidentifier() else f"p_{name}"


def grid_of(draft: ExperimentDraft) -> GridIR:
    parameters = tuple(ParameterIR(name=name_of(p.flag), flag=p.flag, values=p.values) for p in draft.parameters)
    baseline = draft.baseline
    return GridIR(
        task=EXPERIMENT,
        parameters=parameters,
        seeds=draft.seeds,
        baseline=None if baseline is None else {name_of(flag): value for flag, value in baseline.items()},
        metric=MetricIR(name=draft.metric, direction=draft.direction),  # type: ignore[arg-type]
        max_runs=draft.max_runs,
    )


def workflow_of(draft: ExperimentDraft, environment: Environment) -> WorkflowIR:
    steps = [_experiment_step(), _summarise_step(), _choose_step(), _table_step()]
    results = {"best": "choose_best.result", "table": "write_table.result"}
    if draft.baseline is not None:
        steps.insert(3, _compare_step())
        results["comparison"] = "compare_with_baseline.result"
    if len(draft.parameters) > 1:
        steps.insert(-1, _effects_step())
        results["effects"] = "parameter_effects.result"
    given = " ".join(kind for step in steps for kind in step.outputs.values())
    used = {name: fields for name, fields in _TYPES.items() if re.search(rf"\b{name}\b", given)}
    name = "_".join(name_of(p.flag) for p in draft.parameters)[:40]
    return WorkflowIR(
        name=f"{name}_experiment",
        types=used,
        steps=tuple(steps),
        grid=grid_of(draft),
        results=results,
        environment=environment.create,
    )


def _experiment_step() -> StepIR:
    gives = {"runs": "list[ExperimentRun]", "metric": "str", "direction": "str"}
    return StepIR(id=EXPERIMENT, kind="experiment", outputs=gives)


def _summarise_step() -> StepIR:
    takes = {
        "runs": InputIR(type="list[ExperimentRun]", source=f"{EXPERIMENT}.runs"),
        "metric": InputIR(type="str", source=f"{EXPERIMENT}.metric"),
    }
    return StepIR(id="summarise", kind="python", inputs=takes, outputs={"result": "list[Row]"})


def _rows() -> InputIR:
    return InputIR(type="list[Row]", source="summarise.result")


def _direction() -> InputIR:
    return InputIR(type="str", source=f"{EXPERIMENT}.direction")


def _choose_step() -> StepIR:
    takes = {"rows": _rows(), "direction": _direction()}
    return StepIR(id="choose_best", kind="python", inputs=takes, outputs={"result": "Best"})


def _compare_step() -> StepIR:
    best = InputIR(type="Best", source="choose_best.result")
    takes = {"rows": _rows(), "best": best, "direction": _direction()}
    return StepIR(id="compare_with_baseline", kind="python", inputs=takes, outputs={"result": "Comparison"})


def _effects_step() -> StepIR:
    takes = {"rows": _rows(), "direction": _direction()}
    return StepIR(id="parameter_effects", kind="python", inputs=takes, outputs={"result": "list[Effect]"})


def _table_step() -> StepIR:
    metric = InputIR(type="str", source=f"{EXPERIMENT}.metric")
    takes = {"rows": _rows(), "metric": metric, "direction": _direction()}
    return StepIR(id="write_table", kind="python", inputs=takes, outputs={"result": "str"})


def tasks_of(draft: ExperimentDraft, entry: EntryPoint, environment: Environment) -> list[TaskIR]:
    metric = draft.metric
    found = [
        _experiment_task(draft, entry, environment),
        _python_task("summarise", f"Mean and spread of {metric} for each configuration, over its seeds.",
                     "one row a configuration", "no run at all"),
        _python_task("choose_best", f"The configuration with the best mean {metric}.",
                     "a configuration of the grid or the baseline", "no configuration with a finished run"),
        _python_task("compare_with_baseline", f"Whether the best {metric} exceeds the baseline's by more than noise.",
                     "gain and noise are numbers", "the baseline has no finished run"),
        _python_task("parameter_effects", f"How much each parameter matters: the mean {metric} of each of its values.",
                     "one effect a parameter, largest first", "no configuration with a finished run"),
        _python_task("write_table", "The results as a Markdown table, best first.",
                     "one line a configuration", "no rows"),
    ]  # fmt: skip
    wanted = {step.id for step in workflow_of(draft, environment).steps}
    return [task for task in found if task.id in wanted]


def _python_task(task_id: str, responsibility: str, success: str, failure: str) -> TaskIR:
    return TaskIR(id=task_id, responsibility=responsibility, success_criteria=(success,), failure_conditions=(failure,))


def _experiment_task(draft: ExperimentDraft, entry: EntryPoint, environment: Environment) -> TaskIR:
    command, switches = command_of(draft, entry, environment)
    return TaskIR(
        id=EXPERIMENT,
        responsibility=f"Run {entry.name} once for each configuration and seed.",
        script=entry.name,
        command=command,
        switches=switches,
        produces=tuple(metric.name for metric in entry.metrics),
        success_criteria=(f"every run ends and reports {draft.metric}",),
        failure_conditions=(f"no run reports {draft.metric}",),
        resources=ResourcesIR(gpus=draft.gpus),
    )


def command_of(
    draft: ExperimentDraft, entry: EntryPoint, environment: Environment
) -> tuple[str, dict[str, tuple[str, str]]]:
    """The command with a place for each parameter, and the words of parameters that are switches."""
    flags = {p.flag: _flag(entry, p.flag) for p in draft.parameters}
    switched = {name: flag for name, flag in flags.items() if not flag.takes_value}
    places: dict[str, Any] = {name: SwitchPlaceholder(f"@{name_of(name)}@") for name in flags}
    if draft.seeds:
        places[entry.flags_for(Role.SEED)[0].name] = f"@{SEED}@"
    command = run_command(entry, environment, {**draft.fixed, **places})
    escaped = command.replace("{", "{{").replace("}", "}}")
    return _PLACE.sub(r"{\1}", escaped), _switches(switched)


def _switches(flags: Mapping[str, Flag]) -> dict[str, tuple[str, str]]:
    return {
        name_of(name): (" ".join(words_for(flag, True)), " ".join(words_for(flag, False)))
        for name, flag in flags.items()
    }


def _flag(entry: EntryPoint, name: str) -> Flag:
    found = entry.flag(name)
    assert found is not None, f"{entry.path} has no flag {name}"  # the draft was made from its flags
    return found


def fits(value: Scalar, flag: Flag) -> bool:
    """Whether the flag takes such a value."""
    if flag.choices:
        return value in flag.choices
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,)}
    wanted = kinds.get(flag.type)
    return wanted is None or (isinstance(value, wanted) and (flag.type == "bool") == isinstance(value, bool))
