"""Keep the state folder small: sizes, retention, backups, and files that a kill left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labwright.compute.database.backups import make_backup
from labwright.compute.lab import Lab
from labwright.compute.slurm.submit import runs_of_array
from labwright.domain.actor import Actor
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.event import Event, EventType
from labwright.domain.ids import PLAN, is_id
from labwright.domain.run import ACTIVE, TERMINAL, Run, RunStatus
from labwright.paths import PlanPaths, ProjectPaths, RunPaths
from labwright.services.runs import verbs as run_verbs
from labwright.store import plans, runs, sweeps
from labwright.store.idempotency import forget_before
from labwright.workspace.copies import remove_tree

_DAY = 86400.0
_ANSWERS_KEPT_DAYS = 7
_SETTLED_SECONDS = 3600.0  # an older file does not belong to a run that is being created


def sizes(lab: Lab) -> dict[str, Any]:
    parts = {
        "runs": _folder_size(lab.paths.runs),
        "plans": _folder_size(lab.paths.plans),
        "snapshots": _folder_size(lab.paths.snapshots),
        "environments": _folder_size(lab.paths.environments),
        "backups": _folder_size(lab.paths.backups),
        "logs": _folder_size(lab.paths.logs),
        "database": database_bytes(lab.paths),
        "reserve": _folder_size(lab.paths.state, lab.paths.reserve.name),
    }
    free = shutil.disk_usage(lab.paths.state).free
    return {"bytes": parts, "total_bytes": sum(parts.values()), "disk_free_bytes": free}


def database_bytes(paths: ProjectPaths) -> int:
    """Return the size of the database, its write-ahead log and damaged copies."""
    return _folder_size(paths.database.parent, f"{paths.database.name}*")


def _folder_size(folder: Path, pattern: str = "**/*") -> int:
    """Return the blocks on disk. A capped log has holes, so its nominal size is too large."""
    total = 0
    for path in folder.glob(pattern):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:  # removed in the meantime
            continue
    return total


def collect(lab: Lab, actor: Actor, *, dry_run: bool) -> dict[str, Any]:
    """Remove old logs, expired archived runs, unused snapshots, and files left by deleted runs and kills."""
    return lab.reserve.use_if_full(lambda: _collect(lab, actor, dry_run=dry_run))


def _collect(lab: Lab, actor: Actor, *, dry_run: bool) -> dict[str, Any]:
    before = time.time()
    archived_before = before - lab.settings.keep_archived_days * _DAY
    archived = [run for run in _ended_before(lab, archived_before) if run.archived]
    expired = [run for run in archived if (run.archived_at or "") < rfc3339(archived_before)]
    logs = _old_logs(lab, before - lab.settings.keep_days * _DAY, {run.id for run in expired})
    orphans = [*_orphan_folders(lab), *_half_made_plans(lab), *_unused_environments(lab), *_old_arrays(lab)]
    secrets = leftover_secrets(lab, before - _SETTLED_SECONDS)
    claims = leftover_claims(lab, before - _SETTLED_SECONDS)
    kept = runs.snapshot_hashes(lab.db.reader(), rfc3339(before - lab.settings.keep_days * _DAY))
    freed = lab.snapshots.collect(kept, dry_run=dry_run)
    freed += sum(_folder_size(path.parent, path.name) for path in (Path(paths.output) for paths in logs))
    freed += sum(_folder_size(Path(lab.paths.run(run.id).dir)) for run in expired)
    freed += sum(_folder_size(folder) for folder in orphans)
    report = {
        "dry_run": dry_run,
        "logs_removed": len(logs),
        "runs_deleted": len(expired),
        "orphan_folders": len(orphans),
        "leftover_files": len(secrets) + len(claims),
        "freed_bytes": freed,
    }
    if not dry_run:
        _carry_out(lab, actor, logs, expired, orphans)
        remove_files(secrets)
        remove_claims(claims)
        with lab.db.transaction() as tx:
            forget_before(tx, rfc3339(before - _ANSWERS_KEPT_DAYS * _DAY))
            tx.emit(Event(type=EventType.GC_DONE, actor=str(actor), time=now(), data=report))
    return report


def _carry_out(lab: Lab, actor: Actor, logs: list[RunPaths], expired: list[Run], orphans: list[Path]) -> None:
    for paths in logs:
        Path(paths.output_removed).touch(mode=0o600)
        Path(paths.output).unlink(missing_ok=True)
    for run in expired:
        run_verbs.delete(lab, run.id, actor)
    for path in orphans:
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def _unused_environments(lab: Lab) -> list[Path]:
    used = runs.environment_hashes(lab.db.reader())
    old = time.time() - _SETTLED_SECONDS
    found = lab.paths.environments.glob("*.json")
    return [path for path in found if path.stem not in used and path.stat().st_mtime < old]


def _old_arrays(lab: Lab) -> list[Path]:
    """Return array files that Slurm no longer needs to map a task to its run."""
    active = {run.id for run in runs.with_status(lab.db.reader(), *ACTIVE)}
    old = time.time() - lab.settings.keep_days * _DAY
    found = [path for path in lab.paths.arrays.glob("*") if path.stat().st_mtime < old]
    return [path for path in found if not active.intersection(runs_of_array(lab.paths, path.name) or ())]


def _old_logs(lab: Lab, before: float, doomed: set[str]) -> list[RunPaths]:
    """Return logs to remove, except those of `doomed` runs and empty ones."""
    found = (lab.paths.run(run.id) for run in _ended_before(lab, before) if run.id not in doomed)
    return [paths for paths in found if os.path.exists(paths.output) and os.path.getsize(paths.output)]


def _ended_before(lab: Lab, when: float) -> list[Run]:
    return runs.ended_before(lab.db.reader(), rfc3339(when))


def _orphan_folders(lab: Lab) -> list[Path]:
    """Return folders of deleted runs and plans that a kill left behind."""
    known = runs.ids(lab.db.reader())
    known |= {plan.id for plan in plans.every(lab.db.reader())}
    _, deleted = lab.journal.read()  # other folders may belong to runs that could not be restored
    entries = [*os.scandir(lab.paths.runs), *os.scandir(lab.paths.plans)]
    return [Path(entry.path) for entry in entries if entry.name in deleted - known]


def _half_made_plans(lab: Lab) -> list[Path]:
    """Return folders of plans that a kill left without a manifest before the commit."""
    known = {plan.id for plan in plans.every(lab.db.reader())}
    old = time.time() - _SETTLED_SECONDS
    found = (path for path in lab.paths.plans.iterdir() if is_id(path.name, PLAN) and path.name not in known)
    return [path for path in found if not PlanPaths(path).manifest.exists() and path.stat().st_mtime < old]


def backup(lab: Lab) -> str:
    return str(make_backup(lab))


def leftover_secrets(lab: Lab, before: float) -> list[Path]:
    """Return secret files that no run or sweep needs any more and that are older than `before`."""
    files = _older(lab.paths.secrets, before)
    if not files:
        return []
    needed = runs.ids_before_launch(lab.db.reader()) | sweeps.unended_ids(lab.db.reader())
    return [path for path in files if path.name.partition(".")[0] not in needed]


def leftover_claims(lab: Lab, before: float) -> list[Path]:
    """Return claims on metric files that no sidecar holds and that are older than every active run."""
    launched = runs.first_active_launch(lab.db.reader())
    moment = min(before, epoch_seconds(launched)) if launched else before
    free = []
    for path in _older(lab.paths.metric_claims, moment):
        fd = _lock(path)
        if fd is not None:
            os.close(fd)
            free.append(path)
    return free


def leftover_rehearsals(lab: Lab) -> list[Path]:
    """Return temporary copies of the project that no unfinished run uses."""
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


def remove_files(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)


def remove_claims(files: Iterable[Path]) -> None:
    """Remove claims under their lock. A sidecar that takes one now notices the removal and creates another."""
    for path in files:
        fd = _lock(path)
        if fd is not None:
            path.unlink(missing_ok=True)
            os.close(fd)


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
