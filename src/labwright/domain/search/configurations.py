"""Configurations of a search space: the full grid, random draws, and which runs have the same configuration."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from labwright.domain.errors import Invalid
from labwright.domain.run import Run
from labwright.domain.search.space import Choice, Config, Parameter, Range, Space, applies, canonical

MAX_CONFIGURATIONS = 100_000
_TRIES = 20  # how often a duplicate is drawn again
SEED = "seed"


def config_hash(params: Mapping[str, Any]) -> str:
    """Return a hash of the values without the seed. The order of the values does not matter."""
    text = canonical({name: value for name, value in params.items() if name != SEED})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def count_grid(space: Space) -> int:
    """Return the number of configurations in the grid without creating them."""
    for parameter in space.parameters:
        if isinstance(parameter, Range) and not parameter.is_discrete:
            raise Invalid(
                f"A grid needs discrete values, but {parameter.name} is a continuous range.",
                hint="Set step or count, list the values, or use method random or adaptive.",
                field=("parameters", parameter.name),
            )
    controlling = space.controlling
    combinations = math.prod(len(parameter.values) for parameter in controlling)
    if combinations > MAX_CONFIGURATIONS:
        return combinations
    return sum(_rest_of_grid(space, chosen) for chosen in _assignments(controlling, {}))


def _assignments(parameters: tuple[Choice, ...], chosen: Config) -> Iterator[Config]:
    if not parameters:
        yield chosen
        return
    first, *rest = parameters
    for value in first.values if applies(first, chosen) else (None,):
        more = {**chosen, first.name: value} if applies(first, chosen) else chosen
        yield from _assignments(tuple(rest), more)


def _rest_of_grid(space: Space, chosen: Config) -> int:
    controlling = {parameter.name for parameter in space.controlling}
    return math.prod(
        _grid_size(parameter)
        for parameter in space.parameters
        if parameter.name not in controlling and applies(parameter, chosen)
    )


def _grid_size(parameter: Parameter) -> int:
    return len(parameter.values) if isinstance(parameter, Choice) else parameter.grid_size


def grid(space: Space) -> Iterator[Config]:
    """Return every configuration. The first parameter changes slowest."""
    columns = [
        parameter.values if isinstance(parameter, Choice) else parameter.grid() for parameter in space.parameters
    ]
    if not space.controlling:
        names = space.names
        return (dict(zip(names, values, strict=True)) for values in itertools.product(*columns))
    return _grid_with_conditions(space, 0, {}, columns)


def _grid_with_conditions(space: Space, index: int, chosen: Config, columns: list[tuple[Any, ...]]) -> Iterator[Config]:
    if index == len(space.parameters):
        yield chosen
    elif not applies(parameter := space.parameters[index], chosen):
        yield from _grid_with_conditions(space, index + 1, chosen, columns)
    else:
        for value in columns[index]:
            yield from _grid_with_conditions(space, index + 1, {**chosen, parameter.name: value}, columns)


def draw(space: Space, source: random.Random) -> Config:
    """Draw one configuration. Only `random()` is used: its numbers are equal in every version of Python."""
    config: Config = {}
    for parameter in space.parameters:
        share = source.random()
        if applies(parameter, config):
            config[parameter.name] = value_at(parameter, share)
    return config


def value_at(parameter: Parameter, share: float) -> Any:
    if isinstance(parameter, Choice):
        return parameter.values[min(int(share * len(parameter.values)), len(parameter.values) - 1)]
    if parameter.whole and not parameter.log and parameter.step is None:
        return int(parameter.low) + min(int(share * (parameter.size or 1)), (parameter.size or 1) - 1)
    return parameter.at(share)


def draw_many(space: Space, sampling_seed: int, count: int, known: Container[str]) -> list[Config]:
    """Draw up to `count` configurations that are not `known`. Equal seeds give equal draws."""
    finite = _finite_size(space)
    if finite is not None and finite <= min(4 * count, MAX_CONFIGURATIONS):
        return _shuffled(space, sampling_seed, count, known)
    source = random.Random(sampling_seed)  # noqa: S311 - it must be repeatable
    found: dict[str, Config] = {}
    for _ in range(count * _TRIES):
        config = draw(space, source)
        label = config_hash(config)
        if label not in known:
            found.setdefault(label, config)
        if len(found) == count:
            break
    return list(found.values())


def _finite_size(space: Space) -> int | None:
    """Return the grid size, or None if a grid does not cover all possible draws equally."""
    ranges = [parameter for parameter in space.parameters if isinstance(parameter, Range)]
    if any(found.size is None or found.log or found.count is not None for found in ranges):
        return None
    return count_grid(space)


def _shuffled(space: Space, sampling_seed: int, count: int, known: Container[str]) -> list[Config]:
    source = random.Random(sampling_seed)  # noqa: S311 - it must be repeatable
    fresh = [config for config in grid(space) if config_hash(config) not in known]
    order = sorted((source.random(), index) for index in range(len(fresh)))
    return [fresh[index] for _, index in order[:count]]


_SEED_ARGUMENT = re.compile(r"(?:(?<!\S)--?[\w.-]*seed[\w-]*(?:\s+|=)|(?<![\w-])[\w.]*seed\w*=)\d+", re.IGNORECASE)


def without_seed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != SEED}


def same_but_for_seed(runs: Iterable[Run]) -> list[list[Run]]:
    """Group runs that differ only in their seed. Doubtful cases stay apart: a mean over them would be wrong."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(_configuration(run), []).append(run)
    return list(groups.values())


def _configuration(run: Run) -> tuple[str, ...]:
    params = canonical(without_seed(run.params))
    if (
        run.sweep_id is not None and run.trial is not None
    ):  # the command is built from them, with the seed anywhere in it
        return params, run.sweep_id
    env = canonical({name: value for name, value in run.env.items() if SEED not in name.lower()})
    return params, _SEED_ARGUMENT.sub("", run.command), run.workdir, env, "" if _names_a_seed(run) else _code(run)


def _names_a_seed(run: Run) -> bool:
    return run.seed is not None or SEED in run.params or _SEED_ARGUMENT.search(run.command) is not None


def _code(run: Run) -> str:
    """Return the hash of the code. Without a named seed it counts: it may change between two equal commands."""
    return str((run.snapshot or {}).get("hash", ""))
