"""What runs wrote and measured: output, metrics, and everything that is computed from the metrics of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labwright.agent.evidence.sources import goal_of
from labwright.agent.tools.tool import RUN_REFERENCE, Json, Tool, ToolContext, one_of, several, text, whole, yes_or_no
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.failure import signature
from labwright.domain.metrics.points import listed
from labwright.domain.run import Run
from labwright.domain.search.configurations import same_but_for_seed
from labwright.services.metrics import compare
from labwright.services.metrics import verbs as metrics
from labwright.services.runs import logs
from labwright.services.runs import verbs as runs
from labwright.store import metrics as stored_metrics

_LINES = 100
_CITED = 8000
_KEYS = 30
_MOST = 50


def digest_logs(context: ToolContext, run_id: str) -> Json:
    found = runs.find(context.lab, run_id)
    digest = logs.digest(context.lab, found)
    kept = {name: value for name, value in digest.items() if value not in (None, [], "")}
    failed = signature(digest["first_error"]) if digest["first_error"] else ""
    return {**kept, "signature": failed, **context.cite("log", run_id=found.id)}


def read_logs(
    context: ToolContext,
    run_id: str,
    grep: str | None = None,
    ignore_case: bool = False,
    offset: int | None = None,
    limit: int = 4000,
) -> Json:
    """Return a part of the output, by default its end; or the newest lines with a text."""
    found = runs.find(context.lab, run_id)
    if grep:
        lines = logs.grep(context.lab, found, grep, ignore_case=ignore_case)["content"].splitlines()
        shown = {"content": "\n".join(lines[-_LINES:]), "left_out_before": max(0, len(lines) - _LINES)}
        return {"run_id": found.id, **shown, **context.cite("log", run_id=found.id, grep=grep)}
    part = logs.read(context.lab, found, -limit if offset is None else offset, limit)
    return {"run_id": found.id, **part, **context.cite("text", what=found.id, shown=part["content"][:_CITED])}


def get_metrics(
    context: ToolContext, run_id: str, keys: list[str] | None = None, max_points: int = 50, x: str = "step"
) -> Json:
    found = runs.find(context.lab, run_id)
    known = sorted({series.key for series in stored_metrics.series_of(context.lab.db.reader(), found.id)})
    wanted = [key for key in known if keys is None or key in keys]
    facts = {"run_id": found.id, "status": found.status, "keys": known[:200]}
    if context.session is None:
        return {**facts, "series": metrics.read(context.lab, found.id, wanted, max_points, x, None)["series"]}
    shown = {key: _values(context, "metric", run_id=found.id, key=key) for key in wanted[:_KEYS]}
    return {**facts, "metrics": shown}


def compare_metrics(
    context: ToolContext,
    run_ids: list[str],
    key: str,
    use: str = "last",
    goal: str | None = None,
    max_points: int | None = None,
    x: str = "step",
) -> Json:
    """Return each value, the ranking, means over seeds, and the difference of each run to the best."""
    found = list({run.id: run for run in (runs.find(context.lab, name) for name in run_ids)}.values())
    if not 1 < len(found) <= _MOST:
        raise Invalid(f"Name between 2 and {_MOST} different runs.")
    direction = goal or goal_of(key)
    ids = [run.id for run in found]
    each = [{"run_id": run.id, "name": run.name, **_values(context, "metric", run_id=run.id, key=key)} for run in found]
    ranking = _values(context, "ranking", run_ids=ids, key=key, use=use, goal=direction)
    groups = _groups(context, found, key, use)
    compared = {
        "key": key,
        "use": use,
        "goal": direction,
        "runs": each,
        "ranking": ranking,
        "mean_over_all": _values(context, "group", run_ids=ids, key=key, use=use),
        "groups": groups,
        "differences": _differences(context, ranking["order"], groups, key, use, direction),
    }
    if max_points is None:
        return compared
    return {**compared, "curves": compare.compare(context.lab, ids, key, max_points, x)}


def best_runs(context: ToolContext, key: str | None = None, goal: str | None = None) -> Json:
    """Return the best of all finished runs, however many there are."""
    known = stored_metrics.own_keys(context.lab.db.reader(), _KEYS)
    if key is None:
        return {"metrics": known}
    found = _values(context, "best", key=key, goal=goal or goal_of(key))
    if not found["order"]:
        raise NotFound(f"No finished run has the metric {key!r}.", hint=f"There are: {listed(known) or 'none'}.")
    best = [runs.get(context.lab, run_id) for run_id in found["order"]]
    return {
        "key": key,
        "goal": goal or goal_of(key),
        **{name: found[name] for name in ("evidence",) if name in found},
        "runs_with_it": found["runs"],
        "best": [
            {"run_id": run.id, "name": run.name, "params": run.params, "last": found[f"place_{place}"]}
            for place, run in enumerate(best, 1)
        ],
    }


def _groups(context: ToolContext, found: Sequence[Run], key: str, use: str) -> list[Json]:
    """Return mean and deviation of runs that differ only in their seed; all runs together are not a group."""
    same = [[run.id for run in members] for members in same_but_for_seed(found) if len(members) > 1]
    return [
        {"run_ids": members, **_values(context, "group", run_ids=members, key=key, use=use)}
        for members in same
        if len(members) < len(found)
    ]


def _differences(
    context: ToolContext, order: Sequence[str], groups: list[Json], key: str, use: str, goal: str
) -> list[Json]:
    """Return the difference of each run to the best, and between groups."""
    pairs: list[tuple[list[str], list[str]]] = [([order[0]], [other]) for other in order[1:6]]
    pairs += [(one["run_ids"], other["run_ids"]) for i, one in enumerate(groups) for other in groups[i + 1 : i + 4]]
    facts = {"key": key, "use": use, "goal": goal}
    return [
        {"first": first, "second": second, **_values(context, "difference", first=first, second=second, **facts)}
        for first, second in pairs
    ]


def _values(context: ToolContext, kind: str, **source: Any) -> Json:
    seen, evidence = context.read(kind, **source)
    shown: Json = {**evidence, **seen.values}
    return {**shown, "order": list(seen.order)} if kind in ("ranking", "best") else shown


_RUN = text(RUN_REFERENCE)
_KEY = text("the metric's name", maxLength=1024)
_GOAL = one_of("which is better; by default guessed from the name", "min", "max")
_AXIS = one_of("default step; time: seconds since the run's start", "step", "time", "epoch")
TOOLS = (
    Tool(
        name="digest_logs",
        description="Get what matters in a run's output: how it ended, the first error with its traceback, last lines.",
        do=digest_logs,
        takes={"run_id": _RUN},
        needs=("run_id",),
    ),
    Tool(
        name="read_logs",
        description=(
            "Read a part of a run's output, by default its end; next_offset is where the next part starts. With grep: "
            "the newest lines that contain a text."
        ),
        do=read_logs,
        takes={
            "run_id": _RUN,
            "grep": text("plain text to search for; not a pattern", minLength=1, maxLength=1000),
            "ignore_case": yes_or_no("of grep"),
            "offset": whole("bytes from the start; negative counts from the end", -(2**53), 2**53),
            "limit": whole("how many bytes to return", 1, 10_000),
        },
        needs=("run_id",),
    ),
    Tool(
        name="get_metrics",
        description="Get a run's metrics: last, min, max and mean of each; outside of conversations also their curves.",
        do=get_metrics,
        takes={"run_id": _RUN, "keys": several("only these metrics")},
        outside_takes={"max_points": whole("points of each curve; extremes are kept", 2, 500), "x": _AXIS},
        needs=("run_id",),
    ),
    Tool(
        name="compare_metrics",
        description=(
            "Compare one metric over runs: each value, ranking, mean and deviation over seeds, differences. Take "
            "means, differences and rankings in an answer from here."
        ),
        do=compare_metrics,
        takes={
            "run_ids": several(f"two or more; each is {RUN_REFERENCE}"),
            "key": _KEY,
            "use": one_of("which value of each run counts; default last", "last", "min", "max", "mean"),
            "goal": _GOAL,
        },
        outside_takes={"max_points": whole("also return curves with this many points", 2, 200), "x": _AXIS},
        needs=("run_ids", "key"),
    ),
    Tool(
        name="best_runs",
        description="Get the best of all finished runs by the last value of a metric. Without a key: list the metrics.",
        do=best_runs,
        takes={"key": _KEY, "goal": _GOAL},
        operation="",
    ),
)
