"""What goes in without what was left out, and what a list tells of each thing; `show_…` tells the rest."""

from __future__ import annotations

from itertools import islice
from typing import Any

Json = dict[str, Any]
_RUN = ("id", "name", "status", "status_reason", "exit_code", "error", "sweep_id", "params", "seed", "tags", "warnings")
_TIMES = ("created_at", "started_at", "ended_at")
_SWEEP = (
    "id",
    "name",
    "goal",
    "method",
    "status",
    "status_reason",
    "metric",
    "best",
    "progress",
    "warnings",
    "created_at",
)
_HIDDEN = ("env", "caller_env", "pid", "tmux_target", "refused", "stop_requested")  # of a run: noise for a model
_METRICS_SHOWN = 12


def given(arguments: Json) -> Json:
    """What a model said of a tool's arguments: not the server, nor what it left out."""
    return {name: value for name, value in arguments.items() if name != "lab" and value is not None}


def run_briefly(run: Json) -> Json:
    """Without what is empty; the last value of each metric."""
    shown = {name: run[name] for name in (*_RUN, *_TIMES) if run.get(name) not in (None, "", [], {})}
    values = {key: facts["last"] for key, facts in islice(run["summary"].items(), _METRICS_SHOWN)}
    return {**shown, "metrics": values} if values else shown


def run_in_full(run: Json) -> Json:
    return {name: value for name, value in run.items() if name not in _HIDDEN and value not in (None, "", [], {})}


def sweep_briefly(sweep: Json) -> Json:
    return {name: sweep[name] for name in _SWEEP if sweep.get(name) not in (None, "", [], {})}
