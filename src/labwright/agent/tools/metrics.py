"""Numbers of runs, and everything that is computed from several of them: a model's head is no place for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labwright.agent.evidence.sources import goal_of
from labwright.agent.tools.tool import Deed, Json, Tool, one_of, several, text
from labwright.domain.errors import Invalid, NotFound
from labwright.domain.metrics.points import listed
from labwright.domain.run import Run
from labwright.domain.search.configurations import same_but_for_seed
from labwright.services.runs import verbs as runs
from labwright.store import metrics

_KEYS = 30
_MOST = 50


def show_metrics(deed: Deed, run: str, keys: list[str] | None = None) -> Json:
    found = runs.find(deed.lab, run)
    there = sorted({series.key for series in metrics.series_of(deed.lab.db.reader(), found.id)})
    wanted = [key for key in there if keys is None or key in keys][:_KEYS]
    shown = {key: _with_evidence(deed, "metric", run_id=found.id, key=key) for key in wanted}
    return {"run_id": found.id, "status": found.status, "keys": there[:200], "metrics": shown}


def compare(deed: Deed, runs_or_names: list[str], key: str, use: str = "last", goal: str | None = None) -> Json:
    """Each value, the ranking, the mean over seeds, and the difference of each to the best."""
    found = list({run.id: run for run in (runs.find(deed.lab, name) for name in runs_or_names)}.values())
    if not 1 < len(found) <= _MOST:
        raise Invalid(f"Name between 2 and {_MOST} different runs.")
    direction = goal or goal_of(key)
    each = [
        {"run_id": run.id, "name": run.name, **_with_evidence(deed, "metric", run_id=run.id, key=key)} for run in found
    ]
    ids = [run.id for run in found]
    ranking = _with_evidence(deed, "ranking", run_ids=ids, key=key, use=use, goal=direction)
    groups = _groups(deed, found, key, use)
    return {
        "key": key,
        "use": use,
        "goal": direction,
        "runs": each,
        "ranking": ranking,
        "mean_over_all": _with_evidence(deed, "group", run_ids=ids, key=key, use=use),
        "groups": groups,
        "differences": _differences(deed, ranking["order"], groups, key, use, direction),
    }


def best_runs(deed: Deed, key: str | None = None, goal: str | None = None) -> Json:
    """Of all that finished, however many there are."""
    known = metrics.own_keys(deed.lab.db.reader(), _KEYS)
    if key is None:
        return {"metrics": known}
    found = _with_evidence(deed, "best", key=key, goal=goal or goal_of(key))
    if not found["order"]:
        raise NotFound(f"No finished run has the metric {key!r}.", hint=f"There are: {listed(known) or 'none'}.")
    best = [runs.get(deed.lab, run_id) for run_id in found["order"]]
    return {
        "key": key,
        "goal": goal or goal_of(key),
        "evidence": found["evidence"],
        "runs_with_it": found["runs"],
        "best": [
            {"run_id": run.id, "name": run.name, "params": run.params, "last": found[f"place_{place}"]}
            for place, run in enumerate(best, 1)
        ],
    }


def _groups(deed: Deed, found: Sequence[Run], key: str, use: str) -> list[Json]:
    """Runs that differ in their seed alone."""
    same = [[run.id for run in members] for members in same_but_for_seed(found) if len(members) > 1]
    return [
        {"run_ids": members, **_with_evidence(deed, "group", run_ids=members, key=key, use=use)}
        for members in same
        if len(members) < len(found)
    ]


def _differences(deed: Deed, order: Sequence[str], groups: list[Json], key: str, use: str, goal: str) -> list[Json]:
    """Every other against the best; and the groups against each other."""
    pairs: list[tuple[list[str], list[str]]] = [([order[0]], [other]) for other in order[1:6]]
    pairs += [(one["run_ids"], other["run_ids"]) for i, one in enumerate(groups) for other in groups[i + 1 : i + 4]]
    facts = {"key": key, "use": use, "goal": goal}
    return [
        {"first": first, "second": second, **_with_evidence(deed, "difference", first=first, second=second, **facts)}
        for first, second in pairs
    ]


def _with_evidence(deed: Deed, kind: str, **source: Any) -> Json:
    name = deed.cite(kind, **source)
    seen = next(one.seen for one in (*deed.minted, *deed.known.values()) if one.id == name)
    shown: Json = {"evidence": name, **seen.values}
    return {**shown, "order": list(seen.order)} if kind in ("ranking", "best") else shown


_GOAL = one_of("what is better; by default guessed from the name", "min", "max")
_USE = one_of("which value of each run counts", "last", "min", "max", "mean")
TOOLS = (
    Tool(
        name="show_metrics",
        description="A run's metrics: last, min, max and mean of each, with evidence to cite.",
        do=show_metrics,
        takes={"run": text("the run's id, its beginning, its name, or `last`"), "keys": several("only these")},
        needs=("run",),
    ),
    Tool(
        name="compare",
        description=(
            "Compare one metric over runs: each value, ranking, mean and deviation over seeds, differences. Means, "
            "differences and rankings in an answer must come from here, with the evidence."
        ),
        do=compare,
        takes={
            "runs_or_names": several("two or more"),
            "key": text("the metric"),
            "use": _USE,
            "goal": _GOAL,
        },
        needs=("runs_or_names", "key"),
    ),
    Tool(
        name="best_runs",
        description=(
            "The best of all finished runs by the last value of a metric, with evidence for their order. Without a "
            "key: which metrics there are."
        ),
        do=best_runs,
        takes={"key": text("the metric"), "goal": _GOAL},
    ),
)
