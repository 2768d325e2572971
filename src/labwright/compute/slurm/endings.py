"""End a run whose job has ended. The files of the run decide; Slurm's state is used if there are none."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.endings import apply_exit, end_and_alert, end_run, read_facts
from labwright.compute.slurm.jobs import OUT_OF_MEMORY, JobEnding, JobRow, ending_of
from labwright.domain.clock import rfc3339
from labwright.domain.run import Run, RunStatus
from labwright.store import runs

_EXIT_PATIENCE_SECONDS = 5.0  # a file from another node may appear this much later than Slurm's report
_LOG_TAIL_BYTES = 500
_MEMORY_LIMIT = "memory limit"  # as slurmd words it
_BYTES_USED_AND_HAD = re.compile(r"memory limit \((\d+) > (\d+)\)")


class SlurmEndings:
    def __init__(self, lab: Lab, update: Callable[[str], Run | None]) -> None:
        self._lab = lab
        self._update = update
        self._over_since: dict[str, float] = {}  # runs whose job has ended and that have no exit file yet

    def still_runs(self, run_id: str) -> None:
        """Forget that the job had ended: Slurm lists it as pending or running again."""
        self._over_since.pop(run_id, None)

    def by_row(self, run: Run, row: JobRow) -> None:
        ending = ending_of(row)
        if ending.reason == "sidecar_lost":
            ending = _add_log(ending, row, self._log_tail(run, row))
        self.by_slurm(run, ending)

    def by_slurm(self, run: Run, ending: JobEnding) -> None:
        """End the run as Slurm says, once its files had time to arrive."""
        self._update(run.id)
        current = runs.get(self._lab.db.reader(), run.id)
        facts = self.exit_of(current)
        since = self._over_since.setdefault(run.id, time.monotonic())
        if current.is_terminal or (facts is None and time.monotonic() - since < _EXIT_PATIENCE_SECONDS):
            return
        self._over_since.pop(run.id, None)
        if facts is not None and ending.reason == "sidecar_lost":
            self.by_file(current, facts)  # Slurm has no better reason
        else:
            self._end(current, ending, facts or {})

    def by_file(self, run: Run, facts: dict[str, Any]) -> None:
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.is_active:
                apply_exit(tx, fresh, facts)
        self._forget_secrets(run)

    def exit_of(self, run: Run) -> dict[str, Any] | None:
        facts = read_facts(self._lab.paths.run(run.id).exit)
        return facts if facts is not None and facts["attempt"] == run.attempt else None

    def _end(self, run: Run, ending: JobEnding, facts: dict[str, Any]) -> None:
        known: dict[str, Any] = {name: facts[name] for name in ("exit_code", "signal", "usage") if name in facts}
        if "ended_at" in facts:
            known["ended_at"] = rfc3339(facts["ended_at"])
        with self._lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if fresh.is_terminal:
                return
            if fresh.stop_requested:
                end_run(tx, fresh, RunStatus.STOPPED, reason="stopped on request", **known)
            else:
                facts = {"reason": ending.reason, "error": ending.message, **known}
                end_and_alert(self._lab, tx, fresh, ending.status, **facts)
        self._forget_secrets(run)

    def _forget_secrets(self, run: Run) -> None:
        """Delete the secrets, which were kept in case Slurm started the job again."""
        with suppress(FileNotFoundError):
            os.unlink(self._lab.paths.run(run.id).secrets)

    def _log_tail(self, run: Run, row: JobRow) -> str:
        """Return the last output of Slurm, or of a sidecar that could not start."""
        path = self._lab.paths.run(run.id).slurm_log
        if row.tasks is not None:
            path = self._lab.paths.array(row.name).log(row.tasks[0])
        try:
            with open(path, "rb") as file:
                return file.read()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        except FileNotFoundError:
            return ""


def _add_log(ending: JobEnding, row: JobRow, log_tail: str) -> JobEnding:
    """Add what slurmd's log says. For a job that ran out of memory, Slurm's state may only be FAILED."""
    if _MEMORY_LIMIT not in log_tail:
        return replace(ending, message=f"{ending.message} Its log ends: {log_tail}") if log_tail else ending
    ending = ending_of(replace(row, state=OUT_OF_MEMORY))
    had = _BYTES_USED_AND_HAD.search(log_tail)
    return replace(ending, message=f"{ending.message} It had {int(had[2]) >> 20} MB.") if had else ending
