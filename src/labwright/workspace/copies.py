"""Read-only copies by digest: approved files stay as they were, whatever is edited in the workspace later."""

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
    """Return a folder with exactly the digest's files. It is created aside and renamed, so it is complete or absent."""
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
    """Copy exactly the digest's files. Raise Conflict if a file does not match the digest."""
    target.mkdir(parents=True, exist_ok=True)
    for path, sha256 in digest.files.items():
        _copy(workspace / path, target / path, path, sha256)


def open_copy(copies: Path, value: str) -> Path:
    """Return the folder of a copy after checking its files against the digest."""
    listed = listing(copies, value)
    folder = copies / value / _FILES
    changed = what_changed(listed, Digest(digest_of(folder).files, listed.facts))
    if changed:
        raise Conflict(
            f"The approved copy {value[:12]} was changed: {'; '.join(changed[:5])}.", hint="Approve the plan again."
        )
    return folder


def listing(copies: Path, value: str) -> Digest:
    try:
        found = Digest.from_dict(read_json(copies / value / COPY_LISTING))
    except FileNotFoundError as error:
        raise NotFound(f"There is no copy {value[:12]}.", hint="Approve the plan again.") from error
    if found.value != value:
        raise Conflict(f"The copy {value[:12]} belongs to another digest.", hint="Approve the plan again.")
    return found


def remove_tree(folder: Path) -> None:
    """Delete a folder, also a read-only or missing one."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=not folder.exists())


def _copy(source: Path, target: Path, relative: str, sha256: str) -> None:
    """Copy a file and check its hash: an edit made after the digest must not be executed."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Conflict(f"{relative} no longer exists.", hint="Review the plan again.") from error
    if target.is_symlink() or hash_file(target) != sha256:
        raise Conflict(f"{relative} was changed in the meantime.", hint="Review the plan again.")


def _make_read_only(folder: Path) -> None:
    """Make all files readable for every user: sandboxed code runs as another user. The parent folders stay private."""
    for path, folders, names in os.walk(folder, topdown=False):
        for name in names:
            os.chmod(os.path.join(path, name), 0o444)
        for name in folders:
            os.chmod(os.path.join(path, name), 0o555)  # noqa: S103
    folder.chmod(0o555)
