"""The shell: for looking, editing and small chores. What would be a run is answered with the run to start instead."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from labwright.agent.policy import judge
from labwright.agent.shell import execute
from labwright.agent.tools.tool import LONGEST_COMMAND, Deed, Json, Tool, text, whole
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Invalid
from labwright.domain.event import EventType
from labwright.domain.session import Mode
from labwright.store import events, plans

_NEXT = {
    True: "Start it as a run: start_run with these, or POST /runs. One configuration is one run; many are start_sweep.",
    False: "Nothing is run while planning: put it into the plan as a run.",
}
_SAVES = (EventType.PLAN_CREATED, EventType.PLAN_UPDATED)
_MOST_SAVES = 1000


def shell(deed: Deed, command: str, seconds: int | None = None, *, writes: bool) -> Json:
    if not command.strip():
        raise Invalid("The command is empty.")
    if found := judge(command, deed.lab.paths.project):
        proposed = {**found.proposal.to_dict(), "workdir": str(deed.lab.paths.project / found.proposal.folder)}
        return {"executed": False, "why": found.why, "proposed_run": proposed, "next": _NEXT[writes]}
    before = events.last_seq(deed.lab.db.reader())
    told = execute(deed.lab, deed.actor, command, writes=writes, key=deed.key, seconds=seconds, over=deed.over)
    shown = {name: value for name, value in asdict(told).items() if value != ""}
    evidence = deed.cite("text", what=command[:200], shown=told.output)
    return {"executed": True, **shown, **_plan_saved(deed, before), "evidence": evidence}


def _plan_saved(deed: Deed, before: int) -> Json:
    """By a call of the server in the command, as the skill shows it: it counts like one of the tool's."""
    reader, planner = deed.lab.db.reader(), str(Actor(Scope.PLANNER, deed.actor.name))
    told = [one for one in events.after(reader, before, _MOST_SAVES, types=_SAVES) if one.actor == planner]
    known = {plan.id: plan for plan in plans.every(reader)} if told else {}
    saved = [one.data["plan_id"] for one in told if one.data["plan_id"] in known and known[one.data["plan_id"]].valid]
    return {"plan_saved": saved[-1]} if saved else {}


def shell_tool(mode: Mode) -> Tool:
    """Read-only while planning: the project cannot be changed, and its token saves plans and starts nothing."""
    writes = mode is not Mode.PLAN
    files = "The project's files can be changed" if writes else "Nothing of the project can be changed"
    return Tool(
        name="shell",
        description=(
            f"Run a bash command in the project's folder: look, search, git, pytest, small scripts. {files}; the rest "
            "of the machine is read-only, /tmp is empty each time, and nothing outlives the command. No GPUs, no "
            "scheduler, little processor time: training and evaluation are runs. The server answers to "
            'curl -sS -H @"$LABWRIGHT_HEADER" "$LABWRIGHT_URL/runs".'
        ),
        do=partial(shell, writes=writes),
        takes={
            "command": text("for bash -c", maxLength=LONGEST_COMMAND),
            "seconds": whole("end it after so many", 1, 3600),
        },
        needs=("command",),
        writes=writes,
    )
