"""Runs: list, show, create, start, repeat, stop and delete."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from labwright.agent.tools.tool import (
    LONGEST_COMMAND,
    RUN_REFERENCE,
    SWEEP_REFERENCE,
    Json,
    Tool,
    ToolContext,
    anything,
    fields,
    number,
    several,
    text,
    whole,
    yes_or_no,
)
from labwright.domain.run import GpuwrapConfig, Run, RunStatus
from labwright.services import ownership
from labwright.services.runs import failures
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from labwright.services.runs.queue import with_reason
from labwright.store import runs as stored

_BRIEF = (
    *("id", "name", "status", "status_reason", "exit_code", "error", "sweep_id", "command", "params", "seed", "tags"),
    *("warnings", "created_by", "created_at", "started_at", "ended_at"),
)
_HIDDEN = ("env", "caller_env", "pid", "tmux_target", "refused", "stop_requested", "summary")
_EMPTY: tuple[Any, ...] = (None, "", {}, [], ())
_SLURM_NAMES = ("partition", "account", "qos", "constraint", "gres")
_METRICS_SHOWN = 12
_KEYS_SHOWN = 50


def list_runs(
    context: ToolContext,
    status: list[str] | None = None,
    sweep_id: str | None = None,
    q: str | None = None,
    tag: str | None = None,
    limit: int = 20,
) -> Json:
    sweep = context.sweep_id(sweep_id) if sweep_id else None
    given = {"status": status, "sweep_id": sweep, "q": q, "tag": tag}
    filters = {name: value for name, value in given.items() if value}
    wanted = stored.Filter(**{**filters, "status": tuple(status or ())})  # type: ignore[arg-type]
    found, more = stored.page(context.lab.db.reader(), wanted, limit, None)
    shown = [brief(context, with_reason(context.lab, Run.from_dict(json.loads(record)))) for record in found]
    counts = {**context.cite("runs", filters={}), **stored.count_by_status(context.lab.db.reader())}
    matching = {"found": context.cite("runs", filters=filters)} if filters and context.session else {}
    return {"runs": shown, "more": more is not None, "counts": counts, **matching}


def brief(context: ToolContext, run: Run) -> Json:
    """Return the main facts. Last metric values only outside of conversations, where nothing must be cited."""
    shown = {name: getattr(run, name) for name in _BRIEF if getattr(run, name) not in _EMPTY}
    values = {key: facts["last"] for key, facts in islice(run.summary.items(), _METRICS_SHOWN)}
    return {**shown, "metrics": values} if values and context.session is None else shown


def get_run(context: ToolContext, run_id: str) -> Json:
    found = with_reason(context.lab, runs.find(context.lab, run_id))
    facts = {name: value for name, value in found.to_dict().items() if name not in _HIDDEN and value not in _EMPTY}
    if context.session is None:
        return {**facts, "summary": found.summary}
    keys = list(found.summary)[:_KEYS_SHOWN]
    return {**facts, **context.cite("run", run_id=found.id), "metrics": keys}


def create_run(
    context: ToolContext,
    command: str,
    sweep_id: str | None = None,
    after: list[str] | None = None,
    gpuwrap_config: Json | None = None,
    slurm: Json | None = None,
    tags: list[str] | None = None,
    despite: str | None = None,
    **settings: Any,
) -> Json:
    """Create a run. In a conversation, only after the model has seen that a similar run failed before."""
    if context.session is not None:
        before = failures.like(context.lab, command, settings.get("params", {}), ended_before=context.asked_at)
        if before and despite != before["run_id"]:
            return _failed_before(before)
    wanted = NewRun(
        command=command,
        sweep_id=context.sweep_id(sweep_id) if sweep_id else None,
        after=tuple(runs.find(context.lab, one).id for one in after or ()),
        gpuwrap_config=GpuwrapConfig(**gpuwrap_config) if gpuwrap_config else None,
        slurm={**dict.fromkeys(_SLURM_NAMES), "extra": [], **slurm} if slurm else None,
        tags=tuple(tags or ()),
        chat_session_id=context.session_id,
        **{"auto_start": True, **settings},
    )
    return brief(context, runs.create(context.lab, wanted, context.actor, context.once("start_run")))


def _failed_before(before: Json) -> Json:
    return {"started": False, "failed_before": before, "to_start_it_anyway": f"pass despite={before['run_id']}"}


def start_run(context: ToolContext, run_id: str) -> Json:
    found = runs.find(context.lab, run_id)
    return brief(context, runs.start(context.lab, found.id, context.actor))


def rerun_run(
    context: ToolContext,
    run_id: str,
    command: str | None = None,
    gpuwrap_config: Json | None = None,
    auto_start: bool = True,
    despite: str | None = None,
) -> Json:
    """Repeat a run. Another command gets the same check as a new run; the same command needs none."""
    old = runs.find(context.lab, run_id)
    changes: dict[str, Any] = {"auto_start": auto_start}
    if context.session is not None:
        other = command if command and command != old.command else ""
        before = failures.like(context.lab, other, {}, ended_before=context.asked_at) if other else None
        if before and despite != before["run_id"]:
            return _failed_before(before)
        changes["chat_session_id"] = context.session.id
    if command:
        changes["command"] = command
    if gpuwrap_config:
        changes["gpuwrap_config"] = GpuwrapConfig(**gpuwrap_config)
    made = runs.rerun(context.lab, old.id, context.actor, changes, context.once("rerun"))
    return {**brief(context, made), "rerun_of": old.id}


def stop_run(context: ToolContext, run_id: str) -> Json:
    found = runs.find(context.lab, run_id)
    if context.session is None:
        ownership.check_run(context.lab, found.id, context.actor)
    elif not found.is_terminal and not context.is_own(found.created_by, found.chat_session_id):
        facts = f"{found.name!r}, {found.status}, started by {found.created_by}"
        context.needs_approval(f"Stop {found.id} ({facts})?", run_id=found.id)
    reason = "requested in a conversation" if context.session else ""
    return brief(context, runs.stop(context.lab, found.id, context.actor, reason))


def delete_run(context: ToolContext, run_id: str) -> Json:
    found = runs.find(context.lab, run_id)
    question = f"Delete {found.id} ({found.name!r}, {found.status}) with all its files?"
    context.needs_approval(question, run_id=found.id)
    runs.delete(context.lab, found.id, context.actor)
    return {"deleted": True, "id": found.id}


_RUN = text(RUN_REFERENCE)
_DESPITE = {"despite": text("the id of the similar run that failed before, to create this one anyway")}
COMMAND = text("a bash command, run in a fresh shell: activate the environment in it", maxLength=LONGEST_COMMAND)
GPUS = whole("how many GPUs; on a GPU machine 1 by default, 0 hides them", 0, 1024)
WORKDIR = text("defaults to the project's root", maxLength=4096)
TAGS = several("labels to filter by", type="string", minLength=1, maxLength=100)
GPUWRAP = fields(
    "wait for a free GPU on a shared machine; by default the server decides",
    enabled=yes_or_no("default true"),
    retries=whole("further tries before the run fails; -1 is no limit", -1, 1_000_000),
    retry_delay_seconds=number("default 10", 0.001, 600),
)
_SLURM_FIELDS: dict[str, Json] = {name: text("", maxLength=200) for name in _SLURM_NAMES}
_SLURM = fields("options for Slurm", (), **_SLURM_FIELDS, extra=several("sbatch options", type="string", maxLength=200))
TOOLS = (
    Tool(
        name="list_runs",
        description="List runs, newest first: status, reason and parameters; and the number of runs of each status.",
        do=list_runs,
        takes={
            "status": several("only these", type="string", enum=[str(status) for status in RunStatus]),
            "sweep_id": text(f"only runs of this sweep: {SWEEP_REFERENCE}"),
            "q": text("only runs with this text in their name or command", maxLength=1000),
            "tag": text("only runs with this tag"),
            "limit": whole("how many to return", 1, 100),
        },
    ),
    Tool(
        name="get_run",
        description="Get one run in full: command, status and its reason, times, GPUs, metrics, warnings.",
        do=get_run,
        takes={"run_id": _RUN},
        needs=("run_id",),
    ),
    Tool(
        name="create_run",
        description=(
            "Create a run of one configuration, and queue it unless auto_start is false. This is the only way to train "
            "or evaluate: do it here and never in a shell, so that it is tracked. In a conversation, nothing is "
            "created if a similar run failed before; the result names that run. Create it anyway only with a reason."
        ),
        do=create_run,
        takes={
            "command": COMMAND,
            "name": text("a short name", maxLength=200),
            "workdir": WORKDIR,
            "sweep_id": text(f"the sweep that it joins: {SWEEP_REFERENCE}"),
            "params": anything("the configuration that runs are compared by, such as {'lr': 0.1}"),
            "seed": whole("", -(2**53), 2**53),
            "gpus": GPUS,
            "gpuwrap_config": GPUWRAP,
            "cpus": whole("", 1, 100_000),
            "memory_mb": whole("", 1, 2**53),
            "time_limit_seconds": number("", 0.001, 10**9),
            "env": anything("environment variables", additionalProperties={"type": "string"}),
            "tags": TAGS,
            "after": several(f"runs that must finish first; each is {RUN_REFERENCE}"),
            "priority": whole("higher starts first; default 0", -1_000_000, 1_000_000),
            "slurm": _SLURM,
            "notes": text("", maxLength=100_000),
            "auto_start": yes_or_no("queue it now; default true"),
        },
        chat_takes=_DESPITE,
        needs=("command",),
        writes=True,
    ),
    Tool(
        name="start_run",
        description="Queue a run that was created with auto_start false.",
        do=start_run,
        takes={"run_id": _RUN},
        needs=("run_id",),
        writes=True,
    ),
    Tool(
        name="rerun_run",
        description="Run the same again as a new run, optionally with another command.",
        do=rerun_run,
        takes={
            "run_id": _RUN,
            "command": text("in place of the old command", maxLength=LONGEST_COMMAND),
            "gpuwrap_config": GPUWRAP,
            "auto_start": yes_or_no("queue it now; default true"),
        },
        chat_takes=_DESPITE,
        needs=("run_id",),
        writes=True,
    ),
    Tool(
        name="stop_run",
        description=(
            "Stop a run and every process it started. A conversation asks a person before it stops a run that it did "
            "not start. Other assistants can stop only runs that an assistant started."
        ),
        do=stop_run,
        takes={"run_id": _RUN},
        needs=("run_id",),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="delete_run",
        description="Delete an ended run with its files. Always needs a person's approval.",
        do=delete_run,
        takes={"run_id": _RUN},
        needs=("run_id",),
        writes=True,
        destroys=True,
        chat_only=True,
    ),
)
