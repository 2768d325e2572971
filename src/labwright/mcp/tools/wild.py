"""Wild loops: begin one from a goal, look at it, steer it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json, given
from labwright.mcp.tools.sweeps import Metric

WildId = Annotated[str, Field(description="the loop's id")]
_BRIEFLY = ("id", "goal", "status", "status_reason", "sweep_id", "criterion", "budget", "used", "best", "created_at")


def list_wild(lab: LabClient) -> list[Json]:
    """List wild loops, newest first."""
    return [_briefly(wild) for wild in lab.wilds()]


def show_wild(lab: LabClient, wild_id: WildId) -> Json:
    """Show one loop: each iteration with its result and decision, what is left of the budget, its report at the end."""
    return lab.wild(wild_id)


def start_wild(
    lab: LabClient,
    goal: Annotated[str, Field(description="what to reach, by which metric, and what to vary")],
    budget: Annotated[Json | None, Field(description="gpu_hours, runs, wall_seconds; 40 runs unless told")] = None,
    script: Annotated[str | None, Field(description="where the goal names none")] = None,
    metric: Metric = None,
    parameters: Annotated[Json | None, Field(description="what is searched, as in create_sweep")] = None,
    protect: Annotated[list[str] | None, Field(description="evaluation files that must not change")] = None,
    seeds: Annotated[int | list[int] | None, Field(description="of what counts: how many, or which")] = None,
    gpus: Annotated[int | None, Field(description="of each run")] = None,
    parallel: Annotated[int | None, Field(description="its runs at a time")] = None,
) -> Json:
    """Let the server search by itself: baseline, then one idea after another, until the goal or the budget is met."""
    wanted = given(locals())
    return _briefly(lab.start_wild(wanted))


def change_wild(
    lab: LabClient,
    wild_id: WildId,
    verb: Annotated[
        Literal["pause", "resume", "stop", "steer"],
        Field(description="stop ends all its runs; pause lets what runs go on"),
    ],
    text: Annotated[str | None, Field(description="with steer: what the next proposal is to take into account")] = None,
) -> Json:
    """Pause, resume, stop or steer a loop. The user's own loops and more budget are theirs to change and to give."""
    return _briefly(lab.change_wild(wild_id, verb, {"text": text or ""} if verb == "steer" else None))


def _briefly(wild: Json) -> Json:
    return {name: wild[name] for name in _BRIEFLY}
