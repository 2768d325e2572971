"""Rebuild the database from disk: the newest good backup, the journal, files of sweeps and wild loops, folders of runs
and plans."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from labwright.compute.database.backups import newest_backups
from labwright.compute.database.journal import Journal
from labwright.compute.database.place import note_epoch, set_aside
from labwright.compute.metrics.unread import UnreadMetrics
from labwright.compute.runs.endings import end_run
from labwright.domain.errors import LabwrightError, NotFound
from labwright.domain.ids import PLAN, RUN, SWEEP, WILD, is_id
from labwright.domain.plan import Plan, PlanVersion
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep
from labwright.domain.wild import Wild
from labwright.files import read_json
from labwright.paths import ProjectPaths
from labwright.store import alerts, dependencies, plans, runs, sweeps, wild
from labwright.store.database import FILES, Database, Transaction
from labwright.workspace import Workspace

log = logging.getLogger(__name__)
Record = TypeVar("Record")
_BY_PEOPLE = ("name", "tags", "notes", "priority", "archived")


@dataclass(slots=True, kw_only=True)
class Rebuilt:
    runs: int = 0
    sweeps: int = 0
    plans: int = 0
    loops: int = 0
    backup: str | None = None
    kept_aside: str | None = None
    unreadable: int = 0


def rebuild(
    paths: ProjectPaths, progress: Callable[[str], None] = lambda _text: None, chosen: Path | None = None
) -> Rebuilt:
    """Rebuild from the chosen backup, or from the newest that can be used. The old database is kept aside.

    The next start reads the events of each folder as usual.
    """
    result = Rebuilt()
    target = paths.database
    aside = target.with_suffix(".rebuilding")
    _clear(aside)
    for backup in [chosen] if chosen else newest_backups(paths.backups):
        try:
            result.backup = _start_from(backup, aside)
            break
        except LabwrightError as error:
            if chosen:
                raise
            progress(f"backup {backup.name} cannot be used: {error}")
    database = Database(aside)
    database.renew_epoch()
    with database.transaction() as tx:
        for sweep in sorted(
            _read_files(paths.sweeps, SWEEP, Sweep.from_dict, result), key=lambda each: each.created_at
        ):
            sweeps.restore(tx, sweep)
            result.sweeps += 1
        _restore_loops(tx, paths, result)
        _restore_plans(tx, paths, result)
        noted, deleted = _read_journal(tx, paths)
        stopped = {run.id: run for run in noted.values() if run.is_terminal}
        # A folder is newer than the journal, unless the journal has the end of the run.
        found = {**noted, **_runs_in_folders(paths, result, progress), **stopped}
        for run_id in deleted:  # even if a kill left a part of the folder
            found.pop(run_id, None)
            runs.forget(tx, run_id)
            alerts.delete_of_run(tx, run_id)
            plans.forget(tx, run_id)  # the list has ids of runs and plans
        _restore_runs(tx, found, noted)
        _restore_dependencies(tx)
        _fail_dependents(tx)
        result.runs = sum(runs.count_by_status(tx.connection).values())  # includes those that only the backup has
    unread = UnreadMetrics(paths.unread_metrics)  # a backup may know the end of a run but not all of its metrics
    for run_id in found:
        if os.path.isdir(paths.run(run_id).metrics):
            unread.mark(run_id)
    database.close()
    result.kept_aside = set_aside(target)
    aside.replace(target)
    note_epoch(paths, database.epoch)
    return result


def runs_unknown_to(database: Database, paths: ProjectPaths) -> list[str]:
    """Return runs that have a folder but no row: the database is an older file, or its log was lost."""
    _, deleted = Journal(paths.journal).read()
    folders = {entry.name for entry in os.scandir(paths.runs) if is_id(entry.name, RUN)}
    unknown = folders - runs.ids(database.reader()) - deleted
    return [run_id for run_id in sorted(unknown) if _run_in_folder(Path(paths.run(run_id).spec))]


def _clear(path: Path) -> None:
    for suffix in FILES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _start_from(backup: Path, aside: Path) -> str:
    if not backup.is_file():
        raise NotFound(f"There is no file {backup}.", hint="They are in .labwright/backups/.")
    aside.write_bytes(backup.read_bytes())
    os.chmod(aside, 0o600)
    try:
        Database(aside).close()
    except LabwrightError:
        _clear(aside)
        raise
    return backup.name


def _restore_loops(tx: Transaction, paths: ProjectPaths, result: Rebuilt) -> None:
    """Restore wild loops. A loop whose alert is lost stays paused; it asks again when somebody resumes it."""
    for loop in sorted(_read_files(paths.wild, WILD, Wild.from_dict, result), key=lambda each: each.created_at):
        try:
            alerts.get(tx.connection, loop.asked or "")
        except NotFound:
            loop = loop.evolve(asked=None)
        wild.restore(tx, loop)
        result.loops += 1


def _read_files(folder: Path, kind: str, read: Callable[[Any], Record], result: Rebuilt) -> Iterator[Record]:
    for file in (file for file in folder.glob("*.json") if is_id(file.stem, kind)):
        try:
            yield read(read_json(file))
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read: %s", file, error)
            result.unreadable += 1


def _restore_plans(tx: Transaction, paths: ProjectPaths, result: Rebuilt) -> None:
    """Restore plans in the order of their creation. A folder is newer than the backup."""
    workspace = Workspace(paths.state)
    found: list[tuple[Plan, list[PlanVersion]]] = []
    for plan_id in filter(lambda name: is_id(name, PLAN), workspace.plan_ids()):
        folder = workspace.plan(plan_id)
        try:
            if plan := folder.plan():
                found.append((plan, folder.versions(plan)))
        except (LabwrightError, OSError, ValueError, KeyError, TypeError) as error:
            log.warning("The plan in %s cannot be read: %s", folder.paths.dir, error)
            result.unreadable += 1
    for plan, versions in sorted(found, key=lambda each: each[0].created_at):
        plans.restore(tx, plan, versions)
        result.plans += 1


def _read_journal(tx: Transaction, paths: ProjectPaths) -> tuple[dict[str, Run], set[str]]:
    """Return the journal without runs of a sweep that was never stored because of a kill."""
    noted, deleted = Journal(paths.journal).read()
    kept = {sweep_id for sweep_id in {run.sweep_id for run in noted.values()} if _was_stored(tx, paths, sweep_id)}
    return {run.id: run for run in noted.values() if run.is_terminal or run.sweep_id in kept}, deleted


def _was_stored(tx: Transaction, paths: ProjectPaths, sweep_id: str | None) -> bool:
    if sweep_id is None or paths.sweep(sweep_id).exists():
        return True
    try:
        return bool(sweeps.get(tx.connection, sweep_id))
    except NotFound:
        return False


def _restore_runs(tx: Transaction, found: dict[str, Run], noted: dict[str, Run]) -> None:
    """Restore runs in the order of their creation. A run that has left the queue in the backup is newest there."""
    for run in sorted(found.values(), key=lambda run: run.created_at):
        known = _known(tx, run.id)
        newest = run if known is None or known.status in (RunStatus.READY, RunStatus.QUEUED) else known
        if run.id in noted:  # the journal has all changes that people made
            newest = newest.evolve(**{name: getattr(noted[run.id], name) for name in _BY_PEOPLE})
        runs.restore(tx, newest)


def _runs_in_folders(paths: ProjectPaths, result: Rebuilt, progress: Callable[[str], None]) -> dict[str, Run]:
    found: dict[str, Run] = {}
    folders = list(paths.runs.glob("*/spec.json"))
    for count, spec in enumerate(folders, 1):
        if count % 1000 == 0:
            progress(f"{count} of {len(folders)} run folders")
        if not is_id(spec.parent.name, RUN):
            continue
        if run := _run_in_folder(spec):
            found[run.id] = run
        else:
            result.unreadable += 1
    return found


def _run_in_folder(spec: Path) -> Run | None:
    try:
        return Run.from_dict(read_json(spec)["run"]).evolve(run_dir=str(spec.parent))
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        log.warning("%s cannot be read: %s", spec, error)
        return None


def _restore_dependencies(tx: Transaction) -> None:
    """Restore which queued runs still wait for a parent."""
    for run in runs.with_status(tx.connection, RunStatus.READY, RunStatus.QUEUED):
        dependencies.add(tx, run.id, run.after)
        dependencies.set_blocked(tx, run.id, by=len(_unfinished_parents(tx, run)))


def _fail_dependents(tx: Transaction) -> None:
    """Fail runs whose parent ended without a folder. For other parents, the next start reads the folder."""
    for run in runs.with_status(tx.connection, RunStatus.READY, RunStatus.QUEUED):
        ended = [parent for parent in _unfinished_parents(tx, run) if parent.is_terminal]
        if ended and not runs.get(tx.connection, run.id).is_terminal:  # it may have failed with another run
            message = f"It was to run after {ended[0].id} ({ended[0].name}), which did not finish."
            end_run(tx, run, RunStatus.FAILED, reason="dependency_failed", error=message)


def _unfinished_parents(tx: Transaction, run: Run) -> list[Run]:
    parents = (_known(tx, parent) for parent in run.after)
    return [parent for parent in parents if parent and parent.status is not RunStatus.FINISHED]


def _known(tx: Transaction, run_id: str) -> Run | None:
    try:
        return runs.get(tx.connection, run_id)
    except NotFound:
        return None
