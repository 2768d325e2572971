"""Which job is which run's, as this server knows it: sooner than the database, and from two threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from labwright.domain.run import Run
from labwright.paths import ProjectPaths

_NONE: Mapping[str, str] = MappingProxyType({})


class JobBook:
    def __init__(self, paths: ProjectPaths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._on_their_way: set[str] = set()
        self._job_ids: dict[str, str] = {}
        self._sent_at: dict[str, float] = {}

    def expect(self, run_ids: Iterable[str]) -> None:
        """They are on their way to Slurm."""
        with self._lock:
            self._on_their_way.update(run_ids)

    def settle(self, run_ids: Iterable[str], job_ids: Mapping[str, str] = _NONE) -> None:
        """They are there, with these ids, or will not be."""
        with self._lock:
            self._on_their_way.difference_update(run_ids)
            self._job_ids.update(job_ids)
            self._sent_at.update(dict.fromkeys(job_ids, time.time()))

    def forget_all_but(self, run_ids: Collection[str]) -> None:
        with self._lock:
            self._job_ids = {run_id: job for run_id, job in self._job_ids.items() if run_id in run_ids}
            self._sent_at = {run_id: at for run_id, at in self._sent_at.items() if run_id in run_ids}

    def is_on_its_way(self, run_id: str) -> bool:
        with self._lock:
            return run_id in self._on_their_way

    def was_sent_after(self, run_id: str, moment: float) -> bool:
        """Whether an answer to what was asked then need not know of it."""
        return self.is_on_its_way(run_id) or self._sent_at.get(run_id, 0.0) >= moment

    def id_of(self, run: Run) -> str | None:
        return self._job_ids.get(run.id) or run.slurm_job_id

    def has_begun(self, run: Run) -> bool:
        return os.path.exists(self._paths.run(run.id).claim(run.attempt))
