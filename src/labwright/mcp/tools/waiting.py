"""Waiting for an end without asking again and again; never longer than was said."""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, Field

from labwright.client.follow import TimedOut, wait_for_ends
from labwright.client.follow import wait_for_plan as follow_plan
from labwright.client.follow import wait_for_sweep as follow_sweep
from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json, run_briefly, sweep_briefly
from labwright.mcp.tools.plans import PlanId, plan_briefly
from labwright.mcp.tools.runs import id_of
from labwright.mcp.tools.sweeps import SweepId

LONGEST_WAIT = 600.0
Seconds = Annotated[float, Field(gt=0, le=LONGEST_WAIT, description="at most; call again to go on waiting")]
_AGAIN = "The time is over and not all have ended. Call again to go on waiting, or do something else meanwhile."


def wait_for_run(
    lab: LabClient,
    run_ids: Annotated[
        list[str],
        Field(
            validation_alias=AliasChoices("run_ids", "runs"),
            min_length=1,
            max_length=100,
            description="ids, names, or `last`",
        ),
    ],
    max_seconds: Seconds = 45.0,
) -> Json:
    """Wait until all these runs have ended, but no longer than max_seconds. Costs nothing while it waits."""
    left = dict.fromkeys(id_of(lab, run_id) for run_id in run_ids)
    ended: list[Json] = []
    try:
        for run in wait_for_ends(lab, left, _in_silence, max_seconds):
            ended.append(run_briefly(run))
            del left[run["id"]]
    except TimedOut:
        going = [run_briefly(lab.run(run_id)) for run_id in left]
        return {"timed_out": True, "ended": ended, "not_ended": going, "hint": _AGAIN}
    return {"timed_out": False, "ended": ended, "not_ended": []}


def wait_for_sweep(lab: LabClient, sweep_id: SweepId, max_seconds: Seconds = 45.0) -> Json:
    """Wait until a sweep has ended or is paused, at most max_seconds. A wild sweep ends only when it is stopped."""
    lab.sweep(sweep_id)
    try:
        return {"timed_out": False, "sweep": sweep_briefly(follow_sweep(lab, sweep_id, _in_silence, max_seconds))}
    except TimedOut:
        return {"timed_out": True, "sweep": sweep_briefly(lab.sweep(sweep_id)), "hint": _AGAIN}


def wait_for_plan(lab: LabClient, plan_id: PlanId, max_seconds: Seconds = 45.0) -> Json:
    """Wait until a plan is compiled, checked or executed, at most max_seconds; then `planning` says what came of it."""
    own = plan_id.removeprefix("@")
    lab.plan(own)
    try:
        return {"timed_out": False, "plan": plan_briefly(follow_plan(lab, own, _in_silence, max_seconds))}
    except TimedOut:
        return {"timed_out": True, "plan": plan_briefly(lab.plan(own)), "hint": _AGAIN}


def _in_silence(_notice: str) -> None:
    """There is nobody to tell that the server went away for a moment."""
