"""Open a project's state folder and database, and make its `Lab`."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path

from labwright.compute.cluster.gpu_history import GpuHistory
from labwright.compute.cluster.state import ClusterState
from labwright.compute.database.backups import newest_backups
from labwright.compute.database.journal import Journal
from labwright.compute.database.place import note_epoch, place_database
from labwright.compute.database.rebuild import rebuild, runs_unknown_to
from labwright.compute.database.reserve import Reserve
from labwright.compute.database.restore import settle
from labwright.compute.environment import for_jobs
from labwright.compute.lab import Lab
from labwright.compute.local.launcher import LocalLauncher
from labwright.compute.metrics.unread import UnreadMetrics
from labwright.compute.notify.channels import PrivateFiles
from labwright.compute.runs.folder import forget_secrets_of_ended, has_folder
from labwright.compute.sdk_folder import write_small_package
from labwright.compute.slurm.commands import SlurmCommands
from labwright.compute.slurm.launcher import SlurmLauncher
from labwright.compute.slurm.resources import load_defaults
from labwright.compute.snapshot import SnapshotStore
from labwright.domain.errors import Invalid, StorageFailed
from labwright.paths import ProjectPaths
from labwright.planning.plans import settle_folders
from labwright.processes import user_name
from labwright.services import cluster, housekeeping
from labwright.settings import Settings
from labwright.store.database import Database, DatabaseDamaged
from labwright.tokens import load_or_make

log = logging.getLogger(__name__)
_CHECKED_AT_ONCE_BYTES = 32 << 20  # checking so many takes a fraction of a second; a gigabyte takes ten seconds


def prepare_state(project: Path) -> ProjectPaths:
    paths = ProjectPaths(project)
    if not project.is_dir():
        raise Invalid(f"The folder {project} does not exist.", hint="Name an existing folder with --project.")
    try:
        paths.state.mkdir(mode=0o700, exist_ok=True)
        os.chmod(paths.state, 0o700)
        for folder in (paths.runs, paths.sweeps, paths.wild, paths.plans, paths.logs, paths.backups):
            folder.mkdir(mode=0o700, exist_ok=True)
        (paths.state / ".gitignore").write_text("*\n")
    except OSError as error:
        raise unusable(paths, error) from error
    return paths


def unusable(paths: ProjectPaths, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"The state folder {paths.state} cannot be written: {error.strerror or error}.",
        hint="Run labwright doctor to see why, or choose another folder with --project.",
    )


def open_lab(paths: ProjectPaths, settings: Settings, url: str) -> Lab:
    try:
        place_database(paths, settings.state_dir)
        if _is_missing(paths.database) and _has_history(paths):
            log.warning("the database is missing; restoring it from the run folders")
            rebuild(paths, log.info)
        journal = Journal(paths.journal)
        cluster_state = ClusterState(settings.lease_dir)
        lab = Lab(
            paths=paths,
            settings=settings,
            db=_open_database(paths),
            journal=journal,
            snapshots=SnapshotStore(paths.snapshots, settings.snapshot_file_mb << 20, PrivateFiles(paths)),
            local=LocalLauncher(for_jobs(os.environ, paths.project, sys.prefix), paths.logs / "sidecars.log"),
            slurm=SlurmLauncher(
                SlurmCommands.from_environment(os.environ), load_defaults(paths.project), paths, settings.grace_seconds
            ),
            cluster=cluster_state,
            gpu_history=GpuHistory(paths.gpu_history, cluster_state.sample_gpus),
            unread=UnreadMetrics(paths.unread_metrics),
            reserve=Reserve(paths.reserve),
            token=load_or_make(paths.token),
            user=user_name(),
            url=url,
        )
        note_epoch(paths, lab.db.epoch)
        write_small_package(paths.python_path)
        journal.compact(lambda run_id: has_folder(lab, run_id))
        lab.db.on_commit(partial(forget_secrets_of_ended, lab))
        housekeeping.remove_files(housekeeping.leftover_secrets(lab, time.time()))
        housekeeping.remove_folders(housekeeping.leftover_rehearsals(lab))
    except OSError as error:
        raise unusable(paths, error) from error
    if not lab.token:
        raise Invalid(
            f"The token in {paths.token} is empty.", hint="Delete the file. The next start creates a new token."
        )
    settle(lab)
    cluster.restore(lab)
    settle_folders(lab)
    return lab


def _open_database(paths: ProjectPaths) -> Database:
    """Open the database and add runs that only their folders know: the file may be an older copy."""
    database = Database(paths.database, check_at_once=_CHECKED_AT_ONCE_BYTES)
    try:
        unknown = runs_unknown_to(database, paths)
    except sqlite3.DatabaseError as error:  # a large file is checked only after it is opened
        raise DatabaseDamaged(f"The database is damaged: {error}.") from error
    if not unknown:
        return database
    log.warning("the database lacks %d runs that have folders; adding them", len(unknown))
    database.close()
    rebuild(paths, log.info, paths.database)
    return Database(paths.database, check_at_once=_CHECKED_AT_ONCE_BYTES)


def _is_missing(database: Path) -> bool:
    """Whether there is no database, or an empty file, which SQLite accepts as a database."""
    return not database.exists() or database.stat().st_size == 0


def _has_history(paths: ProjectPaths) -> bool:
    return (
        bool(newest_backups(paths.backups))
        or any(paths.runs.iterdir())
        or any(paths.plans.iterdir())
        or (paths.journal.exists() and paths.journal.stat().st_size > 0)
    )
