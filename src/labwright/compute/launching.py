"""From a queued run to a sidecar: commit first, then folders, then spawn. A kill in between is found by `recover`."""

from __future__ import annotations

import time

from labwright.compute.lab import Lab
from labwright.compute.launchers import Launch, Launcher
from labwright.compute.recover import fail_launch, may_pass
from labwright.compute.run_folder import address_for, make_run_folder
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.errors import LabwrightError
from labwright.domain.run import Run, RunStatus
from labwright.store import runs

_RETRY_SECONDS = 2.0


class Launching:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._again_at = 0.0

    @property
    def rests(self) -> bool:
        """For a moment after what could not be launched was put back."""
        return time.monotonic() < self._again_at

    def launch(self, run_ids: list[str]) -> None:
        by_launcher: dict[Launcher, list[Launch]] = {}
        for run in self._mark_launching(run_ids):
            if self._make_folder(run):
                launch = Launch(run, address_for(self._lab, run))
                by_launcher.setdefault(self._lab.launcher_for(run), []).append(launch)
        for launcher, launches in by_launcher.items():
            try:
                launcher.launch(launches)
            except OSError as error:
                for launch in launches:
                    self._put_back(launch.run, error.strerror or str(error))

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

    def _make_folder(self, run: Run) -> bool:
        """Makes it; where that fails the run has ended, or waits in the queue again."""
        try:
            make_run_folder(self._lab, run)
            return True
        except OSError as error:
            self._put_back(run, error.strerror or str(error))
        except LabwrightError as error:
            if may_pass(error):
                self._put_back(run, error.message)
            else:
                fail_launch(self._lab, run, error)
        return False

    def _put_back(self, run: Run, words: str) -> None:
        self._again_at = time.monotonic() + _RETRY_SECONDS
        reason = f"cannot start yet: {words}; trying again"
        with self._lab.db.transaction() as tx:
            current = runs.get(tx.connection, run.id)  # somebody may have changed it meanwhile
            runs.change(tx, current, current.move(RunStatus.QUEUED, status_reason=reason, run_dir=None), str(SYSTEM))
