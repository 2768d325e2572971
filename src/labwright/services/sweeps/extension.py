"""Extend a sweep with values, seeds, runs or budget, without repeating its runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labwright.domain.errors import Invalid
from labwright.domain.run import RunRecord
from labwright.domain.search.configurations import SEED, config_hash, draw_many
from labwright.domain.search.space import Config
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.services.sweeps.new_sweep import MAX_RUNS, checked_grid, runs_for, space_of
from labwright.store import sweeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    parameters: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    max_runs: int | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    parallel: int | None = None


def extended(
    connection: sqlite3.Connection, sweep: Sweep, extension: Extension, reopen: Callable[[Sweep], Sweep]
) -> tuple[Sweep, list[RunRecord], int]:
    """Return the extended sweep, its new runs, and how many of the requested runs it already has."""
    parameters = {**sweep.parameters, **_merged(sweep.parameters, extension.parameters)}
    if extension.seeds and not sweep.seeds:
        raise Invalid("The sweep has no seeds.", hint="Create a new sweep with seeds.", field=("seeds",))
    grown = sweep.evolve(
        parameters=parameters,
        seeds=tuple(dict.fromkeys((*sweep.seeds, *extension.seeds))),
        max_runs=_new_limit(sweep, extension.max_runs),
        budget={**sweep.budget, **extension.budget},
        parallel=extension.parallel or sweep.parallel,
    )
    existing, known = _existing(connection, sweep)
    first_number = max(existing, default=-1) + 1
    new = _new_configurations(grown, existing)
    configs = [*existing.items(), *enumerate(new, first_number)]
    total, most = len(configs) * grown.runs_per_configuration, grown.max_runs or MAX_RUNS
    if total > most:
        raise Invalid(
            f"The sweep would have {total:,} runs, but max_runs is {most:,}.",
            hint=f"Raise it with --max-runs {total}, or `max_runs` over HTTP.",
            field=("max_runs",),
        )
    has_new_limit = grown.method is SweepMethod.ADAPTIVE and grown.max_runs != sweep.max_runs
    if grown != sweep and (new or has_new_limit or grown.seeds != sweep.seeds):
        grown = reopen(grown)
    made = runs_for(grown, space_of(parameters, grown.seeds), configs, known)
    return grown, made, total - len(made) if extension.parameters else 0


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add values to a list; a new range replaces the old one."""
    merged = {}
    for name, spec in new.items():
        if name not in old:
            without_value = "Its runs have no value for it. Create a new sweep."
            raise Invalid(
                f"The sweep has no parameter {name!r}.",
                hint="Use `seeds` for more seeds." if name == SEED else without_value,
                field=("parameters", name),
            )
        values, more = _values_of(old[name]), _values_of(spec)
        if values is None and more is None:
            merged[name] = {**old[name], **spec}
        elif values is None:
            raise Invalid(
                f"{name} is a range, {json.dumps(old[name])}. Single values cannot be added to it.",
                hint="Send a wider range with POST /sweeps/{id}/extend, as "
                f'{{"parameters": {{"{name}": {{"max": …}}}}}}, or create a new sweep with these values.',
                field=("parameters", name),
            )
        elif more is None:
            message = f"{name} is a list. A range cannot be added to it."
            raise Invalid(message, hint="Send the values to add.", field=("parameters", name))
        else:
            merged[name] = _with_more_values(name, old[name], values, more)
    return merged


def _with_more_values(name: str, spec: Any, values: list[Any], more: list[Any]) -> Any:
    """Refuse a text for a parameter with numbers: it is probably a typing error."""
    not_numbers = [value for value in more if not _is_number(value)]
    if not_numbers and all(_is_number(value) for value in values):
        raise Invalid(
            f"{name} has numbers, but {json.dumps(not_numbers[0], ensure_ascii=False)} is not a number.",
            hint="Send numbers, or create a new sweep.",
            field=("parameters", name),
        )
    known = {json.dumps(value) for value in values}
    every = [*values, *(value for value in more if json.dumps(value) not in known)]
    if not isinstance(spec, dict):
        return every
    return {**{key: value for key, value in spec.items() if key != "value"}, "values": every}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values_of(spec: Any) -> list[Any] | None:
    """Return the values of a list, or None for a range."""
    if isinstance(spec, list):
        return spec
    if not isinstance(spec, dict):
        return [spec]
    if "min" in spec or "max" in spec:
        return None
    values: list[Any] = spec["values"] if "values" in spec else [spec.get("value")]
    return values


def _new_limit(sweep: Sweep, max_runs: int | None) -> int | None:
    if max_runs is None:
        return sweep.max_runs
    if max_runs > MAX_RUNS or max_runs < (sweep.max_runs or 0):
        raise Invalid(
            f"max_runs cannot become {max_runs}.",
            hint=f"It counts all runs of the sweep: between {sweep.max_runs or 1} and {MAX_RUNS}.",
            field=("max_runs",),
        )
    return max_runs


def _existing(
    connection: sqlite3.Connection, sweep: Sweep
) -> tuple[dict[int, Config], frozenset[tuple[str, int | None]]]:
    """Return configurations by number, and the pairs of configuration and seed that have a run."""
    rows = [row for row in sweeps.runs_of(connection, sweep.id) if row.trial is not None]
    configs = {}
    for row in rows:
        params = json.loads(row.params)
        configs[row.trial or 0] = {name: params[name] for name in sweep.parameters if name in params}
    return dict(sorted(configs.items())), frozenset((row.config_hash or "", row.seed) for row in rows)


def _new_configurations(sweep: Sweep, existing: dict[int, Config]) -> list[Config]:
    space = space_of(sweep.parameters, sweep.seeds)
    known = {config_hash(config) for config in existing.values()}
    if sweep.method is SweepMethod.GRID:
        every = checked_grid(space, sweep.max_runs, sweep.runs_per_configuration)
        return [config for config in every if config_hash(config) not in known]
    if sweep.method is SweepMethod.RANDOM:
        room = (sweep.max_runs or 0) // sweep.runs_per_configuration - len(existing)
        return draw_many(space, sweep.sampling_seed, max(0, room), known)
    return []  # the worker requests them one by one
