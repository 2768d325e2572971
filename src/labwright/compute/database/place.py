"""Where a project's database is: in the state folder, or in a local folder if the state folder is on a network file
system, on which SQLite's log fails.

In that case `database.path` holds its path, its history (the epoch) and the project folder. An outdated file on this
machine is recognized by its epoch, a copied or moved project by its folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from labwright.compute.cluster import machine
from labwright.domain.errors import StorageFailed
from labwright.files import write_whole
from labwright.paths import ProjectPaths
from labwright.store.database import FILES, copy_online, read_epoch


class PlaceUnknown(StorageFailed):
    """.labwright/database.path does not say where the project's database is."""

    hint = (
        "Write the path of the database into it, as its only line. Or delete it: the database is then rebuilt from "
        "the project's folders and its newest backup, and the old one is kept."
    )


@dataclass(frozen=True, slots=True)
class _Pointer:
    database: Path
    epoch: str = ""  # until it has been opened for the first time
    project: str = ""

    def is_of(self, project: Path) -> bool:
        return self.project in ("", str(project))

    def is_outdated(self) -> bool:
        """Whether another machine has rebuilt the database since, so that this file is older."""
        return bool(self.epoch) and read_epoch(self.database) not in (None, self.epoch)


def place_database(paths: ProjectPaths, state_dir: str) -> None:
    """Decide where the database is. A file with another history in that place is kept aside, never deleted."""
    pointer = _read(paths)
    if pointer is None:
        is_fine_here = paths.database.exists() or not (state_dir or machine.is_network(paths.state.resolve()))
        if is_fine_here:
            return
        place = _own_place(paths, state_dir)
        set_aside(place)  # a file of an earlier project
        _write(paths, _Pointer(place))
    elif not pointer.is_of(paths.project):
        _take_over(paths, pointer, _own_place(paths, state_dir))
    elif pointer.is_outdated():
        set_aside(pointer.database)
    _make_folder(paths.database.parent)


def place_of(paths: ProjectPaths) -> Path:
    """Return the path of the database. Raises PlaceUnknown if the pointer is empty or truncated."""
    pointer = _read(paths)
    return pointer.database if pointer else paths.database


def note_epoch(paths: ProjectPaths, epoch: str) -> None:
    """Store the epoch of the open database, so that older files of it are recognized."""
    if paths.database_pointer.exists():
        _write(paths, _Pointer(paths.database, epoch, str(paths.project)))


def set_aside(database: Path) -> str | None:
    """Rename the database together with its log, so that nothing is lost. Return the new path, or None."""
    kept = database.with_name(f"{database.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    was_there = database.exists()
    for suffix in FILES:
        old = Path(f"{database}{suffix}")
        if old.exists():
            old.replace(f"{kept}{suffix}")
    return str(kept) if was_there else None


def _own_place(paths: ProjectPaths, state_dir: str) -> Path:
    base = Path(state_dir).expanduser().absolute() if state_dir else local_folder()
    name = hashlib.sha256(os.fsencode(paths.project)).hexdigest()[:16]
    _make_folder(base / name)
    return base / name / "labwright.db"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageFailed(
            f"The local folder for the database, {folder}, cannot be created: {error.strerror}.",
            hint="Set another state_dir in labwright.toml, and delete .labwright/database.path: the database is "
            "then rebuilt from the project's folders.",
        ) from error


def local_folder(mounts: str | None = None, temporary: Path = Path("/var/tmp")) -> Path:  # noqa: S108
    """Return a folder in the home folder, unless that is on the network too, as on most clusters."""
    home = Path("~/.local/state/labwright").expanduser()
    if not machine.is_network(home.resolve(), mounts):
        return home
    folder = temporary / f"labwright-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or folder.is_symlink() or status.st_mode & 0o077:
        raise StorageFailed(
            f"{folder} is not private, and the database cannot be in your home folder, which is on the network.",
            hint="Set state_dir in labwright.toml to a local folder that only you can access.",
        )
    return folder


def _take_over(paths: ProjectPaths, pointer: _Pointer, place: Path) -> None:
    """Give a moved or copied project its own database. The original of a copy keeps its file."""
    set_aside(place)
    if read_epoch(pointer.database) == pointer.epoch:
        copy_online(pointer.database, place)
    _write(paths, _Pointer(place))
    if not ProjectPaths(Path(pointer.project)).state.exists():
        set_aside(pointer.database)


def _read(paths: ProjectPaths) -> _Pointer | None:
    if not paths.database_pointer.exists():
        return None
    try:
        place, *facts = paths.database_pointer.read_text().splitlines()
        pointer = _Pointer(Path(place), *map(json.loads, facts))
    except (ValueError, TypeError) as error:
        raise PlaceUnknown from error
    if not pointer.database.is_absolute():
        raise PlaceUnknown
    return pointer


def _write(paths: ProjectPaths, pointer: _Pointer) -> None:
    facts = [json.dumps(fact) for fact in (pointer.epoch, pointer.project) if fact]  # a name may hold anything
    write_whole(paths.database_pointer, "".join(f"{line}\n" for line in (pointer.database, *facts)).encode())
