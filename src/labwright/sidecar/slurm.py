"""A sidecar that Slurm starts on a node: which run it serves, which attempt, and whether an earlier one still runs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterable
from typing import Any

from labwright.domain.failure import may_be_ended_by_slurm
from labwright.files import modified_at, read_json
from labwright.paths import RunPaths
from labwright.processes import end_tree, processes_of_run, read_identity, send_signal

_POLL_SECONDS = 1.0
_SILENCE_SECONDS = 20.0  # a heartbeat comes every two; file systems between nodes show it late
_LONG_AGO_SECONDS = 300.0
_LOG_BYTES = 1 << 20
_GIVEN_BY_SLURM = ("SLURM_", "SLURMD_", "PMI_", "PMIX_", "PMI2_")
_CARDS = frozenset({"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "TMPDIR"})
_FOR_SRUN = "SRUN_CPUS_PER_TASK"  # set by the batch script for versions of srun that need it
_KEPT_OF_OURS = frozenset({"SLURM_CONF", "SLURM_CLUSTERS"})
_END_ANNOUNCED = re.compile(rb"\*\*\* [^\n]+ ON [^\n]+ CANCELLED AT ")


def run_folder_of(target: str, environ: dict[str, str]) -> str:
    """Return the run folder: `target` itself, or the entry for this task in the file of a job array."""
    if os.path.isdir(target):
        return target
    folder: str = read_json(target)["run_dirs"][int(environ["SLURM_ARRAY_TASK_ID"])]
    return folder


def attempt_of(paths: RunPaths, run: dict[str, Any], environ: dict[str, str]) -> int:
    """Return the number of this attempt. Slurm counts how often it has requeued the job.

    A controller that crashed may have lost that count and started the job again. Then the same job holds a claim for
    this attempt already, and the next number is used. A claim of another job means that the run was submitted twice;
    this copy does not run.
    """
    attempt = int(run["attempt"]) + int(environ.get("SLURM_RESTART_COUNT", "0"))
    job_id = facts_of(environ)["slurm_job_id"]
    while job_id:
        try:
            claim = read_json(paths.claim(attempt))
        except (FileNotFoundError, ValueError):  # not claimed, or cut off by a crash of the node
            break
        if not isinstance(claim, dict) or str(claim.get("slurm_job_id")) != job_id:
            break
        attempt += 1
    return attempt


def facts_of(environ: dict[str, str]) -> dict[str, str]:
    """Return Slurm job, partition and node of this process."""
    job = environ.get("SLURM_JOB_ID", "")
    if "SLURM_ARRAY_JOB_ID" in environ:
        job = f"{environ['SLURM_ARRAY_JOB_ID']}_{environ['SLURM_ARRAY_TASK_ID']}"
    partition, node = environ.get("SLURM_JOB_PARTITION", ""), environ.get("SLURMD_NODENAME", "")
    return {"slurm_job_id": job, "slurm_partition": partition, "node": node}


def environment_on_node(stored: dict[str, str], inherited: dict[str, str]) -> dict[str, str]:
    """Return the run's stored environment, overridden by what Slurm set for this allocation."""
    advice = {_FOR_SRUN: inherited[_FOR_SRUN]} if _FOR_SRUN in inherited else {}
    sent = {name: value for name, value in stored.items() if not _is_slurms(name) or name in _KEPT_OF_OURS}
    given = {name: value for name, value in inherited.items() if _is_slurms(name) or name in _CARDS}
    return {**advice, **sent, **given}


def _is_slurms(name: str) -> bool:
    return name.startswith(_GIVEN_BY_SLURM)


def forward(number: int, pids: Iterable[int]) -> None:
    """Send a signal to the processes that handle it. The shell around a command would die of it."""
    for pid in pids:
        if _catches(pid, number):
            send_signal(pid, number)


def _catches(pid: int, number: int) -> bool:
    try:
        with open(f"/proc/{pid}/status") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigCgt:")]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)


class StepLog:
    """The log of slurmd for this job, which is our standard error. It announces an end before any signal is sent.

    The job may get the signal before us, save its state and exit with 0. By the signals alone, that would look like a
    normal end.
    """

    def __init__(self) -> None:
        self._ours_from = os.fstat(sys.stderr.fileno()).st_size  # what comes before belongs to an earlier attempt

    def announces_end(self) -> bool:
        with contextlib.suppress(OSError), open(f"/proc/self/fd/{sys.stderr.fileno()}", "rb") as file:
            file.seek(self._ours_from)  # fails if it is not a file, where a read might block
            return bool(_END_ANNOUNCED.search(file.read(_LOG_BYTES)))
        return False  # only the signals can show it


class PreviousAttempt:
    """An attempt on a node that Slurm has given up may still run. Two attempts must never run at the same time."""

    def __init__(self, paths: RunPaths, run_id: str, number: int) -> None:
        self._paths = paths
        self._run_id = run_id
        self._number = number
        self._seen = modified_at(self._paths.heartbeat)
        self._seen_at = time.monotonic()

    def wait_until_over(self) -> bool:
        """Wait for its end. Return whether the run must be tried again. False if it ended by itself."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                facts: dict[str, Any] = read_json(self._paths.exit)
                if facts["attempt"] >= self._number:
                    return may_be_ended_by_slurm(facts)
            if self._is_dead():
                return True
            time.sleep(_POLL_SECONDS)

    def _is_dead(self) -> bool:
        owner = read_identity(self._paths.claim(self._number))  # None if a crash lost the claim
        if owner and owner.is_here and not owner.is_alive:
            end_tree(lambda: processes_of_run(self._run_id), 0.0)  # processes that Slurm did not end with the attempt
            return True
        beat = modified_at(self._paths.heartbeat)
        if beat != self._seen:
            self._seen, self._seen_at = beat, time.monotonic()
        silent = time.monotonic() - self._seen_at > _SILENCE_SECONDS
        return silent or (beat is not None and time.time() - beat > _LONG_AGO_SECONDS)


def is_to_run(paths: RunPaths, run_id: str, attempt: int) -> bool:
    """Wait for an earlier attempt, and return whether this one must run."""
    previous = [number for number in range(1, attempt) if os.path.exists(paths.claim(number))]
    if not previous or PreviousAttempt(paths, run_id, previous[-1]).wait_until_over():
        return True
    print("an earlier attempt has ended normally; nothing to do", file=sys.stderr)
    return False
