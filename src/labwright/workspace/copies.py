"""Read-only copies by digest: what was approved stays as it was, whatever is edited in the workspace meanwhile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from labwright.domain.errors import Conflict, NotFound
from labwright.files import read_json, write_json
from labwright.hashes import hash_file
from labwright.paths import COPY_LISTING
from labwright.workspace.digest import Digest, digest_of, what_changed

_FILES = "files"


def keep_copy(workspace: Path, copies: Path, digest: Digest) -> Path:
    """The folder with the digest's files and nothing else. Made aside and renamed, so it is whole or not there."""
    target = copies / digest.value
    if target.exists():
        return open_copy(copies, digest.value)
    aside = copies / f".{digest.value}.{os.getpid()}.new"
    remove_tree(aside)
    try:
        copy_files(workspace, aside / _FILES, digest)
        write_json(aside / COPY_LISTING, digest.to_dict())
        _make_read_only(aside / _FILES)
        aside.rename(target)
    finally:
        remove_tree(aside)
    target.chmod(0o500)
    return target / _FILES


def copy_files(workspace: Path, target: Path, digest: Digest) -> None:
    """The digest's files and nothing else; one that is not what the digest names is a Conflict."""
    target.mkdir(parents=True, exist_ok=True)
    for path, wanted in digest.files.items():
        _copy(workspace / path, target / path, path, wanted)


def open_copy(copies: Path, value: str) -> Path:
    """The files of a copy, after a look whether they are still what the digest names."""
    listed = listing(copies, value)
    folder = copies / value / _FILES
    changed = what_changed(listed, Digest(digest_of(folder).files, listed.facts))
    if changed:
        raise Conflict(
            f"The copy {value[:12]} is not what it was: {'; '.join(changed[:5])}.", hint="Approve the plan anew."
        )
    return folder


def listing(copies: Path, value: str) -> Digest:
    try:
        found = Digest.from_dict(read_json(copies / value / COPY_LISTING))
    except FileNotFoundError as error:
        raise NotFound(f"There is no copy {value[:12]}.", hint="Approve the plan anew.") from error
    if found.value != value:
        raise Conflict(f"The copy {value[:12]} says that it is another.", hint="Approve the plan anew.")
    return found


def remove_tree(folder: Path) -> None:
    """Read-only folders too; what is not there is no error."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=not folder.exists())


def _copy(source: Path, target: Path, relative: str, wanted: str) -> None:
    """An edit between the digest and the copy is noticed here, not executed later."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Conflict(f"{relative} is gone.", hint="Look at the plan again.") from error
    if target.is_symlink() or hash_file(target) != wanted:
        raise Conflict(f"{relative} was changed meanwhile.", hint="Look at the plan again.")


def _make_read_only(folder: Path) -> None:
    """Readable for any user, since contained code runs as one without rights; the folders around let nobody in."""
    for path, folders, names in os.walk(folder, topdown=False):
        for name in names:
            os.chmod(os.path.join(path, name), 0o444)
        for name in folders:
            os.chmod(os.path.join(path, name), 0o555)  # noqa: S103
    folder.chmod(0o555)
