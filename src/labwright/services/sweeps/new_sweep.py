"""Turn a request for a sweep into a sweep and its runs: every check and default. Nothing is written."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.slurm.resources import gpus_held
from labwright.domain.actor import Actor
from labwright.domain.clock import epoch_seconds, now
from labwright.domain.cluster import ClusterType
from labwright.domain.errors import Invalid
from labwright.domain.ids import RUN, SWEEP, id_of, new_id
from labwright.domain.run import Run, RunRecord, RunStatus, copies
from labwright.domain.search.command_template import CommandTemplate, parse_command
from labwright.domain.search.configurations import SEED, config_hash, count_grid, draw_many, grid
from labwright.domain.search.space import Config, Range, Space, parse_space
from labwright.domain.sweep import Sweep, SweepMethod, SweepStatus
from labwright.services.runs.new_run import NewRun, PlannedRun, name_from_params, plan_run, take_snapshot
from labwright.store import runs, sweeps
from labwright.store.database import Transaction

MAX_RUNS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run of a plan: its configuration and its exact command."""

    params: Config
    seed: int | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSweep:
    name: str
    id: str | None = None  # set by callers that may repeat the request
    base_command: str
    parameters: dict[str, Any]
    method: SweepMethod
    common: NewRun  # shared by all runs
    goal: str = ""
    metric: dict[str, Any] | None = None
    max_runs: int | None = None
    parallel: int | None = None
    seeds: tuple[int, ...] = ()
    early_stop: dict[str, Any] | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None
    chat_session_id: str | None = None
    auto_start: bool = False
    again: bool = False  # even if another sweep has the same runs
    listed: tuple[ListedRun, ...] = ()  # exactly these runs, instead of those from `parameters`


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSweep:
    sweep: Sweep
    runs: list[RunRecord]
    secrets: dict[str, str]


def plan_sweep(lab: Lab, request: NewSweep, actor: Actor) -> PlannedSweep:
    if request.listed:
        return _plan_listed(lab, request, actor)
    request = _with_seeds_apart(request)
    space = space_of(request.parameters, request.seeds)
    template = command_of(request.base_command, space, request.seeds)
    _check_method(request)
    seed, per_config = _seed(request), max(1, len(request.seeds))
    configs = first_configurations(request.method, space, request.max_runs, per_config, seed)
    command = request.base_command
    if configs and configs[0]:  # the command of one run shows which GPUs it names; an adaptive sweep has no run yet
        command = template.fill({**configs[0], **({SEED: request.seeds[0]} if request.seeds else {})})
    planned = plan_run(lab, replace(request.common, command=command), actor, command_field="base_command")
    sweep = _draft_of(request, planned, seed, actor)
    warnings = (*planned.run.warnings, *template.warnings, *_warnings(lab, sweep, len(configs)))
    sweep = replace(sweep, warnings=warnings)
    if request.auto_start:
        sweep = started(sweep)
    return PlannedSweep(sweep=sweep, runs=runs_for(sweep, space, enumerate(configs)), secrets=planned.secrets)


def _with_seeds_apart(request: NewSweep) -> NewSweep:
    """Move a list `seed: [1, 2, 3]` from the parameters to `seeds`, so that it does not create configurations."""
    if SEED not in request.parameters or request.seeds:
        return request  # both at once are refused later
    space = parse_space(request.parameters)
    seed = space.by_name[SEED]
    if isinstance(seed, Range) and not (request.method is SweepMethod.GRID and seed.is_discrete):
        return request  # sampled like any other parameter
    values = seed.grid() if isinstance(seed, Range) else seed.values
    seeds = tuple(value for value in values if type(value) is int)
    if seed.when or seed in space.controlling or len(seeds) < len(values):
        raise Invalid(
            "seed must be a list of whole numbers, the same for every configuration.",
            hint="Use seeds: [1, 2, 3] instead.",
            field=("parameters", SEED),
        )
    others = {name: spec for name, spec in request.parameters.items() if name != SEED}
    return replace(request, parameters=others, seeds=seeds)


def space_of(parameters: dict[str, Any], seeds: Sequence[int]) -> Space:
    """Return the search space. Without parameters, the seeds share one empty configuration."""
    return Space(()) if seeds and not parameters else parse_space(parameters)


def _plan_listed(lab: Lab, request: NewSweep, actor: Actor) -> PlannedSweep:
    most = MAX_RUNS if request.max_runs is None else request.max_runs
    if len(request.listed) > most:
        raise Invalid(
            f"The plan has {len(request.listed):,} runs, but at most {most:,} are allowed.", hint="Plan fewer runs."
        )
    planned = plan_run(lab, replace(request.common, command=request.listed[0].command), actor)
    sweep = replace(_draft_of(request, planned, _seed(request), actor), warnings=planned.run.warnings)
    if request.auto_start:
        sweep = started(sweep)
    numbers: dict[str, int] = {}  # runs that differ only in their seed share a configuration number
    numbered = ((numbers.setdefault(config_hash(run.params), len(numbers)), run) for run in request.listed)
    return PlannedSweep(sweep=sweep, runs=_records(sweep, numbered), secrets=planned.secrets)


def _draft_of(request: NewSweep, planned: PlannedRun, seed: int, actor: Actor) -> Sweep:
    """Return the sweep without runs. Its template holds the fields that all its runs share."""
    sweep = Sweep(
        id=request.id or new_id(SWEEP),
        name=request.name,
        goal=request.goal,
        method=request.method,
        status=SweepStatus.DRAFT,
        chat_session_id=request.chat_session_id,
        plan_id=request.common.plan_id,
        parallel=request.parallel,
        base_command=request.base_command,
        parameters=request.parameters,
        seeds=request.seeds,
        max_runs=request.max_runs,
        metric=request.metric,
        early_stop=request.early_stop,
        budget=request.budget,
        first_budget=request.budget,
        sampling_seed=seed,
        created_at=now(),
        created_by=str(actor),
    )
    common = replace(planned.run, id="", sweep_id=sweep.id, config_hash=None, name="")
    return replace(sweep, template=common.to_dict())


def started(sweep: Sweep, **facts: Any) -> Sweep:
    at = now()
    facts_of_start = {"started_at": sweep.started_at or at, "running_since": at, "ended_at": None}
    return sweep.move(SweepStatus.RUNNING, **facts_of_start, **facts)


def command_of(command: str, space: Space, seeds: Sequence[int]) -> CommandTemplate:
    if SEED in space.names and seeds:
        raise Invalid(
            "The request has both a parameter `seed` and `seeds`.",
            hint="Remove one of them. With seeds, every configuration runs once per seed.",
            field=("parameters", SEED),
        )
    names = (*space.names, SEED) if seeds else space.names
    optional = {parameter.name for parameter in space.parameters if parameter.when}
    return parse_command(command, names, optional)


def _check_method(request: NewSweep) -> None:
    per_config = max(1, len(request.seeds))
    if request.method in (SweepMethod.RANDOM, SweepMethod.ADAPTIVE):
        if not request.parameters:
            raise Invalid(
                f"Method {request.method} has no parameter to choose, except seed.",
                hint="Use method grid. It runs once with each seed.",
                field=("parameters",),
            )
        if request.max_runs is None:
            raise Invalid(
                f"A sweep of method {request.method} needs max_runs.",
                hint="Set the number of runs, seeds included, e.g. max_runs: 60.",
                field=("max_runs",),
            )
        if request.max_runs < per_config:
            raise Invalid(
                f"max_runs is {request.max_runs}, but each configuration needs {per_config} runs.",
                hint="Raise max_runs or use fewer seeds.",
                field=("max_runs",),
            )
    if request.max_runs is not None and request.max_runs > MAX_RUNS:
        raise Invalid(f"A sweep can have at most {MAX_RUNS} runs.", hint="Create several sweeps.", field=("max_runs",))
    if request.metric is None and (request.early_stop or request.method is SweepMethod.ADAPTIVE):
        is_adaptive = request.method is SweepMethod.ADAPTIVE
        raise Invalid(
            f"{'An adaptive sweep' if is_adaptive else 'Early stopping'} needs a metric.",
            hint="Set a metric, e.g. metric: {key: val/loss, goal: min}.",
            field=("method",) if is_adaptive else ("early_stop",),
        )


def _seed(request: NewSweep) -> int:
    return request.sampling_seed if request.sampling_seed is not None else secrets.randbits(31)


def first_configurations(
    method: SweepMethod, space: Space, max_runs: int | None, per_config: int, sampling_seed: int
) -> list[Config]:
    """Return the configurations to start with. An adaptive sweep has none: the worker requests them one by one."""
    if method is SweepMethod.GRID:
        return checked_grid(space, max_runs, per_config)
    if method is SweepMethod.RANDOM:
        return draw_many(space, sampling_seed, (max_runs or 0) // per_config, ())
    return []


def checked_grid(space: Space, max_runs: int | None, per_config: int) -> list[Config]:
    count = count_grid(space) * per_config
    most = MAX_RUNS if max_runs is None else max_runs
    if count > most:
        raise Invalid(
            f"The grid has {count:,} runs, but {'the limit' if max_runs is None else 'max_runs'} is {most:,}.",
            hint="Use fewer values or seeds, or method random or adaptive with max_runs."
            + ("" if max_runs is None or count > MAX_RUNS else f" Or raise max_runs to {count}."),
            field=("parameters",) if max_runs is None else ("max_runs",),
        )
    return list(grid(space))


def _warnings(lab: Lab, sweep: Sweep, configs: int) -> list[str]:
    warnings = []
    per_config, most = sweep.runs_per_configuration, sweep.max_runs or 0
    if sweep.method is SweepMethod.RANDOM and configs < most // per_config:
        warnings.append(f"There are only {configs} different configurations, fewer than max_runs allows.")
    elif sweep.method is not SweepMethod.GRID and most % per_config:
        warnings.append(
            f"max_runs is not a multiple of {per_config} seeds, so {most - most % per_config} runs are created."
        )
    if "gpu_hours" in sweep.budget and gpus_per_run(lab, sweep) == 0:
        warnings.append("The runs use no GPU, so the budget of GPU-hours has no effect.")
    return warnings


def runs_for(
    sweep: Sweep,
    space: Space,
    configs: Iterable[tuple[int, Config]],
    known: frozenset[tuple[str, int | None]] = frozenset(),
) -> list[RunRecord]:
    """Return one run per seed for each numbered configuration, except those `known` by hash and seed."""
    template = command_of(sweep.base_command, space, sweep.seeds)

    def listed() -> Iterator[tuple[int, ListedRun]]:
        for trial, config in configs:
            label = config_hash(config)
            for seed in sweep.seeds or (None,):
                if (label, seed) not in known:
                    values = config if seed is None else {**config, SEED: seed}
                    yield trial, ListedRun(params=config, seed=seed, command=template.fill(values))

    return _records(sweep, listed())


def _records(sweep: Sweep, numbered: Iterable[tuple[int, ListedRun]]) -> list[RunRecord]:
    at = now()
    status, queued_at = _first_status(sweep, at)

    def variants() -> Iterator[dict[str, Any]]:
        for trial, run in numbered:
            label = config_hash(run.params)
            yield {
                "id": id_of(RUN, f"{sweep.id} {label} {run.seed}".encode()),  # the same again after a crash
                "name": name_from_params(run.params, run.seed),
                "command": run.command,
                "params": run.params,
                "seed": run.seed,
                "config_hash": label,
                "trial": trial,
                "status": status,
                "created_at": at,
                "queued_at": queued_at,
            }

    return list(copies(Run.from_dict(sweep.template), variants()))


def _first_status(sweep: Sweep, at: str) -> tuple[RunStatus, str | None]:
    if sweep.status is SweepStatus.RUNNING and not sweep.is_rationed:
        return RunStatus.QUEUED, at
    return RunStatus.READY, None


def again(lab: Lab, sweep: Sweep, failed: Sequence[Run]) -> list[RunRecord]:
    """Return new runs for failed ones, with the current code, which may have been fixed."""
    at = now()
    status, queued_at = _first_status(sweep, at)
    base = Run.from_dict(sweep.template)
    warnings = base.warnings
    if base.secret_env and not lab.paths.secret(sweep.id).exists():
        names = ", ".join(base.secret_env)
        warnings += (f"Secret variables are deleted when a sweep ends, so this run starts without {names}.",)
    base = replace(base, snapshot=take_snapshot(lab, Path(base.workdir)), warnings=warnings)
    same = ("name", "command", "params", "seed", "config_hash", "trial")
    variants = (
        {
            **{name: getattr(old, name) for name in same},
            "id": id_of(RUN, f"again {old.id}".encode()),
            "parent_run_id": old.id,
            "status": status,
            "created_at": at,
            "queued_at": queued_at,
        }
        for old in failed
    )
    return list(copies(base, variants))


def add_runs(lab: Lab, tx: Transaction, made: Sequence[RunRecord], actor: Actor) -> None:
    runs.insert_many(tx, made, str(actor))
    lab.journal.note_records(tx, (record.text for record in made))


def queue_ready(tx: Transaction, sweep: Sweep, limit: int, actor: Actor) -> int:
    """Queue the next ready runs of the sweep. Return how many there were.

    The journal does not record this: after a rebuild they are ready again, and the worker queues them again.
    """
    ready = [runs.get(tx.connection, run_id) for run_id in sweeps.ready_ids(tx.connection, sweep.id, limit)]
    at = now()
    runs.move_many(tx, [(run, run.move(RunStatus.QUEUED, queued_at=at)) for run in ready], str(actor))
    return len(ready)


def gpus_per_run(lab: Lab, sweep: Sweep) -> int:
    """Return how many GPUs one run of the sweep holds, on Slurm on all its nodes. A wild sweep returns 0."""
    if not sweep.template:
        return 0
    run = Run.from_dict(sweep.template)
    return gpus_held(run, lab.slurm.defaults) if lab.cluster.current.type is ClusterType.SLURM else run.gpus


def wall_seconds(sweep: Sweep) -> float:
    """Return how long the sweep has been running, without pauses."""
    if sweep.running_since is None:
        return sweep.active_seconds
    return sweep.active_seconds + max(0.0, epoch_seconds(now()) - epoch_seconds(sweep.running_since))
