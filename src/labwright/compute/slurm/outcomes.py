"""What came of an order to Slurm; kept until the engine takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labwright.compute.slurm.states import JobRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    job_ids: dict[str, str]  # by run


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubmitted:
    """`for_good`: Slurm said no. `in_doubt`: nobody said anything, and the job may be there after all."""

    run_ids: tuple[str, ...]
    words: str
    for_good: bool = False
    in_doubt: bool = False
    is_silent: bool = False  # Slurm takes nothing from anybody now


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Slurm was told to forget a job that had not begun, or was never told of it."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDelayed:
    """Somebody wants a run stopped that is just being handed over: what becomes of that has to be waited for."""

    run_id: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """An order about these runs failed in a way that nobody foresaw; it is tried again."""

    run_ids: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What the accounting says of jobs that squeue has forgotten; None where it knows nothing, or there is none."""

    rows: Mapping[str, JobRow | None]  # by run
    controller_start: float | None = None  # asked where the accounting knows nothing of some


Outcome = Submitted | NotSubmitted | Cancelled | StopDelayed | Troubled | Recalled
