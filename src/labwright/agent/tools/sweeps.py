"""Sweeps: what they found, and making, pausing, resuming and stopping one."""

from __future__ import annotations

import json

from labwright.agent.tools.tool import LONGEST_COMMAND, Deed, Json, Tool, anything, one_of, several, text, whole
from labwright.domain.errors import Invalid
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.services.runs import failures
from labwright.services.runs.new_run import NewRun
from labwright.services.sweeps import results as sweep_views
from labwright.services.sweeps import verbs as sweeps
from labwright.services.sweeps.new_sweep import NewSweep, plan_sweep

_SHOWN = ("id", "name", "goal", "method", "status", "status_reason", "metric", "progress", "best", "budget")
_MADE_BY_HAND = "wild"


def list_sweeps(deed: Deed, limit: int = 10) -> Json:
    found, more = sweep_views.page(deed.lab, limit, None)
    shown = [_listed(deed, sweep) for sweep in found]
    return {"sweeps": shown, "more": more is not None}


def _listed(deed: Deed, sweep: Json) -> Json:
    return {**{name: sweep[name] for name in _SHOWN}, "evidence": deed.cite("sweep", sweep_id=sweep["id"])}


def sweep_results(deed: Deed, sweep: str, key: str | None = None, goal: str | None = None, limit: int = 5) -> Json:
    """Best first; each configuration with evidence of its own, and its place among the others."""
    shown = sweep_views.get(deed.lab, sweep)
    facts = {name: shown[name] for name in _SHOWN} | {"evidence": deed.cite("sweep", sweep_id=sweep)}
    try:
        found = sweep_views.results(deed.lab, sweep, key, goal, limit)
    except Invalid as error:  # it has no metric of its own: that is an answer too
        return {**facts, "note": f"{error.message} {error.hint}"}
    metric = found["metric"]
    rows = [
        {
            **{name: row[name] for name in ("params", "mean", "std", "n", "run_ids")},
            "evidence": _configuration(deed, sweep, row["config_hash"], metric),
        }
        for row in found["configurations"]
        if row["mean"] is not None
    ]
    words = found["verdict"]["text"]
    verdict = {"text": words, "evidence": deed.cite("text", what=sweep, shown=words)}
    return {**facts, "metric": metric, "configurations": rows, "verdict": verdict}


def _configuration(deed: Deed, sweep: str, config_hash: str, metric: Json) -> str:
    return deed.cite("configuration", sweep_id=sweep, config_hash=config_hash, key=metric["key"], goal=metric["goal"])


def start_sweep(
    deed: Deed,
    name: str,
    command: str,
    parameters: Json,
    method: str = "grid",
    metric: str | None = None,
    goal: str = "min",
    max_runs: int | None = None,
    parallel: int | None = None,
    seeds: list[int] | None = None,
    question: str = "",
    gpu_hours: int | None = None,
    despite: str | None = None,
) -> Json:
    """Not before earlier failures of its configurations were pointed out, and one of them named as known."""
    wanted = NewSweep(
        name=name,
        base_command=command,
        parameters=parameters,
        method=SweepMethod(method),
        common=NewRun(command=command, chat_session_id=deed.session.id),
        goal=question,
        metric={"key": metric, "goal": goal, "use": "last"} if metric else None,
        max_runs=max_runs,
        parallel=parallel,
        seeds=tuple(seeds or ()),
        budget={"gpu_hours": gpu_hours} if gpu_hours else {},
        chat_session_id=deed.session.id,
        auto_start=True,
        again=despite is not None,
    )
    before = _failed_before(deed, wanted)
    if before and despite not in {one["run_id"] for one in before}:
        return {"started": False, "failed_before": before[:5], "to_start_anyway": f"pass despite={before[0]['run_id']}"}
    return {"started": True, **_brief(deed, sweeps.create(deed.lab, wanted, deed.actor, deed.once("start_sweep")))}


def _failed_before(deed: Deed, wanted: NewSweep) -> list[Json]:
    planned = [json.loads(record.text) for record in plan_sweep(deed.lab, wanted, deed.actor).runs]
    configurations = [(run["command"], run["params"]) for run in planned]
    return failures.among(deed.lab, configurations, ended_before=deed.asked_at)


def create_sweep(deed: Deed, name: str, question: str) -> Json:
    """Runs join it one by one."""
    made = sweeps.create_wild(
        deed.lab,
        name=name,
        goal=question,
        chat_session_id=deed.session.id,
        parallel=None,
        metric=None,
        actor=deed.actor,
        key=deed.once("create_sweep"),
    )
    return _brief(deed, made)


def change_sweep(deed: Deed, sweep: str, verb: str) -> Json:
    found = sweep_views.get(deed.lab, sweep)
    if not deed.is_own(found["created_by"], found["chat_session_id"]):
        facts = f"{found['name']!r}, {found['status']}, started by {found['created_by']}"
        deed.needs_approval(f"{verb.capitalize()} the sweep {sweep} ({facts})?", sweep=found["id"])
    changed = {"stop": sweeps.stop, "pause": sweeps.pause, "resume": sweeps.resume}[verb](deed.lab, sweep, deed.actor)
    return _brief(deed, changed)


def _brief(deed: Deed, sweep: Sweep) -> Json:
    shown = sweep_views.view(deed.lab, sweep)
    return {
        **{name: shown[name] for name in ("id", "name", "method", "status", "progress")},
        "warnings": list(sweep.warnings),
        "evidence": deed.cite("sweep", sweep_id=sweep.id),
    }


_SWEEP = text("the sweep's id")
TOOLS = (
    Tool(
        name="list_sweeps",
        description="Sweeps, newest first.",
        do=list_sweeps,
        takes={"limit": whole("how many to show", 1, 50)},
    ),
    Tool(
        name="sweep_results",
        description="A sweep's progress and its best configurations by mean over seeds, and whether the lead is luck.",
        do=sweep_results,
        takes={
            "sweep": _SWEEP,
            "key": text("another metric than the sweep's own"),
            "goal": one_of("of that metric", "min", "max"),
            "limit": whole("how many configurations to show", 1, 30),
        },
        needs=("sweep",),
    ),
    Tool(
        name="start_sweep",
        description=(
            "Start many configurations. `parameters` has lists of values or ranges {min, max, log, int}; a {name} in "
            "the command is filled in, others are appended as --name value. One configuration is one run."
        ),
        do=start_sweep,
        takes={
            "name": text("a short name", maxLength=200),
            "command": text("what each run runs", maxLength=LONGEST_COMMAND),
            "parameters": anything("by name: a list, or {min, max, log?, int?}"),
            "method": one_of("", *(str(method) for method in SweepMethod if method != _MADE_BY_HAND)),
            "metric": text("what is to be improved"),
            "goal": one_of("of the metric", "min", "max"),
            "max_runs": whole("", 1, 50_000),
            "parallel": whole("runs at a time", 1, 10_000),
            "seeds": several("repeat each configuration with these", type="integer"),
            "question": text("what it is to find out"),
            "gpu_hours": whole("it pauses and asks before it takes more", 1, 10**6),
            "despite": text("the id of an earlier failed run, to start it all the same"),
        },
        needs=("name", "command", "parameters"),
        writes=True,
    ),
    Tool(
        name="create_sweep",
        description="An empty sweep, which runs join one by one through `sweep` of start_run.",
        do=create_sweep,
        takes={"name": text("a short name", maxLength=200), "question": text("what it is to find out")},
        needs=("name", "question"),
        writes=True,
    ),
    Tool(
        name="change_sweep",
        description="Stop, pause or resume a sweep. One that this conversation did not start needs approval.",
        do=change_sweep,
        takes={"sweep": _SWEEP, "verb": one_of("", "stop", "pause", "resume")},
        needs=("sweep", "verb"),
        writes=True,
    ),
)
