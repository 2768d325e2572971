"""Where a project's database lies: beside the rest, or in a local folder where that is on a network file system, on
which SQLite's log fails.

Then `database.path` says where, which history that is (the epoch) and for which folder: a file that another machine has
gone on without is told by its epoch, a copy or a new place of the project by the folder.
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
        "Write the path of the database into it, as its only line. Or delete it: the database is then made anew from "
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
        """Another machine has made the database anew since, and knows what happened there."""
        return bool(self.epoch) and read_epoch(self.database) not in (None, self.epoch)


def place_database(paths: ProjectPaths, state_dir: str) -> None:
    """Decide where it lies. What is found there and tells another history is kept aside, never deleted."""
    pointer = _read(paths)
    if pointer is None and not _belongs_elsewhere(paths, state_dir):
        return
    if pointer is None:
        _begin_at(paths, _own_place(paths, state_dir))
    elif not pointer.is_of(paths.project):
        _follow(paths, pointer, _own_place(paths, state_dir))
    elif pointer.is_outdated():
        set_aside(pointer.database)
    _make_folder(paths.database.parent)


def place_of(paths: ProjectPaths) -> Path:
    """`paths.database`, or an error where the pointer to it was emptied or cut off."""
    pointer = _read(paths)
    return pointer.database if pointer else paths.database


def note_epoch(paths: ProjectPaths, epoch: str) -> None:
    """Once the database is there, so that an older file of it is told from it."""
    if paths.database_pointer.exists():
        _write(paths, _Pointer(paths.database, epoch, str(paths.project)))


def set_aside(database: Path) -> str | None:
    """The file and its unfinished log move together, so that nothing in it is given up."""
    kept = database.with_name(f"{database.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    was_there = database.exists()
    for suffix in FILES:
        old = Path(f"{database}{suffix}")
        if old.exists():
            old.replace(f"{kept}{suffix}")
    return str(kept) if was_there else None


def _belongs_elsewhere(paths: ProjectPaths, state_dir: str) -> bool:
    if paths.database.exists():  # it stays where it is
        return False
    return bool(state_dir) or machine.is_network(paths.state.resolve())


def _own_place(paths: ProjectPaths, state_dir: str) -> Path:
    base = Path(state_dir).expanduser().absolute() if state_dir else local_folder()
    name = hashlib.sha256(os.fsencode(paths.project)).hexdigest()[:16]
    _make_folder(base / name)
    return base / name / "labwright.db"


def _make_folder(folder: Path) -> None:
    """Another machine may lack it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageFailed(
            f"The local folder for the database, {folder}, cannot be made: {error.strerror}.",
            hint="Name another as state_dir in labwright.toml, and delete .labwright/database.path: the database is "
            "then made anew from the project's folders.",
        ) from error


def local_folder(mounts: str | None = None, temporary: Path = Path("/var/tmp")) -> Path:  # noqa: S108
    """In the home folder, unless that is on the network too, as on most clusters."""
    home = Path("~/.local/state/labwright").expanduser()
    if not machine.is_network(home.resolve(), mounts):
        return home
    folder = temporary / f"labwright-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or folder.is_symlink() or found.st_mode & 0o077:
        raise StorageFailed(
            f"{folder} is not yours alone, and the database cannot be in your home folder, which is on the network.",
            hint="Name a local folder of your own as state_dir in labwright.toml.",
        )
    return folder


def _begin_at(paths: ProjectPaths, place: Path) -> None:
    """Of a project that was here before; whatever comes there after the pointer is ours."""
    set_aside(place)
    _write(paths, _Pointer(place))


def _follow(paths: ProjectPaths, pointer: _Pointer, place: Path) -> None:
    """The project was moved here, or is a copy: then the original goes on with a file of its own."""
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
