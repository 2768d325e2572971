"""Small files that a kill may leave in the state folder: secrets that nobody will read, claims that nobody holds."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.clock import epoch_seconds
from labwright.domain.run import TERMINAL, RunStatus
from labwright.store import runs, sweeps


def secrets(lab: Lab, before: float) -> list[Path]:
    """Of runs that are gone or past their launch and of sweeps that ended; written before that moment, since one may be
    in the making."""
    files = _older(lab.paths.secrets, before)
    if not files:
        return []
    needed = runs.ids_before_launch(lab.db.reader()) | sweeps.unended_ids(lab.db.reader())
    return [path for path in files if path.name.partition(".")[0] not in needed]


def claims(lab: Lab, before: float) -> list[Path]:
    """Claims on metric files that no sidecar holds, from before any run that goes now: those still ask when it was."""
    launched = runs.first_active_launch(lab.db.reader())
    moment = min(before, epoch_seconds(launched)) if launched else before
    return [path for path in _older(lab.paths.metric_claims, moment) if _is_free(path)]


def rehearsals(lab: Lab) -> list[Path]:
    """Throw-away copies of the project in which no run is at work or about to be."""
    try:
        folders = [Path(entry.path) for entry in os.scandir(lab.paths.rehearsals)]
    except FileNotFoundError:
        return []
    unended = runs.with_status(lab.db.reader(), *(status for status in RunStatus if status not in TERMINAL))
    needed = {run.workdir for run in unended}
    return [folder for folder in folders if str(folder.resolve()) not in needed]


def remove_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def remove(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)


def remove_claims(files: Iterable[Path]) -> None:
    """Under its lock: a sidecar that takes the claim at this moment sees that the file went, and makes another."""
    for path in files:
        fd = _lock(path)
        if fd is not None:
            path.unlink(missing_ok=True)
            os.close(fd)


def _is_free(path: Path) -> bool:
    fd = _lock(path)
    if fd is not None:
        os.close(fd)
    return fd is not None


def _lock(path: Path) -> int | None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _older(folder: Path, moment: float) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if entry.stat().st_mtime < moment]
    except FileNotFoundError:
        return []
