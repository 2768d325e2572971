"""Sweeps: many configurations, or a question that runs join one by one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json, given, sweep_briefly
from labwright.mcp.tools.runs import Gpuwrap

SweepId = Annotated[str, Field(description="the sweep's id")]
Metric = Annotated[Json | None, Field(description='what runs are compared by: {"key": "val_loss", "goal": "min"}')]


def list_sweeps(lab: LabClient, limit: Annotated[int, Field(ge=1, le=100)] = 20) -> list[Json]:
    """List sweeps, newest first, with how far they are and the best so far."""
    return [sweep_briefly(sweep) for sweep in lab.sweeps(limit)]


def show_sweep(lab: LabClient, sweep_id: SweepId) -> Json:
    """Show one sweep: parameters, budget, progress, the best configuration."""
    return lab.sweep(sweep_id)


def sweep_results(
    lab: LabClient,
    sweep_id: SweepId,
    key: Annotated[str | None, Field(description="another metric than the sweep's own")] = None,
    goal: Literal["min", "max"] | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> Json:
    """Configurations, best first, as mean and deviation over seeds; what mattered, and whether the best is luck."""
    return lab.sweep_results(sweep_id, key, goal, limit)


def create_wild_sweep(
    lab: LabClient,
    name: str,
    goal: Annotated[str, Field(description="the question that its runs answer")],
    metric: Metric = None,
    parallel: Annotated[int | None, Field(description="runs of it at a time")] = None,
) -> Json:
    """Make an empty sweep; runs join it by `sweep_id` of create_run."""
    wanted = given(locals())
    return sweep_briefly(lab.create_wild_sweep(wanted))


def create_sweep(
    lab: LabClient,
    name: str,
    base_command: Annotated[str, Field(description="{name} is filled in, other parameters are added as --name value")],
    parameters: Annotated[Json, Field(description='lists of values, or ranges {"min", "max", "log", "int"}')],
    method: Literal["grid", "random", "adaptive"] = "grid",
    metric: Metric = None,
    goal: str | None = None,
    max_runs: int | None = None,
    parallel: int | None = None,
    seeds: Annotated[int | list[int] | None, Field(description="how many, or which")] = None,
    budget: Annotated[Json | None, Field(description="gpu_hours, runs, wall_seconds")] = None,
    early_stop: Annotated[Json | None, Field(description='{"method": "median"} or {"method": "halving"}')] = None,
    workdir: str | None = None,
    gpus: int | None = None,
    gpuwrap_config: Gpuwrap = None,
    tags: list[str] | None = None,
    auto_start: bool = True,
    again: Annotated[bool, Field(description="also if another sweep has all of these runs already")] = False,
) -> Json:
    """Run one command with many configurations; each is a run of its own."""
    wanted = given(locals())
    return sweep_briefly(lab.create_sweep(wanted))


def change_sweep(
    lab: LabClient,
    sweep_id: SweepId,
    verb: Annotated[
        Literal["start", "stop", "pause", "resume", "retry-failed"],
        Field(description="stop ends all its runs; pause lets what runs go on; retry-failed makes new runs"),
    ],
) -> Json:
    """Start, stop, pause or resume a sweep, or run again what failed in it. Only the user holds or ends their own."""
    return sweep_briefly(lab.change_sweep(sweep_id, verb))
