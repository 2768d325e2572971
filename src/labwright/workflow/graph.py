"""A workflow: steps, and which output feeds which input. `run` executes it.

Building a workflow refuses nothing: `validate_contract` finds all faults at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from labwright.workflow.tasks import WHOLE, as_task
from labwright.workflow.type_rules import Type, list_of


@dataclass(frozen=True)
class Output:
    """A named output of a step, as the source of an input. The step may be added later."""

    step: str
    name: str = WHOLE

    def __str__(self) -> str:
        return f"{self.step}.{self.name}"


@dataclass(frozen=True)
class Step:
    """One task or experiment in a workflow."""

    id: str
    work: Any  # a Task or an Experiment; anything else is a finding
    inputs: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, Any] | None = None  # a fan-out: each of these inputs takes one value at a time
    collect: str = "all"
    after: tuple[str, ...] = ()
    when: Any = None

    def output(self, name: str = WHOLE) -> Output:
        return Output(self.id, name)

    def sources(self) -> Iterator[tuple[str, Output]]:
        """Yield every output that this step waits for, with the name of the input."""
        for name, value in [*self.inputs.items(), *(self.over or {}).items()]:
            for output in outputs_in(value):
                yield str(name), output
        for output in outputs_in(self.when):
            yield "when", output

    def waits_for(self) -> list[str]:
        return list(dict.fromkeys([*(output.step for _name, output in self.sources()), *self.after]))

    def output_type(self, name: str) -> Type | None:
        """Return the type of an output, or None if there is no such output."""
        kind: Type | None = getattr(self.work, "outputs", {}).get(name)
        return list_of(kind) if kind is not None and self.over is not None else kind


class Workflow:
    """Steps by name. `create_workflow()` of a generated experiment returns one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.results: dict[str, Output] = {}

    def add(
        self,
        work: Any,
        inputs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        after: Iterable[Step | str] = (),
        when: Output | None = None,
    ) -> Step:
        """Add a task or an experiment. An input is an `Output`, a list of them, or a plain value.

        `after` waits for steps without using their outputs. `when` skips the step unless that output is true.
        """
        return self._append(work, name, inputs=dict(inputs or {}), after=_ids(after), when=when)

    def map(
        self,
        work: Any,
        over: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        collect: str = "all",
        after: Iterable[Step | str] = (),
        when: Output | None = None,
    ) -> Step:
        """Add the task once for each combination of the values in `over`. Each of its outputs becomes a list.

        With `collect="finished"` the list holds the results that finished; with "all" one failure fails the step.
        """
        options = {"collect": collect, "after": _ids(after), "when": when}
        return self._append(work, name, inputs=dict(inputs or {}), over=dict(over), **options)

    def result(self, name: str, output: Output) -> None:
        """Declare a result of the workflow."""
        self.results[name] = output

    def _append(self, work: Any, name: str | None, **facts: Any) -> Step:
        made = as_task(work)
        step = Step(name or str(getattr(made, "name", type(made).__name__)), made, **facts)
        self.steps.append(step)
        return step


def _ids(steps: Iterable[Step | str]) -> tuple[str, ...]:
    return tuple(step.id if isinstance(step, Step) else str(step) for step in steps)


def outputs_in(value: Any) -> list[Output]:
    """Return the outputs in an input: one output, or the outputs in a list."""
    if isinstance(value, Output):
        return [value]
    return [item for item in value if isinstance(item, Output)] if isinstance(value, (list, tuple)) else []


def in_order(steps: Iterable[Step]) -> tuple[list[Step], list[Step]]:
    """Return the steps with every source before its user, and the steps in or behind a cycle."""
    by_id = {step.id: step for step in steps}
    waiting = {id: {source for source in step.waits_for() if source in by_id} for id, step in by_id.items()}
    users: dict[str, list[str]] = {id: [] for id in by_id}
    for id, sources in waiting.items():
        for source in sources:
            users[source].append(id)
    ready = deque(id for id, sources in waiting.items() if not sources)
    ordered = []
    while ready:
        done = ready.popleft()
        ordered.append(by_id[done])
        for user in users[done]:
            waiting[user].discard(done)
            if not waiting[user]:
                ready.append(user)
    placed = {step.id for step in ordered}
    return ordered, [step for step in by_id.values() if step.id not in placed]
