"""The shell: for reading, editing and small jobs. For a command that trains or evaluates it proposes a run."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from labwright.agent.policy import judge
from labwright.agent.shell import execute
from labwright.agent.tools.tool import LONGEST_COMMAND, Json, Tool, ToolContext, text, whole
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid
from labwright.domain.event import EventType
from labwright.domain.session import Mode
from labwright.store import events, plans

_NEXT = {
    True: "Create it as a run: create_run with these, or POST /runs. For many configurations use create_sweep.",
    False: "Nothing runs while you plan: put it into the plan as a run.",
}
_SAVES = (EventType.PLAN_CREATED, EventType.PLAN_UPDATED)
_MOST_SAVES = 1000


def shell(context: ToolContext, command: str, seconds: int | None = None, *, writes: bool) -> Json:
    if not command.strip():
        raise Invalid("The command is empty.")
    if found := judge(command, context.lab.paths.project):
        proposed = {**found.proposal.to_dict(), "workdir": str(context.lab.paths.project / found.proposal.folder)}
        return {"executed": False, "why": found.why, "proposed_run": proposed, "next": _NEXT[writes]}
    before = events.last_seq(context.lab.db.reader())
    told = execute(
        context.lab, context.actor, command, writes=writes, key=context.key, seconds=seconds, over=context.over
    )
    shown = {name: value for name, value in asdict(told).items() if value != ""}
    evidence = context.cite("text", what=command[:200], shown=told.output)
    return {"executed": True, **shown, **_plan_saved(context, before), **evidence}


def _plan_saved(context: ToolContext, before: int) -> Json:
    """Return the plan that the command saved through the server's API, if it did. It counts like one by create_plan."""
    reader, planner = context.lab.db.reader(), str(Actor(Scope.PLANNER, context.actor.name))
    told = [one for one in events.after(reader, before, _MOST_SAVES, types=_SAVES) if one.actor == planner]
    known = {plan.id: plan for plan in plans.every(reader)} if told else {}
    saved = [one.data["plan_id"] for one in told if one.data["plan_id"] in known and known[one.data["plan_id"]].valid]
    return {"plan_saved": saved[-1]} if saved else {}


def shell_tool(mode: Mode) -> Tool:
    """Return the shell of a mode. In plan mode the project is read-only, and the token can only save plans."""
    writes = mode is not Mode.PLAN
    files = "The project's files can be changed" if writes else "Nothing of the project can be changed"
    return Tool(
        name="shell",
        description=(
            f"Run a bash command in the project's folder: read, search, git, pytest, small scripts. {files}; the rest "
            "of the machine is read-only, /tmp is empty each time, and nothing outlives the command. No GPUs, no "
            "scheduler, little CPU time: training and evaluation are runs. Call the server with "
            'curl -sS -H @"$LABWRIGHT_HEADER" "$LABWRIGHT_URL/runs".'
        ),
        do=partial(shell, writes=writes),
        takes={
            "command": text("passed to bash -c", maxLength=LONGEST_COMMAND),
            "seconds": whole("the time limit", 1, 3600),
        },
        needs=("command",),
        writes=writes,
        chat_only=True,
        operation="",
    )
