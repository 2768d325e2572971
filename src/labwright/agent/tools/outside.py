"""Calls of tools outside of conversations: by other assistants, over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import anyio
import anyio.to_thread

from labwright.agent.conversation.waits import outcome
from labwright.agent.tools import OUTSIDE_TOOLS, runs
from labwright.agent.tools.arguments import checked
from labwright.agent.tools.tool import Json, NeedsApproval, Tool, ToolContext, Waits
from labwright.agent.tools.waits import DEFAULT_WAIT
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.errors import Forbidden, NotFound
from labwright.domain.event import Event, EventType
from labwright.domain.plan import PlanStatus
from labwright.domain.session import Wait
from labwright.services.runs.verbs import get as get_run
from labwright.services.sweeps import results as sweep_views
from labwright.store import plans

_CLOSING_SECONDS = 1.0  # between checks whether the server closes
_NEWS = (
    *(EventType.RUN_STATUS, EventType.RUN_DELETED, EventType.SWEEP_STATUS),
    *(EventType.PLAN_UPDATED, EventType.PLAN_STATUS, EventType.PLAN_DELETED),
)
_CALL_AGAIN = "The time is over. Call again to continue waiting, or do something else meanwhile."


def described(scope: Scope) -> list[Json]:
    """Return the tools that a token of this scope may call, as other programs need to know them."""
    reads_only = scope not in (Scope.PERSON, Scope.AGENT)
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema(outside=True),
            "read_only": not tool.writes,
            "destructive": tool.destroys,
            "waits": tool.waits,
        }
        for tool in OUTSIDE_TOOLS.values()
        if not (reads_only and tool.writes)
    ]


async def call(
    lab: Lab, name: str, arguments: Json, actor: Actor, *, proposer: str, key: str, closing: Callable[[], bool]
) -> Json:
    """Call a tool and return its result. A wait holds no thread, and ends early if the server closes."""
    tool = OUTSIDE_TOOLS.get(name)
    if tool is None:
        raise NotFound(f"There is no tool {name!r}.", hint="List the tools with GET /tools.")
    given = checked(arguments, tool.schema(outside=True))
    seconds = float(given.pop("max_seconds", DEFAULT_WAIT)) if tool.waits else 0.0
    own_key = f"tools {actor} {key}" if key else ""  # apart from the keys of conversations
    body = json.dumps(given, sort_keys=True).encode()
    context = ToolContext(lab=lab, actor=actor, proposer=proposer, asked_at=now(), key=own_key, body=body)
    try:
        found = await anyio.to_thread.run_sync(lambda: _do(tool, context, given))
    except Waits as waits:
        assert waits.wait is not None
        return await _wait(context, waits.wait, seconds, closing)
    return await _wait_for_plan(context, tool, given, found["id"], seconds, closing) if tool.waits else found


def _do(tool: Tool, context: ToolContext, arguments: Json) -> Json:
    try:
        return tool.do(context, **arguments)
    except NeedsApproval as asked:
        raise Forbidden(f"A person must approve this: {asked}", hint="Ask the user to do it.") from asked


async def _wait(context: ToolContext, wait: Wait, seconds: float, closing: Callable[[], bool]) -> Json:
    def has_ended() -> bool:
        return bool(outcome(context.lab, wait))

    over = not await _until(context.lab, has_ended, seconds, closing)
    again = {"hint": _CALL_AGAIN} if over else {}
    if wait.sweep_id is not None:
        return {"timed_out": over, "sweep": sweep_views.get(context.lab, wait.sweep_id), **again}
    found = [get_run(context.lab, run_id) for run_id in wait.run_ids]
    ended = [runs.brief(context, run) for run in found if run.is_terminal]
    going = [runs.brief(context, run) for run in found if not run.is_terminal]
    return {"timed_out": over, "ended": ended, "not_ended": going, **again}


async def _wait_for_plan(
    context: ToolContext, tool: Tool, given: Json, plan_id: str, seconds: float, closing: Callable[[], bool]
) -> Json:
    def is_free() -> bool:
        plan = plans.get(context.lab.db.reader(), plan_id)
        return not plan.compiling_by and plan.status is not PlanStatus.EXECUTING

    over = not await _until(context.lab, is_free, seconds, closing)
    found = await anyio.to_thread.run_sync(lambda: _do(tool, context, given))
    return {"timed_out": over, "plan": found, **({"hint": _CALL_AGAIN} if over else {})}


async def _until(lab: Lab, condition: Callable[[], bool], seconds: float, closing: Callable[[], bool]) -> bool:
    """Wait until the condition holds, and return False if the time is over first. It is checked after each event."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    deadline = time.monotonic() + seconds

    def hear(committed: list[Event]) -> None:
        if any(event.type in _NEWS for event in committed):
            loop.call_soon_threadsafe(news.set)

    listening = lab.db.listening(hear)
    await anyio.to_thread.run_sync(listening.__enter__)  # in a thread: it waits for the database's lock
    news.set()
    try:
        while not closing():
            if news.is_set():
                news.clear()
                if await anyio.to_thread.run_sync(condition):
                    return True
            if (left := deadline - time.monotonic()) <= 0:
                return False
            with anyio.move_on_after(min(left, _CLOSING_SECONDS)):
                await news.wait()
        return False
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(listening.__exit__, None, None, None)
