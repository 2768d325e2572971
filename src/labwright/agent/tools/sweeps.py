"""Sweeps: list, show, create, start, stop, pause, resume and extend, and their results."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from labwright.agent.tools.runs import COMMAND, GPUS, GPUWRAP, TAGS, WORKDIR
from labwright.agent.tools.tool import (
    SWEEP_REFERENCE,
    Json,
    Tool,
    ToolContext,
    anything,
    fields,
    number,
    one_of,
    several,
    text,
    whole,
    yes_or_no,
)
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Invalid
from labwright.domain.run import GpuwrapConfig
from labwright.domain.search.early_stop import AFTER_RUNS, FACTOR, FIRST_STEP
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.services import ownership
from labwright.services.runs import failures
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import results as sweep_views
from labwright.services.sweeps import verbs as sweeps
from labwright.services.sweeps.extension import Extension
from labwright.services.sweeps.new_sweep import NewSweep, plan_sweep

_BRIEF = ("id", "name", "goal", "method", "status", "status_reason", "metric", "progress", "best", "budget")
_EARLY_STOP = {"after_runs": AFTER_RUNS, "from_step": 0, "first_step": FIRST_STEP, "factor": FACTOR}
Verb = Callable[[Lab, str, Actor], Sweep]


def list_sweeps(context: ToolContext, limit: int = 20) -> Json:
    found, more = sweep_views.page(context.lab, limit, None)
    return {"sweeps": [_brief(context, sweep) for sweep in found], "more": more is not None}


def _brief(context: ToolContext, shown: Json) -> Json:
    return {**{name: shown[name] for name in _BRIEF}, **context.cite("sweep", sweep_id=shown["id"])}


def get_sweep(context: ToolContext, sweep_id: str) -> Json:
    found = context.sweep_id(sweep_id)
    return {**sweep_views.get(context.lab, found), **context.cite("sweep", sweep_id=found)}


def get_sweep_results(
    context: ToolContext, sweep_id: str, key: str | None = None, goal: str | None = None, limit: int = 5
) -> Json:
    """Return the configurations, best first; in a conversation each has its own evidence."""
    sweep = context.sweep_id(sweep_id)
    facts = _brief(context, sweep_views.get(context.lab, sweep))
    try:
        found = sweep_views.results(context.lab, sweep, key, goal, limit)
    except Invalid as error:  # the sweep has no metric: the caller is told to name one
        return {**facts, "note": f"{error.message} {error.hint}"}
    metric = found["metric"]
    source = {"sweep_id": sweep, "key": metric["key"], "goal": metric["goal"]}
    rows = [
        {
            **{name: row[name] for name in ("params", "mean", "std", "n", "run_ids")},
            **context.cite("configuration", config_hash=row["config_hash"], **source),
        }
        for row in found["configurations"]
        if row["mean"] is not None
    ]
    conclusion = found["verdict"]["text"]
    verdict = {"text": conclusion, **context.cite("text", what=sweep, shown=conclusion)}
    outside = {} if context.session else {"total": found["total"], "importance": found["importance"]}
    return {**facts, "metric": metric, "configurations": rows, "verdict": verdict, **outside}


def create_sweep(
    context: ToolContext,
    name: str,
    base_command: str,
    parameters: Json,
    method: str = "grid",
    metric: Json | None = None,
    goal: str = "",
    max_runs: int | None = None,
    parallel: int | None = None,
    seeds: list[int] | None = None,
    budget: Json | None = None,
    early_stop: Json | None = None,
    workdir: str | None = None,
    gpus: int | None = None,
    gpuwrap_config: Json | None = None,
    tags: list[str] | None = None,
    auto_start: bool = True,
    again: bool = False,
    despite: str | None = None,
) -> Json:
    """Create a sweep. In a conversation, only after the model has seen which of its configurations failed before."""
    wanted = NewSweep(
        name=name,
        base_command=base_command,
        parameters=parameters,
        method=SweepMethod(method),
        common=NewRun(
            command=base_command,
            workdir=workdir,
            gpus=gpus,
            gpuwrap_config=GpuwrapConfig(**gpuwrap_config) if gpuwrap_config else None,
            tags=tuple(tags or ()),
            chat_session_id=context.session_id,
        ),
        goal=goal,
        metric=full_metric(metric),
        max_runs=max_runs,
        parallel=parallel,
        seeds=tuple(dict.fromkeys(seeds or ())),
        early_stop={**_EARLY_STOP, **early_stop} if early_stop else None,
        budget=budget or {},
        chat_session_id=context.session_id,
        auto_start=auto_start,
        again=again or despite is not None,
    )
    if context.session is not None:
        planned = [json.loads(record.text) for record in plan_sweep(context.lab, wanted, context.actor).runs]
        configurations = [(run["command"], run["params"]) for run in planned]
        before = failures.among(context.lab, configurations, ended_before=context.asked_at)
        if before and despite not in {one["run_id"] for one in before}:
            anyway = f"pass despite={before[0]['run_id']}"
            return {"started": False, "failed_before": before[:5], "to_start_it_anyway": anyway}
    return _made(context, sweeps.create(context.lab, wanted, context.actor, context.once("start_sweep")))


def full_metric(metric: Json | None) -> Json | None:
    return {"goal": "min", "use": "last", **metric} if metric else None


def create_wild_sweep(
    context: ToolContext, name: str, goal: str = "", metric: Json | None = None, parallel: int | None = None
) -> Json:
    made = sweeps.create_wild(
        context.lab,
        name=name,
        goal=goal,
        chat_session_id=context.session_id,
        parallel=parallel,
        metric=full_metric(metric),
        actor=context.actor,
        key=context.once("create_sweep"),
    )
    return _made(context, made)


def _change(context: ToolContext, sweep_id: str, *, verb: str, change: Verb) -> Json:
    """Change a sweep, once it is clear that the caller may do so."""
    sweep = context.sweep_id(sweep_id)
    found = sweep_views.get(context.lab, sweep)
    if context.session is None:
        ownership.check_sweep(context.lab, sweep, context.actor)
    elif not context.is_own(found["created_by"], found["chat_session_id"]):
        facts = f"{found['name']!r}, {found['status']}, started by {found['created_by']}"
        context.needs_approval(f"{verb.capitalize()} the sweep {sweep} ({facts})?", sweep_id=sweep)
    return _made(context, change(context.lab, sweep, context.actor))


def start_sweep(context: ToolContext, sweep_id: str) -> Json:
    sweep = context.sweep_id(sweep_id)
    return _made(context, sweeps.start(context.lab, sweep, context.actor))


def retry_failed_runs(context: ToolContext, sweep_id: str) -> Json:
    sweep = context.sweep_id(sweep_id)
    done = sweeps.retry_failed(context.lab, sweep, context.actor)
    return {**_made(context, done.sweep), "added": done.added, "already": done.already}


def extend_sweep(
    context: ToolContext,
    sweep_id: str,
    parameters: Json | None = None,
    seeds: list[int] | None = None,
    max_runs: int | None = None,
    parallel: int | None = None,
) -> Json:
    """Add values, seeds or runs. There is no `budget` here: only a person gives a sweep more."""
    extension = Extension(
        parameters=parameters or {},
        seeds=tuple(dict.fromkeys(seeds or ())),
        max_runs=max_runs,
        parallel=parallel,
    )
    done = sweeps.extend(context.lab, context.sweep_id(sweep_id), extension, context.actor)
    return {**_made(context, done.sweep), "added": done.added, "already": done.already}


def _made(context: ToolContext, sweep: Sweep) -> Json:
    shown = sweep_views.view(context.lab, sweep)
    return {
        **{name: shown[name] for name in ("id", "name", "method", "status", "status_reason", "progress")},
        "warnings": list(sweep.warnings),
        **context.cite("sweep", sweep_id=sweep.id),
    }


_SWEEP = {"sweep_id": text(SWEEP_REFERENCE)}
METRIC = fields(
    "what runs are compared by",
    ("key",),
    key=text("the metric's name", minLength=1, maxLength=1024),
    goal=one_of("which is better; default min", "min", "max"),
    use=one_of("which value of a run counts; default last", "last", "best"),
)
BUDGET = fields(
    "the sweep pauses and asks before it uses more",
    gpu_hours=number("", 0.000001, 10**9),
    runs=whole("", 1, 1_000_000),
    wall_seconds=number("", 0.001, 10**9),
)
PARAMETERS = anything("by name: a list of values, or a range {min, max, log?, int?}")
SEEDS = several("repeat each configuration with these seeds", type="integer", minimum=-(2**53), maximum=2**53)
PARALLEL = whole("the maximum number of its runs at the same time", 1, 100_000)
_EARLY_STOP_TAKES = fields(
    "stop runs that are clearly worse",
    ("method",),
    method=one_of("", "median", "halving"),
    after_runs=whole("median: how many others must have come as far", 1, 10_000),
    from_step=whole("median: stop nothing before this step", 0, 2**53),
    first_step=whole("halving: the first step at which runs are compared", 1, 2**53),
    factor=whole("halving: one run of so many continues", 2, 100),
)


def _verb(name: str, description: str, change: Verb) -> Tool:
    """A tool that changes a sweep, after the check whose sweep it is."""
    verb = name.removesuffix("_sweep")
    do: Callable[..., Json] = partial(_change, verb=verb, change=change)
    return Tool(
        name=name, description=description, do=do, takes=_SWEEP, needs=("sweep_id",), writes=True, destroys=True
    )


_WHOSE = "A sweep that this conversation or an assistant did not start needs a person."
_GRID: dict[str, Any] = {
    "name": text("a short name", maxLength=200),
    "base_command": {**COMMAND, "description": "a {name} is filled in; other parameters are added as --name value"},
    "parameters": PARAMETERS,
    "method": one_of("default grid", *(str(method) for method in SweepMethod if method is not SweepMethod.WILD)),
    "metric": METRIC,
    "goal": text("the question that it answers", maxLength=100_000),
    "max_runs": whole("seeds included", 1, 1_000_000),
    "parallel": PARALLEL,
    "seeds": SEEDS,
    "budget": BUDGET,
    "early_stop": _EARLY_STOP_TAKES,
    "workdir": WORKDIR,
    "gpus": GPUS,
    "gpuwrap_config": GPUWRAP,
    "tags": TAGS,
    "auto_start": yes_or_no("start it now; default true"),
    "again": yes_or_no("create it even if another sweep has all of these runs"),
}
TOOLS = (
    Tool(
        name="list_sweeps",
        description="List sweeps, newest first, with their progress and the best configuration so far.",
        do=list_sweeps,
        takes={"limit": whole("how many to return", 1, 100)},
    ),
    Tool(
        name="get_sweep",
        description="Get one sweep: parameters, budget, progress, the best configuration.",
        do=get_sweep,
        takes=_SWEEP,
        needs=("sweep_id",),
    ),
    Tool(
        name="get_sweep_results",
        description="Get a sweep's best configurations by mean over seeds, and whether the lead is more than noise.",
        do=get_sweep_results,
        takes={
            **_SWEEP,
            "key": text("a metric other than the sweep's own"),
            "goal": one_of("of that metric", "min", "max"),
            "limit": whole("how many configurations to return", 1, 100),
        },
        needs=("sweep_id",),
    ),
    Tool(
        name="create_sweep",
        description=(
            "Run one command with many configurations; each configuration is one run. In a conversation, nothing is "
            "created if similar runs failed before; the result names them."
        ),
        do=create_sweep,
        takes=_GRID,
        chat_takes={"despite": text("the id of a similar run that failed before, to create the sweep anyway")},
        needs=("name", "base_command", "parameters"),
        writes=True,
    ),
    Tool(
        name="create_wild_sweep",
        description="Create an empty sweep. Runs join it one by one, through sweep_id of create_run.",
        do=create_wild_sweep,
        takes={
            "name": text("a short name", maxLength=200),
            "goal": text("the question that its runs answer", maxLength=100_000),
            "metric": METRIC,
            "parallel": PARALLEL,
        },
        needs=("name",),
        writes=True,
    ),
    Tool(
        name="start_sweep",
        description="Start a sweep that was created with auto_start false.",
        do=start_sweep,
        takes=_SWEEP,
        needs=("sweep_id",),
        writes=True,
    ),
    _verb("stop_sweep", f"End a sweep and all of its runs. {_WHOSE}", sweeps.stop),
    _verb("pause_sweep", f"Start no further runs of a sweep; running ones continue. {_WHOSE}", sweeps.pause),
    _verb("resume_sweep", f"Continue a paused sweep. {_WHOSE}", sweeps.resume),
    Tool(
        name="retry_failed_runs",
        description="Create new runs for those of a sweep that failed or were lost.",
        do=retry_failed_runs,
        takes=_SWEEP,
        needs=("sweep_id",),
        writes=True,
    ),
    Tool(
        name="extend_sweep",
        description="Add values, seeds or runs to a sweep. Existing runs are not repeated.",
        do=extend_sweep,
        takes={
            **_SWEEP,
            "parameters": anything("by name: values to add to a list, or a range that replaces the old one"),
            "seeds": SEEDS,
            "max_runs": whole("the new maximum, seeds included", 1, 1_000_000),
            "parallel": PARALLEL,
        },
        needs=("sweep_id",),
        writes=True,
    ),
)
