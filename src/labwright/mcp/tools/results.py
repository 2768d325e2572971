"""What runs wrote and measured: logs, metrics, comparisons."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from labwright.client.lab import LabClient
from labwright.mcp.tools.briefly import Json
from labwright.mcp.tools.runs import RunRef, id_of

Axis = Annotated[Literal["step", "time", "epoch"], Field(description="time: seconds since the run's start")]


def log_digest(lab: LabClient, run_id: RunRef) -> Json:
    """What to read first of a run's output: how it ended, the first error with its traceback, the last lines."""
    return lab.log_digest(id_of(lab, run_id))


def log_tail(
    lab: LabClient,
    run_id: RunRef,
    offset: Annotated[int | None, Field(description="bytes from the start; left out, the end is read")] = None,
    length: Annotated[int, Field(ge=1, le=10_000, description="bytes")] = 4_000,
) -> Json:
    """Read a piece of a run's output, by default its end. `next_offset` is where the next piece begins."""
    return lab.logs(id_of(lab, run_id), offset=-length if offset is None else offset, limit=length)


def log_grep(lab: LabClient, run_id: RunRef, text: Annotated[str, Field(min_length=1, max_length=1000)]) -> Json:
    """The lines of a run's output that hold a text; plain text, no pattern."""
    return lab.grep_logs(id_of(lab, run_id), text)


def metrics(
    lab: LabClient,
    run_id: RunRef,
    keys: Annotated[list[str] | None, Field(description="names of metrics; left out, all of them")] = None,
    max_points: Annotated[int, Field(ge=2, le=500, description="of each; extremes are kept")] = 50,
    x: Axis = "step",
) -> Json:
    """The series that a run logged, thinned out."""
    return lab.metrics(id_of(lab, run_id), keys, max_points, x)


def compare(
    lab: LabClient,
    run_ids: Annotated[list[str], Field(min_length=1, max_length=50)],
    key: Annotated[str, Field(description="the metric's name")],
    max_points: Annotated[int, Field(ge=2, le=200)] = 20,
    x: Axis = "step",
) -> Json:
    """One metric over several runs, with mean and deviation over runs that differ only in their seed."""
    return lab.compare([id_of(lab, run_id) for run_id in run_ids], key, max_points, x)
