"""Jobs as squeue and sacct list them, what the end of a job means for its run, and the outcomes of orders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from labwright.compute.slurm.commands import SlurmSilent
from labwright.domain.run import RunStatus

PENDING_MESSAGE = "Slurm: pending"
_SEPARATOR = "\x1f"
_FIELDS = ("%i", "%T", "%r", "%j", "%N")  # id, state, reason, name, nodes: every Slurm since 2010 has these
_FIRST_TITLE = "JOBID"
_ACCOUNTED = ("JobID", "State", "NodeList", "JobName")
OUT_OF_MEMORY = "OUT_OF_MEMORY"
CANCELLED = "CANCELLED"
_NO_NODES = "None assigned"
_QUOTED = 200
_ARRAY = re.compile(r"(\d+)_(?:\[([^\]]*)\]|(\d+))$")


class Phase(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    ENDED = "ended"


_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_ENDED = frozenset(
    [
        "BOOT_FAIL",
        CANCELLED,
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        OUT_OF_MEMORY,
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ]
)
HELD = re.compile("held|hold", re.IGNORECASE)
USER_HOLD = "JobHeldUser"
_LIMIT_REACHED = re.compile(r"Max(?:Submit)?Jobs?\w*Limit|MaxSubmit|job submit limit", re.IGNORECASE)
_STUCK = re.compile(r"[^,]*requeued.held|JobHoldMaxRequeue", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One line of squeue: a job, a task of an array, or all pending tasks of one."""

    job_id: str  # of the whole array, for a task
    tasks: tuple[int, ...] | None  # None if it is not an array
    state: str
    reason: str
    name: str
    nodes: str

    @property
    def phase(self) -> Phase:
        if self.state in _PENDING:
            return Phase.PENDING
        return Phase.ENDED if self.state in _ENDED else Phase.ACTIVE

    def id_of(self, task: int | None) -> str:
        return self.job_id if task is None else f"{self.job_id}_{task}"

    @property
    def is_mixed(self) -> bool:
        """Some tasks of an array are held and some are not: squeue puts all reasons into one row."""
        return self.tasks is not None and "," in self.reason and self.is_held

    @property
    def is_held(self) -> bool:
        return self.phase is Phase.PENDING and HELD.search(self.reason) is not None

    @property
    def is_stuck(self) -> bool:
        """Slurm holds the job because its node could not start it. It waits until somebody releases it."""
        return self.phase is Phase.PENDING and _STUCK.fullmatch(self.reason) is not None

    @property
    def pending_message(self) -> str:
        why = "" if self.reason in ("None", "") else self.reason
        return f"{PENDING_MESSAGE} ({why})" if why else PENDING_MESSAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnding:
    """How a run ended according to Slurm."""

    status: RunStatus
    reason: str
    message: str


_ENDINGS = {
    "TIMEOUT": JobEnding(status=RunStatus.FAILED, reason="time_limit", message="Slurm ended it at its time limit."),
    "DEADLINE": JobEnding(status=RunStatus.FAILED, reason="time_limit", message="Slurm ended it at its deadline."),
    OUT_OF_MEMORY: JobEnding(
        status=RunStatus.FAILED,
        reason="out_of_memory",
        message="It used more memory than it had. Request more with memory_mb.",
    ),
    "NODE_FAIL": JobEnding(status=RunStatus.LOST, reason="node_fail", message="Its node failed."),
    "BOOT_FAIL": JobEnding(status=RunStatus.FAILED, reason="node_fail", message="Its node did not boot."),
    "PREEMPTED": JobEnding(status=RunStatus.FAILED, reason="preempted", message="Slurm gave its place to another job."),
    CANCELLED: JobEnding(
        status=RunStatus.STOPPED, reason="cancelled in Slurm", message="Somebody cancelled the job in Slurm."
    ),
    "REVOKED": JobEnding(status=RunStatus.FAILED, reason="revoked", message="Another cluster took the job."),
}


def ending_of(row: JobRow) -> JobEnding:
    """Return the ending of a job that left no `exit.json`."""
    if row.state in _ENDINGS:
        return _ENDINGS[row.state]
    if not row.nodes:  # it never started
        return JobEnding(
            status=RunStatus.FAILED, reason="slurm_refused", message=f"Slurm refused the job: {row.reason}."
        )
    message = f"Its supervisor ended without reporting; Slurm says {row.state} ({row.reason})."
    return JobEnding(status=RunStatus.LOST, reason="sidecar_lost", message=message)


def squeue_arguments(uid: int, *, each_task: bool = False) -> list[str]:
    """Return the command that lists all our jobs, including those that ended a moment ago."""
    more = ["-r"] if each_task else []
    return ["squeue", "-a", *more, "-u", str(uid), "-t", "all", "-o", _SEPARATOR.join(_FIELDS)]


def held_arguments(uid: int) -> list[str]:
    """Return the command that lists all our pending jobs, one row each."""
    return ["squeue", "-a", "-r", "-u", str(uid), "-t", "PENDING", "-o", _SEPARATOR.join(_FIELDS)]


def read_held(text: str) -> set[str]:
    return {row.id_of(task) for row in read_squeue(text) for task in row.tasks or (None,) if row.is_held}


def read_squeue(text: str) -> list[JobRow]:
    """Parse the listing. Raise SlurmSilent if it has no title line: an empty output is not an empty queue, and all jobs
    would be marked as lost."""
    rows = [cells for line in text.splitlines() if len(cells := line.split(_SEPARATOR)) == len(_FIELDS)]
    if not any(_is_title(cells) for cells in rows):
        raise SlurmSilent(f"squeue listed no jobs; it said: {' '.join(text.split())[:_QUOTED] or 'nothing'}")
    return [_row(cells) for cells in rows if not _is_title(cells)]


def _is_title(cells: list[str]) -> bool:
    return cells[0].strip() == _FIRST_TITLE


def sacct_arguments(job_ids: Iterable[str]) -> list[str]:
    """Return the command that lists jobs without their steps, and of a requeued job only the last start."""
    fields = ",".join(_ACCOUNTED)
    return ["sacct", "--noheader", "--allocations", "--parsable2", f"--format={fields}", f"--jobs={','.join(job_ids)}"]


def read_sacct(text: str) -> list[JobRow]:
    rows = []
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == len(_ACCOUNTED):
            job, state, nodes, name = cells
            assigned = "" if nodes == _NO_NODES else nodes
            state = state.partition(" ")[0]  # "CANCELLED by 1000"
            rows.append(_row([job, state, "by the accounting", name, assigned]))
    return rows


def _row(cells: Iterable[str]) -> JobRow:
    job, state, reason, name, nodes = (cell.strip() for cell in cells)
    match = _ARRAY.match(job)
    tasks = None if match is None else expand_tasks(match[2] or match[3])
    base = match[1] if match else job.partition("+")[0]
    return JobRow(job_id=base, tasks=tasks, state=state, reason=reason, name=name, nodes=nodes)


def expand_tasks(text: str) -> tuple[int, ...]:
    """Return the tasks in `1-5%1`, `3,7-9` or `0-8:2`. The number after `%` limits how many run at once."""
    tasks: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match:
            first, last, step = match.groups()
            tasks.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return tuple(tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    job_ids: dict[str, str]  # by run


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubmitted:
    """`for_good`: Slurm refused. `in_doubt`: Slurm did not reply, so it may have the job."""

    run_ids: tuple[str, ...]
    message: str
    for_good: bool = False
    in_doubt: bool = False
    is_silent: bool = False  # Slurm accepts nothing at all now

    @property
    def is_full(self) -> bool:
        """Whether the user's limit of queued jobs is reached. Each task of an array counts."""
        return self.is_silent and not self.in_doubt and _LIMIT_REACHED.search(self.message) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """A pending job was cancelled, or a run was stopped before it was submitted."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDelayed:
    """A run that is being submitted has to be stopped: the stop waits for the end of the submission."""

    run_id: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """An order about these runs failed unexpectedly and is retried."""

    run_ids: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Accounting rows of jobs that squeue no longer lists. None: no row, or no accounting."""

    rows: Mapping[str, JobRow | None]  # by run
    controller_start: float | None = None  # read only if a row is None


OrderOutcome = Submitted | NotSubmitted | Cancelled | StopDelayed | Troubled | Recalled


@dataclass(frozen=True, slots=True, kw_only=True)
class JobListing:
    """One listing of squeue, and the facts known when it was requested. Files may have newer facts."""

    rows: tuple[JobRow, ...]
    asked_at: float
    had_started: Mapping[str, int]  # run -> the attempt that was running


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    message: str


SlurmReport = OrderOutcome | JobListing | Unanswered
