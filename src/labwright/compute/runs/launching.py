"""Launch queued runs: commit first, then make the folder, then spawn. A kill in between is repaired by `recover`."""

from __future__ import annotations

import time

from labwright.compute.lab import Lab
from labwright.compute.launcher import Launch, Launcher
from labwright.compute.runs.endings import end_run
from labwright.compute.runs.folder import address_for, make_run_folder
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.run import Run, RunStatus
from labwright.store import runs

_RETRY_SECONDS = 2.0


def make_ready(lab: Lab, run: Run) -> Launch | None:
    """Make the run folder. If that can never succeed, fail the run and return None.

    Raises OSError or StorageFailed if the disk is full or cannot be written now.
    """
    try:
        make_run_folder(lab, run)
    except LabwrightError as error:
        if isinstance(error, StorageFailed) and isinstance(error.__cause__, OSError):  # a retry may succeed
            raise
        message = f"{error.message} {error.hint}".strip()
        with lab.db.transaction() as tx:
            current = runs.get(tx.connection, run.id)
            if not current.is_terminal:
                ended = end_run(tx, current, RunStatus.FAILED, reason="could_not_start", error=message)
                lab.journal.note(tx, [ended])
        return None
    return Launch(run, address_for(lab, run))


class Launching:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._retry_at = 0.0

    @property
    def is_backing_off(self) -> bool:
        """Whether a launch failed a moment ago."""
        return time.monotonic() < self._retry_at

    def launch(self, run_ids: list[str]) -> None:
        by_launcher: dict[Launcher, list[Launch]] = {}
        for run in self._mark_launching(run_ids):
            try:
                if launch := make_ready(self._lab, run):
                    by_launcher.setdefault(self._lab.launcher_for(run), []).append(launch)
            except (OSError, StorageFailed) as error:
                self._put_back(run, error)
        for launcher, launches in by_launcher.items():
            try:
                launcher.launch(launches)
            except OSError as error:
                for launch in launches:
                    self._put_back(launch.run, error)

    def _mark_launching(self, run_ids: list[str]) -> list[Run]:
        lab, marked = self._lab, []
        with lab.db.transaction() as tx:
            for run_id in run_ids:
                run = runs.get(tx.connection, run_id)
                if run.status is not RunStatus.QUEUED:
                    continue  # stopped between the choice and now
                launcher = lab.launcher_for(run).name
                facts = {"launched_at": now(), "launcher": launcher, "run_dir": lab.paths.run(run_id).dir}
                marked.append(runs.change(tx, run, run.move(RunStatus.LAUNCHING, **facts), str(SYSTEM)))
        return marked

    def _put_back(self, run: Run, error: OSError | StorageFailed) -> None:
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        message = (error.strerror if isinstance(error, OSError) else "") or str(error)
        reason = f"cannot start yet: {message}; trying again"
        with self._lab.db.transaction() as tx:
            current = runs.get(tx.connection, run.id)  # it may have changed meanwhile
            runs.change(tx, current, current.move(RunStatus.QUEUED, status_reason=reason, run_dir=None), str(SYSTEM))
