"""The Slurm job of each run, shared by two threads. It is newer than the database."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from labwright.domain.run import Run
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)


class JobBook:
    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._being_sent: set[str] = set()
        self._job_ids: dict[str, str] = {}
        self._sent_at: dict[str, float] = {}

    def expect(self, run_ids: Iterable[str]) -> None:
        """Note runs that are about to be submitted."""
        with self._lock:
            self._being_sent.update(run_ids)

    def settle(self, run_ids: Iterable[str], job_ids: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note that runs were submitted with these job ids, or will not be submitted."""
        with self._lock:
            self._being_sent.difference_update(run_ids)
            self._job_ids.update(job_ids)
            self._sent_at.update(dict.fromkeys(job_ids, time.time()))

    def forget_all_but(self, run_ids: Collection[str]) -> None:
        with self._lock:
            self._job_ids = {run_id: job for run_id, job in self._job_ids.items() if run_id in run_ids}
            self._sent_at = {run_id: at for run_id, at in self._sent_at.items() if run_id in run_ids}

    def is_being_sent(self, run_id: str) -> bool:
        with self._lock:
            return run_id in self._being_sent

    def was_sent_after(self, run_id: str, moment: float) -> bool:
        """Return whether a listing requested at `moment` may lack this run's job."""
        return self.is_being_sent(run_id) or self._sent_at.get(run_id, 0.0) >= moment

    def id_of(self, run: Run) -> str | None:
        return self._job_ids.get(run.id) or run.slurm_job_id

    def has_started(self, run: Run) -> bool:
        return os.path.exists(self._paths.run(run.id).claim(run.attempt))


def join_tasks(job_ids: Iterable[str]) -> list[str]:
    """Write the tasks of each array as one id, such as `7_[0-998,1000]`: Slurm takes that as one order."""
    arrays: dict[str, list[int]] = {}
    single = []
    for job_id in job_ids:
        array, _, task = job_id.partition("_")
        if task.isdecimal():
            arrays.setdefault(array, []).append(int(task))
        else:
            single.append(job_id)
    return [*single, *(f"{array}_{_spans(tasks)}" for array, tasks in arrays.items())]


def _spans(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return parts[0] if len(numbers) == 1 else f"[{','.join(parts)}]"


class OrderFaults:
    """Unexpected errors in orders to Slurm: logged, and shown in /health until the order succeeds."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}  # by run

    def note(self, runs: Iterable[Run], error: Exception) -> str:
        message = f"An order to Slurm failed unexpectedly: {error!r}."
        log.error("%s", message, exc_info=True)
        self._messages.update({run.id: message for run in runs})
        return message

    def clear(self, run_ids: Iterable[str]) -> None:
        """Forget errors: the order succeeded, or its run has ended."""
        for run_id in run_ids:
            self._messages.pop(run_id, None)

    def clear_all_but(self, run_ids: Collection[str]) -> None:
        self.clear(self._messages.keys() - run_ids)

    @property
    def first(self) -> str:
        return next(iter(list(self._messages.values())), "")
