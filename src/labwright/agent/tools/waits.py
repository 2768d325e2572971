"""Wait for runs, a sweep or a plan. A conversation ends its turn and is woken; outside, a wait has a time limit."""

from __future__ import annotations

from labwright.agent.tools.plans import wait_for_plan
from labwright.agent.tools.tool import (
    PLAN_REFERENCE,
    RUN_REFERENCE,
    SWEEP_REFERENCE,
    Json,
    Tool,
    ToolContext,
    Waits,
    number,
    several,
    text,
    yes_or_no,
)
from labwright.domain.session import Wait
from labwright.services.runs import verbs as runs
from labwright.store import sweeps

LONGEST_WAIT = 600
DEFAULT_WAIT = 45.0


def wait_for_run(context: ToolContext, run_ids: list[str], any_of_them: bool = False, note: str = "") -> Json:
    found = tuple(dict.fromkeys(runs.find(context.lab, run).id for run in run_ids))
    return _wait(Wait(run_ids=found, sweep_id=None, any_of_them=any_of_them, note=note[:1000]))


def wait_for_sweep(context: ToolContext, sweep_id: str, note: str = "") -> Json:
    found = sweeps.get(context.lab.db.reader(), context.sweep_id(sweep_id)).id
    return _wait(Wait(run_ids=(), sweep_id=found, any_of_them=False, note=note[:1000]))


def _wait(wait: Wait) -> Json:
    raise Waits(wait, {"waiting": True, **wait.to_dict()})


_ONLY_ONCE = "Use it instead of reading the status again and again; it costs nothing while it waits."
_NOTE = {"note": text("what to do then")}
_SECONDS = {"max_seconds": number("the longest wait, default 45; call again to continue", 0.001, LONGEST_WAIT)}
TOOLS = (
    Tool(
        name="wait_for_run",
        description=f"Wait until runs have ended. {_ONLY_ONCE}",
        do=wait_for_run,
        takes={
            "run_ids": {**several(f"each is {RUN_REFERENCE}"), "minItems": 1, "maxItems": 100},
            "any_of_them": yes_or_no("wait only for the first of them"),
        },
        chat_takes=_NOTE,
        outside_takes=_SECONDS,
        needs=("run_ids",),
        waits=True,
        operation="",
    ),
    Tool(
        name="wait_for_sweep",
        description=f"Wait until a sweep has ended or is paused; a wild sweep until all its runs have. {_ONLY_ONCE}",
        do=wait_for_sweep,
        takes={"sweep_id": text(SWEEP_REFERENCE)},
        chat_takes=_NOTE,
        outside_takes=_SECONDS,
        needs=("sweep_id",),
        waits=True,
        operation="",
    ),
    Tool(
        name="wait_for_plan",
        description="Wait until a plan is compiled, checked or executed; the result says what became of it.",
        do=wait_for_plan,
        takes={"plan_id": text(PLAN_REFERENCE)},
        outside_takes=_SECONDS,
        needs=("plan_id",),
        waits=True,
        operation="",
    ),
)
