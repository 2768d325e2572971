"""Runs: what there is, and starting, repeating, stopping and deleting one."""

from __future__ import annotations

import json
from typing import Any

from labwright.agent.tools.tool import LONGEST_COMMAND, Deed, Json, Tool, anything, several, text, whole
from labwright.domain.run import Run, RunStatus
from labwright.services.runs import failures
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from labwright.services.runs.queue import with_reason
from labwright.store import runs as stored

_SHOWN = ("id", "name", "status", "status_reason", "sweep_id", "command", "params", "seed", "created_by", "ended_at")
_IN_FULL = (
    *_SHOWN,
    *("workdir", "parent_run_id", "created_at", "started_at", "exit_code", "signal", "error", "attempt"),
    *("gpus", "gpu_uuids", "launcher", "node", "usage", "warnings", "tags", "notes"),
)


def list_runs(
    deed: Deed, status: list[str] | None = None, sweep: str | None = None, q: str | None = None, limit: int = 20
) -> Json:
    filters = {name: value for name, value in (("status", status), ("sweep_id", sweep), ("q", q)) if value}
    wanted = stored.Filter(**{**filters, "status": tuple(status or ())})  # type: ignore[arg-type]
    found, more = stored.page(deed.lab.db.reader(), wanted, limit, None)
    shown = [_brief(with_reason(deed.lab, Run.from_dict(json.loads(record)))) for record in found]
    return {
        "runs": shown,
        "more": more is not None,
        "counts": {"evidence": deed.cite("runs", filters={}), **stored.count_by_status(deed.lab.db.reader())},
        "found": {"evidence": deed.cite("runs", filters=filters)} if filters else None,
    }


def _brief(run: Run) -> Json:
    return {name: getattr(run, name) for name in _SHOWN if getattr(run, name) not in (None, "", {})}


def show_run(deed: Deed, run: str) -> Json:
    found = with_reason(deed.lab, runs.find(deed.lab, run))
    facts = {name: getattr(found, name) for name in _IN_FULL if getattr(found, name) not in (None, "", {}, ())}
    keys = list(found.summary)[:50]
    return {**facts, "evidence": deed.cite("run", run_id=found.id), "metrics": keys}


def start_run(
    deed: Deed,
    command: str,
    name: str | None = None,
    sweep: str | None = None,
    params: Json | None = None,
    seed: int | None = None,
    gpus: int | None = None,
    workdir: str | None = None,
    after: list[str] | None = None,
    time_limit_seconds: int | None = None,
    despite: str | None = None,
) -> Json:
    """Not before an earlier failure of the same kind was pointed out, and named as known."""
    before = failures.like(deed.lab, command, params or {}, ended_before=deed.asked_at)
    if before and despite != before["run_id"]:
        return {"started": False, "failed_before": before, "to_start_anyway": f"pass despite={before['run_id']}"}
    wanted = NewRun(
        command=command,
        name=name,
        sweep_id=sweep,
        params=params or {},
        seed=seed,
        gpus=gpus,
        workdir=workdir,
        after=tuple(after or ()),
        time_limit_seconds=time_limit_seconds,
        chat_session_id=deed.session.id,
        auto_start=True,
    )
    made = runs.create(deed.lab, wanted, deed.actor, deed.once("start_run"))
    return {"started": True, **_brief(made), "warnings": list(made.warnings)}


def rerun(deed: Deed, run: str, command: str | None = None, despite: str | None = None) -> Json:
    """The same again needs no reminder of how it ended; another command may."""
    changes: dict[str, Any] = {"chat_session_id": deed.session.id, **({"command": command} if command else {})}
    old = runs.find(deed.lab, run)
    other = command if command and command != old.command else ""
    before = failures.like(deed.lab, other, {}, ended_before=deed.asked_at) if other else None
    if before and despite != before["run_id"]:
        return {"started": False, "failed_before": before, "to_start_anyway": f"pass despite={before['run_id']}"}
    made = runs.rerun(deed.lab, old.id, deed.actor, changes, deed.once("rerun"))
    return {"started": True, **_brief(made), "rerun_of": old.id}


def stop_run(deed: Deed, run: str) -> Json:
    found = runs.find(deed.lab, run)
    if found.is_terminal:
        return {"stopped": False, "id": found.id, "status": found.status, "why": "it has ended already"}
    if not deed.is_own(found.created_by, found.chat_session_id):
        facts = f"{found.name!r}, {found.status}, started by {found.created_by}"
        deed.needs_approval(f"Stop {found.id} ({facts})?", run=found.id)
    stopped = runs.stop(deed.lab, found.id, deed.actor, "asked for in a conversation")
    return {"stopped": True, "id": stopped.id, "status": stopped.status}


def delete_run(deed: Deed, run: str) -> Json:
    found = runs.find(deed.lab, run)
    deed.needs_approval(f"Delete {found.id} ({found.name!r}, {found.status}) with all its files?", run=found.id)
    runs.delete(deed.lab, found.id, deed.actor)
    return {"deleted": True, "id": found.id}


_DESPITE = text("the id of the earlier failed run, to start it all the same")
_RUN = text("the run's id, its beginning, its name, or `last`")
TOOLS = (
    Tool(
        name="list_runs",
        description="Runs, newest first, and how many there are of each status.",
        do=list_runs,
        takes={
            "status": several("only these", type="string", enum=list(RunStatus)),
            "sweep": text("only those of this sweep"),
            "q": text("only those with this in their name or command"),
            "limit": whole("how many to show", 1, 100),
        },
    ),
    Tool(
        name="show_run",
        description="One run in full, with its metrics' names.",
        do=show_run,
        takes={"run": _RUN},
        needs=("run",),
    ),
    Tool(
        name="start_run",
        description=(
            "Start one configuration as a tracked run: the only way to train or evaluate. The command runs in a fresh "
            "shell, so activate the environment in it. If a similar configuration failed before, nothing is started "
            "and the earlier run is told; start it anyway only with a reason."
        ),
        do=start_run,
        takes={
            "command": text("what a shell would run", maxLength=LONGEST_COMMAND),
            "name": text("a short name", maxLength=200),
            "sweep": text("the id of the sweep it joins"),
            "params": anything("the configuration, by name"),
            "seed": whole("", 0, 2**53),
            "gpus": whole("how many cards", 0, 1024),
            "workdir": text("defaults to the project's root"),
            "after": several("ids of runs that must finish first"),
            "time_limit_seconds": whole("", 1, 10**9),
            "despite": _DESPITE,
        },
        needs=("command",),
        writes=True,
    ),
    Tool(
        name="rerun",
        description="Run the same again as a new run, perhaps with another command.",
        do=rerun,
        takes={"run": _RUN, "command": text("instead of the old one", maxLength=LONGEST_COMMAND), "despite": _DESPITE},
        needs=("run",),
        writes=True,
    ),
    Tool(
        name="stop_run",
        description="Stop a run. One that this conversation did not start needs a person's approval.",
        do=stop_run,
        takes={"run": _RUN},
        needs=("run",),
        writes=True,
    ),
    Tool(
        name="delete_run",
        description="Delete an ended run with its files. Always needs a person's approval.",
        do=delete_run,
        takes={"run": _RUN},
        needs=("run",),
        writes=True,
    ),
)
