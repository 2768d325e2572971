"""Runs: create, list, show, start, stop, rerun."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasChoices, Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json, given, run_briefly, run_in_full

# As the API calls it; `run` is understood as well.
RunRef = Annotated[
    str,
    Field(
        validation_alias=AliasChoices("run_id", "run"),
        description="the run's id, the beginning of it, its name, or `last`",
    ),
]
Gpuwrap = Annotated[
    Json | None,
    Field(description='{"enabled": true, "retries": 5, "retry_delay_seconds": 10}; left out, the server decides'),
]


def list_runs(
    lab: LabClient,
    status: Annotated[
        str | None,
        Field(
            description="comma-separated: ready, queued, launching, waiting, running, finished, failed, stopped, lost"
        ),
    ] = None,
    sweep_id: Annotated[str | None, Field(description="only the runs of this sweep")] = None,
    q: Annotated[str | None, Field(description="text in the name or the command")] = None,
    tag: str | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> list[Json]:
    """List runs, newest first: status, reason, parameters, last values of metrics."""
    found = lab.runs(limit, status=status, sweep_id=sweep_id, q=q, tag=tag)
    return [run_briefly(run) for run in found]


def show_run(lab: LabClient, run_id: RunRef) -> Json:
    """Show one run in full: command, status and its reason, times, GPUs, metrics (last, min, max, mean), warnings."""
    return run_in_full(lab.run(run_id))


def create_run(
    lab: LabClient,
    command: Annotated[str, Field(description="a bash command in a fresh shell: activate the environment in it")],
    name: str | None = None,
    workdir: Annotated[str | None, Field(description="defaults to the project's root")] = None,
    sweep_id: Annotated[str | None, Field(description="the sweep that it belongs to")] = None,
    params: Annotated[Json | None, Field(description="what the run is compared by, such as {'lr': 0.1}")] = None,
    seed: int | None = None,
    gpus: Annotated[int | None, Field(description="on a GPU machine 1 by default; 0 hides the cards")] = None,
    gpuwrap_config: Gpuwrap = None,
    cpus: int | None = None,
    memory_mb: int | None = None,
    time_limit_seconds: float | None = None,
    env: dict[str, str] | None = None,
    tags: list[str] | None = None,
    after: Annotated[list[str] | None, Field(description="ids of runs that must finish first")] = None,
    priority: int | None = None,
    slurm: Annotated[Json | None, Field(description="partition, account, qos, constraint, gres, extra[]")] = None,
    notes: str | None = None,
    auto_start: Annotated[bool, Field(description="queue it at once")] = True,
) -> Json:
    """Run an experiment. This, and never your own shell, is the way to train or evaluate: what it does is tracked."""
    wanted = given(locals())
    return run_briefly(lab.create_run(wanted))


def start_run(lab: LabClient, run_id: RunRef) -> Json:
    """Queue a run that was created without auto_start."""
    return run_briefly(lab.start_run(id_of(lab, run_id)))


def stop_run(lab: LabClient, run_id: RunRef) -> Json:
    """Stop a run that an assistant began, and everything it started. Others are the user's to stop."""
    return run_briefly(lab.stop_run(id_of(lab, run_id)))


def rerun_run(
    lab: LabClient,
    run_id: RunRef,
    command: Annotated[str | None, Field(description="another command instead of the same one")] = None,
    gpuwrap_config: Gpuwrap = None,
    auto_start: bool = True,
) -> Json:
    """Run the same again, as a new run."""
    changes: dict[str, Any] = {"auto_start": auto_start}
    changes |= {"command": command} if command is not None else {}
    changes |= {"gpuwrap_config": gpuwrap_config} if gpuwrap_config is not None else {}
    return run_briefly(lab.rerun(id_of(lab, run_id), changes))


def id_of(lab: LabClient, reference: str) -> str:
    return str(lab.run(reference)["id"])
