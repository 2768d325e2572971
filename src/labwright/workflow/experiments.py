"""An experiment declares runs and does not execute them. RunMode turns it into a sweep on the server."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypedDict

from labwright.workflow.annotations import NameScope, fields_of, read_annotation
from labwright.workflow.tasks import WHOLE, Input
from labwright.workflow.type_rules import Type, of_class, union

DIRECTIONS = ("maximize", "minimize")
SEED = "seed"


class ExperimentRun(TypedDict):
    """One ended run: a configuration with one seed."""

    run_id: str
    params: dict[str, Any]
    seed: int | None
    status: str
    metrics: dict[str, float]


class ExperimentResult(TypedDict):
    """The input of a task after an experiment."""

    runs: list[ExperimentRun]
    metric: str
    direction: str


@lru_cache(maxsize=1)
def result_type() -> Type:
    return read_annotation(ExperimentResult, NameScope({}))


@lru_cache(maxsize=1)
def _argument_type() -> Type:
    """Return the type of values that a command may contain."""
    from pathlib import Path  # lazy: it is slow to import, and a workflow may not need it

    return union(*(of_class(cls) for cls in (str, int, float, bool, Path)))


@dataclass(frozen=True)
class Metric:
    """The number that decides, and which direction is better."""

    name: str
    direction: str = ""

    @property
    def has_direction(self) -> bool:
        return self.direction in DIRECTIONS


@dataclass(frozen=True)
class Resources:
    """The resources of each run of an experiment."""

    gpus: int = 0
    cpus: int | None = None
    memory_gb: float | None = None
    time_limit_seconds: float | None = None


@dataclass(frozen=True)
class Configuration:
    """One run to start: its parameters, and its seed if the experiment has seeds."""

    params: Mapping[str, Any]
    seed: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A command over a grid. `{lr}` in the command is a parameter, `{seed}` the seed, any other name an input."""

    name: str
    command: str
    metric: Metric | None = None
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    baseline: Mapping[str, Any] | None = None
    resources: Resources = Resources()
    produces: Sequence[str] = ()  # the metrics that the command logs; `*` for parts that are known only at run time
    max_runs: int | None = None  # the budget
    writes: Sequence[str] = ()
    switches: Mapping[str, Sequence[str]] = field(default_factory=dict)  # parameter: its texts for true and for false

    @property
    def faults(self) -> list[tuple[str, str]]:
        try:
            self.placeholders()
        except ValueError as error:
            return [("bad_command", f"{self.command!r} cannot be filled in: {error}")]
        return []

    def placeholders(self) -> list[str]:
        from string import Formatter

        names = [name for _text, name, _format, _conversion in Formatter().parse(str(self.command)) if name is not None]
        wrong = [name for name in names if not name.isidentifier()]
        if wrong:
            raise ValueError(f"{{{wrong[0]}}} is not a name; write a literal brace twice")
        return list(dict.fromkeys(names))

    @property
    def inputs(self) -> dict[str, Input]:
        if self.faults:
            return {}
        own = {*self.grid, *(self.baseline or {}), SEED}
        return {name: Input(_argument_type()) for name in self.placeholders() if name not in own}

    @property
    def outputs(self) -> dict[str, Type]:
        return {**{part.name: part.type for part in fields_of(result_type())}, WHOLE: result_type()}

    @property
    def size(self) -> int:
        """The number of declared runs, computed without listing them: a grid may be very large."""
        runs = 1
        for values in self.grid.values():
            runs *= len(values)
        if self.baseline is not None and not self._baseline_in_grid():
            runs += 1
        return runs * max(1, len(self.seeds))

    def configurations(self) -> list[Configuration]:
        """Return every run, with the baseline first unless the grid contains it."""
        points = [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]  # noqa: B905 - 3.8
        if self.baseline is not None and not self._baseline_in_grid():
            points.insert(0, dict(self.baseline))
        return [Configuration(point, seed) for point in points for seed in (self.seeds or (None,))]

    def _baseline_in_grid(self) -> bool:
        baseline = self.baseline or {}
        return set(baseline) == set(self.grid) and all(value in self.grid[name] for name, value in baseline.items())

    def command_for(self, configuration: Configuration, inputs: Mapping[str, Any]) -> str:
        """Return the command of one run, with each value quoted for the shell."""
        from shlex import quote

        values = {**inputs, SEED: configuration.seed, **configuration.params}
        texts = {name: quote(str(value)) for name, value in values.items()}
        texts.update({name: switch[not values.get(name)] for name, switch in self.switches.items()})
        return self.command.format(**texts)
