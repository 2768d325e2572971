"""From what somebody asks for to a sweep and its runs: every check and default in one place, nothing written yet."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.slurm.allocation import gpus_held
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
    """One run as a plan names it: its configuration, and its command letter by letter."""

    params: Config
    seed: int | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSweep:
    name: str
    id: str | None = None  # of who may have to ask twice for the same sweep
    base_command: str
    parameters: dict[str, Any]
    method: SweepMethod
    common: NewRun  # what every run gets
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
    again: bool = False  # also what another sweep has done already
    listed: tuple[ListedRun, ...] = ()  # these runs and no others; else the parameters say which


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSweep:
    sweep: Sweep
    runs: list[RunRecord]
    secrets: dict[str, str]


def plan_sweep(lab: Lab, wanted: NewSweep, actor: Actor) -> PlannedSweep:
    if wanted.listed:
        return _plan_listed(lab, wanted, actor)
    wanted = _with_seeds_apart(wanted)
    space = space_of(wanted.parameters, wanted.seeds)
    template = command_of(wanted.base_command, space, wanted.seeds)
    _check_method(wanted)
    seed, per_config = _seed(wanted), max(1, len(wanted.seeds))
    configs = first_configurations(wanted.method, space, wanted.max_runs, per_config, seed)
    first = configs[0] if configs else {}
    common_run = replace(wanted.common, command=_any_command(template, first, wanted))
    planned = plan_run(lab, common_run, actor, command_field="base_command")
    sweep, common = _draft_of(wanted, planned, seed, actor)
    sweep = replace(sweep, warnings=_warnings(lab, sweep, (*common.warnings, *template.warnings), len(configs)))
    if wanted.auto_start:
        sweep = started(sweep)
    return PlannedSweep(sweep=sweep, runs=runs_for(sweep, space, enumerate(configs)), secrets=planned.secrets)


def _with_seeds_apart(wanted: NewSweep) -> NewSweep:
    """`seed: [1, 2, 3]` among the parameters is `seeds` by another name: it makes no configurations of its own."""
    if SEED not in wanted.parameters or wanted.seeds:
        return wanted  # both at once are refused with the command
    space = parse_space(wanted.parameters)
    seed = space.by_name[SEED]
    if isinstance(seed, Range) and not (wanted.method is SweepMethod.GRID and seed.is_discrete):
        return wanted  # drawn like any other
    values = seed.grid() if isinstance(seed, Range) else seed.values
    seeds = tuple(value for value in values if type(value) is int)
    if seed.when or seed in space.controlling or len(seeds) < len(values):
        raise Invalid(
            "seed must be a list of whole numbers, the same for every configuration.",
            hint="Write seeds: [1, 2, 3] beside parameters.",
            field=("parameters", SEED),
        )
    others = {name: spec for name, spec in wanted.parameters.items() if name != SEED}
    return replace(wanted, parameters=others, seeds=seeds)


def space_of(parameters: dict[str, Any], seeds: Sequence[int]) -> Space:
    """Seeds alone make one configuration, which runs once with each."""
    return Space(()) if seeds and not parameters else parse_space(parameters)


def _plan_listed(lab: Lab, wanted: NewSweep, actor: Actor) -> PlannedSweep:
    most = MAX_RUNS if wanted.max_runs is None else wanted.max_runs
    if len(wanted.listed) > most:
        raise Invalid(f"There are {len(wanted.listed):,} runs; at most {most:,} are allowed.", hint="Plan fewer.")
    planned = plan_run(lab, replace(wanted.common, command=wanted.listed[0].command), actor)
    sweep, common = _draft_of(wanted, planned, _seed(wanted), actor)
    sweep = replace(sweep, warnings=common.warnings)
    if wanted.auto_start:
        sweep = started(sweep)
    return PlannedSweep(sweep=sweep, runs=_listed_runs(sweep, wanted.listed), secrets=planned.secrets)


def _draft_of(wanted: NewSweep, planned: PlannedRun, seed: int, actor: Actor) -> tuple[Sweep, Run]:
    """The sweep without its runs, and what these have in common."""
    sweep = Sweep(
        id=wanted.id or new_id(SWEEP),
        name=wanted.name,
        goal=wanted.goal,
        method=wanted.method,
        status=SweepStatus.DRAFT,
        chat_session_id=wanted.chat_session_id,
        plan_id=wanted.common.plan_id,
        parallel=wanted.parallel,
        base_command=wanted.base_command,
        parameters=wanted.parameters,
        seeds=wanted.seeds,
        max_runs=wanted.max_runs,
        metric=wanted.metric,
        early_stop=wanted.early_stop,
        budget=wanted.budget,
        first_budget=wanted.budget,
        sampling_seed=seed,
        created_at=now(),
        created_by=str(actor),
    )
    common = replace(planned.run, id="", sweep_id=sweep.id, config_hash=None, name="")
    return replace(sweep, template=common.to_dict()), common


def started(sweep: Sweep, **facts: Any) -> Sweep:
    at = now()
    begun = {"started_at": sweep.started_at or at, "running_since": at, "ended_at": None}
    return sweep.move(SweepStatus.RUNNING, **begun, **facts)


def command_of(command: str, space: Space, seeds: Sequence[int]) -> CommandTemplate:
    if SEED in space.names and seeds:
        raise Invalid(
            "seed is a parameter, and there are seeds.",
            hint="Take one of the two out; seeds makes every configuration run once per seed.",
            field=("parameters", SEED),
        )
    names = (*space.names, SEED) if seeds else space.names
    optional = {parameter.name for parameter in space.parameters if parameter.when}
    return parse_command(command, names, optional)


def _check_method(wanted: NewSweep) -> None:
    per_config = max(1, len(wanted.seeds))
    if wanted.method in (SweepMethod.RANDOM, SweepMethod.ADAPTIVE):
        if not wanted.parameters:
            raise Invalid(
                f"Beside seed there is nothing that method {wanted.method} could choose.",
                hint="Use method grid: it runs once with each seed.",
                field=("parameters",),
            )
        if wanted.max_runs is None:
            raise Invalid(
                f"A sweep of method {wanted.method} needs max_runs.",
                hint="Say how many runs it may make, seeds included: max_runs: 60.",
                field=("max_runs",),
            )
        if wanted.max_runs < per_config:
            raise Invalid(
                f"max_runs is {wanted.max_runs}, and each configuration takes {per_config} runs.",
                hint="Raise max_runs or use fewer seeds.",
                field=("max_runs",),
            )
    if wanted.max_runs is not None and wanted.max_runs > MAX_RUNS:
        raise Invalid(f"A sweep has at most {MAX_RUNS} runs.", hint="Make several.", field=("max_runs",))
    for field_name in ("adaptive", "early_stop"):
        needs = wanted.early_stop if field_name == "early_stop" else wanted.method is SweepMethod.ADAPTIVE
        if needs and wanted.metric is None:
            raise Invalid(
                f"{'Early stopping' if field_name == 'early_stop' else 'An adaptive sweep'} needs a metric.",
                hint="Say what is to be small or large: metric: {key: val/loss, goal: min}.",
                field=("early_stop",) if field_name == "early_stop" else ("method",),
            )


def _seed(wanted: NewSweep) -> int:
    return wanted.sampling_seed if wanted.sampling_seed is not None else secrets.randbits(31)


def first_configurations(
    method: SweepMethod, space: Space, max_runs: int | None, per_config: int, sampling_seed: int
) -> list[Config]:
    """Adaptive sweeps begin with none: the worker asks for them."""
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
            f"The grid has {count:,} runs; {'a sweep has' if max_runs is None else 'max_runs is'} at most {most:,}.",
            hint="Use fewer values or seeds, or method random or adaptive with max_runs."
            + ("" if max_runs is None or count > MAX_RUNS else f" Or raise max_runs to {count}."),
            field=("parameters",) if max_runs is None else ("max_runs",),
        )
    return list(grid(space))


def _any_command(template: CommandTemplate, config: Config, wanted: NewSweep) -> str:
    """One that a run will really have, to see what it says of cards; an adaptive sweep has none yet."""
    if not config:
        return wanted.base_command
    return template.fill({**config, **({SEED: wanted.seeds[0]} if wanted.seeds else {})})


def _warnings(lab: Lab, sweep: Sweep, found_before: tuple[str, ...], configs: int) -> tuple[str, ...]:
    found = list(found_before)
    per_config, most = sweep.runs_per_configuration, sweep.max_runs or 0
    if sweep.method is SweepMethod.RANDOM and configs < most // per_config:
        found.append(f"There are only {configs} different configurations; max_runs leaves room for more.")
    elif sweep.method is not SweepMethod.GRID and most % per_config:
        found.append(f"max_runs is no multiple of {per_config} seeds: {most - most % per_config} runs are made.")
    if "gpu_hours" in sweep.budget and gpus_of_each(lab, sweep) == 0:
        found.append("Its runs use no GPU, so the budget in GPU-hours never runs out.")
    return tuple(found)


def runs_for(
    sweep: Sweep,
    space: Space,
    configs: Iterable[tuple[int, Config]],
    known: frozenset[tuple[str, int | None]] = frozenset(),
) -> list[RunRecord]:
    """One run a seed for each numbered configuration; what is `known` by hash and seed is left out."""
    template = command_of(sweep.base_command, space, sweep.seeds)

    def wanted() -> Iterator[tuple[int, ListedRun]]:
        for trial, config in configs:
            label = config_hash(config)
            for seed in sweep.seeds or (None,):
                if (label, seed) not in known:
                    yield trial, ListedRun(params=config, seed=seed, command=template.fill(_values(config, seed)))

    return _records(sweep, wanted())


def _listed_runs(sweep: Sweep, listed: Iterable[ListedRun]) -> list[RunRecord]:
    """Runs that differ only in their seed are one configuration, numbered as they come."""
    numbers: dict[str, int] = {}
    return _records(sweep, ((numbers.setdefault(config_hash(run.params), len(numbers)), run) for run in listed))


def _records(sweep: Sweep, numbered: Iterable[tuple[int, ListedRun]]) -> list[RunRecord]:
    at = now()
    status, queued_at = _first_status(sweep, at)

    def variants() -> Iterator[dict[str, Any]]:
        for trial, run in numbered:
            label = config_hash(run.params)
            yield {
                "id": id_of(RUN, f"{sweep.id} {label} {run.seed}".encode()),  # the same if a crash makes us ask again
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


def _values(config: Config, seed: int | None) -> Config:
    return config if seed is None else {**config, SEED: seed}


def _first_status(sweep: Sweep, at: str) -> tuple[RunStatus, str | None]:
    if sweep.status is SweepStatus.RUNNING and not sweep.is_rationed:
        return RunStatus.QUEUED, at
    return RunStatus.READY, None


def again(lab: Lab, sweep: Sweep, failed: Sequence[Run]) -> list[RunRecord]:
    """Failed runs of a sweep once more, with the code as it is now: somebody may have mended it."""
    at = now()
    status, queued_at = _first_status(sweep, at)
    base = Run.from_dict(sweep.template)
    base = replace(base, snapshot=take_snapshot(lab, Path(base.workdir)), warnings=_without_secrets(lab, sweep, base))
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


def _without_secrets(lab: Lab, sweep: Sweep, base: Run) -> tuple[str, ...]:
    if not base.secret_env or lab.paths.secret(sweep.id).exists():
        return base.warnings
    words = f"A sweep's secret variables are not kept after its end, so this run has no {', '.join(base.secret_env)}."
    return (*base.warnings, words)


def add_runs(lab: Lab, tx: Transaction, made: Sequence[RunRecord], actor: Actor) -> None:
    runs.insert_many(tx, made, str(actor))
    lab.journal.note_records(tx, (record.text for record in made))


def queue_ready(tx: Transaction, sweep: Sweep, limit: int, actor: Actor) -> int:
    """The next of those that the sweep made and has not queued yet; answers how many there were.

    Not in the journal: after a rebuild they are ready again, and the worker queues them again.
    """
    found = [runs.get(tx.connection, run_id) for run_id in sweeps.ready_ids(tx.connection, sweep.id, limit)]
    at = now()
    runs.move_many(tx, [(run, run.move(RunStatus.QUEUED, queued_at=at)) for run in found], str(actor))
    return len(found)


def gpus_of_each(lab: Lab, sweep: Sweep) -> int:
    """How many cards one of its runs holds; on Slurm those of all its nodes, however they were asked for.

    Runs that join one by one have nothing in common to tell by.
    """
    if not sweep.template:
        return 0
    run = Run.from_dict(sweep.template)
    return gpus_held(run, lab.slurm.defaults) if lab.cluster.current.type is ClusterType.SLURM else run.gpus


def wall_seconds(sweep: Sweep) -> float:
    """How long it has been at work, without pauses."""
    if sweep.running_since is None:
        return sweep.active_seconds
    return sweep.active_seconds + max(0.0, epoch_seconds(now()) - epoch_seconds(sweep.running_since))
