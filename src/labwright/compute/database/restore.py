"""Restore a project's history from a file of `archive.py`, into a project that has none.

The next server start finds no database and rebuilds it from the copy and the folders. `settle` then ends the runs that
were active when the file was made.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from labwright.compute.database.archive import SEAL, carried
from labwright.compute.lab import Lab
from labwright.compute.runs.endings import end_run
from labwright.domain.errors import Conflict, Invalid, NotFound, StorageFailed
from labwright.domain.run import ACTIVE, RunStatus
from labwright.files import write_json
from labwright.paths import ProjectPaths
from labwright.store import runs
from labwright.store.database import Transaction
from labwright.workspace.copies import remove_tree

_CUT_OFF = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError)
_UNWATCHED = "It was active when the backup was made, so its result is not known."
_NOT_HERE = "This project is a copy: the run belongs to the folder that it was copied from."
_NO_SECRETS = "Its secret variables are not in a backup: submit it again with them."


def restore(paths: ProjectPaths, source: Path) -> dict[str, Any]:
    """Restore into a temporary folder and rename it, so that a kill leaves nothing or everything. Return the seal."""
    if not source.is_file():
        raise NotFound(f"There is no file {source}.")
    with _locked(paths.project):
        if paths.state.exists():
            raise Conflict(
                f"{paths.project} already has a history.",
                hint=f"Restore elsewhere with --project, or move it away first: mv {paths.state} {paths.state}.old",
            )
        aside = ProjectPaths(paths.restoring)
        remove_tree(aside.project)
        try:
            aside.state.mkdir(parents=True, mode=0o700)
            seal = _unpack(source, aside)
            write_json(aside.restored, seal)
            os.sync()
            aside.state.rename(paths.state)
            return seal
        except OSError as error:
            raise StorageFailed(f"Nothing was restored: {error.strerror or error}.") from error
        finally:
            remove_tree(aside.project)


@contextlib.contextmanager
def _locked(project: Path) -> Iterator[None]:
    """Lock the project: two restores at once would remove each other's files."""
    fd = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Conflict(f"Another restore into {project} is running.", hint="Wait until it has ended.") from None
    finally:
        os.close(fd)


def _unpack(source: Path, aside: ProjectPaths) -> dict[str, Any]:
    try:
        with tarfile.open(source, "r:gz") as tar:
            seal = _Unpacking(tar, aside).all()
            while tar.fileobj and tar.fileobj.read(1 << 20):  # the checksum is at the end
                continue
    except _CUT_OFF as error:
        raise _no_backup(source, str(error)) from error
    if seal is None:
        raise _no_backup(source, "its end is missing")
    return seal


def _no_backup(source: Path, why: str) -> Invalid:
    return Invalid(
        f"{source} is truncated, damaged, or not a Labwright backup ({why}). Nothing was restored.",
        hint="Use a file made by `labwright backup --to FILE`.",
    )


class _Unpacking:
    """Unpacks only files, folders and links, and only below the state folder, whatever the archive contains."""

    def __init__(self, tar: tarfile.TarFile, aside: ProjectPaths) -> None:
        self._tar = tar
        self._state = aside.state
        self._known = {path.name for path in (*carried(aside), aside.backups)}
        self._later: list[Callable[[], None]] = []
        self._seal: dict[str, Any] | None = None

    def all(self) -> dict[str, Any] | None:
        for member in self._tar:
            if member.name == SEAL:
                self._seal = json.loads(self._content(member).read())
            else:
                self._unpack(member, self._place(member.name))
        for finish in reversed(self._later):  # modes of folders, the innermost first
            finish()
        return self._seal

    def _place(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] not in self._known or ".." in parts:
            raise ValueError(f"{name!r} has no place in a backup")
        place = self._state.joinpath(*parts)
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        return place

    def _unpack(self, member: tarfile.TarInfo, place: Path) -> None:
        if member.isdir():
            place.mkdir(mode=0o700, exist_ok=True)
            self._later.append(lambda: os.chmod(place, member.mode & 0o777))
        elif member.issym():  # links last, so that nothing is written through one
            self._later.append(lambda: os.symlink(member.linkname, place))
        elif member.isfile():
            with place.open("xb") as file:
                shutil.copyfileobj(self._content(member), file, 1 << 20)
                os.fchmod(file.fileno(), member.mode & 0o777)
            os.utime(place, (member.mtime, member.mtime))
        else:
            raise ValueError(f"{member.name!r} is neither file, folder nor link")

    def _content(self, member: tarfile.TarInfo) -> Any:
        content = self._tar.extractfile(member)
        if content is None:
            raise ValueError(f"{member.name!r} has no content")
        return content


def settle(lab: Lab) -> None:
    """End the active runs of a restored project at its first start: nobody watches them, and none may run twice."""
    if not lab.paths.restored.exists():
        _update_paths(lab)
        return
    with lab.db.transaction() as tx:
        runs.move_folders(tx, str(lab.paths.runs))
        for run in runs.with_status(tx.connection, *sorted(ACTIVE)):
            if not os.path.exists(lab.paths.run(run.id).exit):
                end_run(tx, run, RunStatus.LOST, reason="restored", error=_UNWATCHED)
        for run in runs.with_status(tx.connection, RunStatus.QUEUED):
            fresh = runs.get(tx.connection, run.id)  # it may have failed with one that it waited for
            if fresh.secret_env and not fresh.is_terminal:
                end_run(tx, fresh, RunStatus.FAILED, reason="restored", error=_NO_SECRETS)
    lab.paths.restored.unlink()


def _update_paths(lab: Lab) -> None:
    """Update paths after the project was moved or copied. In a copy, unfinished runs are left to the original."""
    newest = runs.newest_folder(lab.db.reader())
    if newest is None or os.path.dirname(newest) == str(lab.paths.runs):
        return
    with lab.db.transaction() as tx:
        runs.move_folders(tx, str(lab.paths.runs))
        runs_folder = Path(newest).parent
        old_project = runs_folder.parent.parent
        if ProjectPaths(old_project).runs == runs_folder:
            _move_workdirs(lab, tx, old_project)
        if _is_copy(newest, lab.paths.run(os.path.basename(newest)).dir):
            _end_copied_runs(lab, tx)


def _move_workdirs(lab: Lab, tx: Transaction, old_project: Path) -> None:
    for workdir in runs.workdirs(tx.connection):
        if Path(workdir).is_relative_to(old_project):
            here = lab.paths.project / Path(workdir).relative_to(old_project)
            if here.is_dir():
                runs.move_workdir(tx, workdir, str(here))


def _is_copy(old: str, here: str) -> bool:
    """Compare inode numbers only: one folder may be mounted at two places with different devices."""
    try:
        return os.stat(old).st_ino != os.stat(here).st_ino
    except OSError:  # the old folder does not exist or is not visible, so nothing there can conflict with us
        return False


def _end_copied_runs(lab: Lab, tx: Transaction) -> None:
    for run in runs.with_status(tx.connection, RunStatus.QUEUED):
        fresh = runs.get(tx.connection, run.id)  # it may have failed with one that it waited for
        if not fresh.is_terminal:
            end_run(tx, fresh, RunStatus.STOPPED, reason="copied", error=_NOT_HERE)
    for run in runs.with_status(tx.connection, *sorted(ACTIVE)):
        if not os.path.exists(lab.paths.run(run.id).exit):
            end_run(tx, run, RunStatus.LOST, reason="copied", error=_NOT_HERE)
