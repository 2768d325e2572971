"""The machine as its user sees it, read-only: for commands that look around and may not change things.

Unlike a `Fence` this shows everything that is not hidden. Devices are the harmless few, `/tmp` and `/run` are empty,
and other processes can be listed but neither signalled nor looked into.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labwright.sandbox.fences import Limits, within

_NOTHING = "/dev/null"
_SHM = "/dev/shm"  # noqa: S108 - of the contained command alone
_EMPTY = ("/tmp", "/var/tmp", "/run", _SHM)  # noqa: S108 - likewise
_SECRET_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", ".config/gcloud", ".config/gh")
_SECRET_FILES = (".netrc", ".git-credentials", ".pypirc", ".pgpass", ".bash_history", ".zsh_history")
_LISTENS = "00010000"  # the flag of a socket that takes connections, in /proc/net/unix


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What differs from what the user sees. Paths are real ones, without links."""

    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()  # shown as it is, also inside of what is empty or writable
    hidden: tuple[str, ...] = ()  # files and folders that are empty
    shown: tuple[str, ...] = ()  # inside of what is hidden
    replaced: Mapping[str, str] = field(default_factory=dict)  # file: what stands in its place
    workdir: str = "/"


def machine_command(command: Sequence[str], view: View, limits: Limits) -> list[str]:
    """A namespace of its own for users takes away what even the same user may do to processes outside."""
    hidden = list(_hidden(view))
    folders = [path for path in hidden if os.path.isdir(path)]
    files = [path for path in hidden if path not in folders]
    return [
        "bwrap",
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--ro-bind", "/", "/", "--dev", "/dev"),
        *_emptied(limits.scratch_mb << 20),
        *(word for path in view.writable for word in ("--bind", path, path)),
        *(word for path in view.read_only for word in ("--ro-bind", path, path)),
        *(word for path in folders for word in ("--perms", "0755", "--tmpfs", path)),
        *(word for path in files for word in ("--ro-bind", _NOTHING, path)),
        *(word for path in view.shown for word in ("--ro-bind", path, path)),
        *(word for path in folders for word in ("--remount-ro", path)),
        *(word for path, other in view.replaced.items() for word in ("--ro-bind", other, path)),
        *("--remount-ro", "/dev", "--chdir", view.workdir, "--"),
        *within(limits),
        *command,
    ]


def _emptied(size: int) -> Iterator[str]:
    for folder in _EMPTY:
        if os.path.isdir(folder) and not os.path.islink(folder):
            yield from ("--perms", "1777", "--size", str(size), "--tmpfs", folder)


def _hidden(view: View) -> Iterator[str]:
    """Those that are there, and would be seen."""
    given = (*view.writable, *view.read_only)
    for path in sorted({os.path.realpath(path) for path in view.hidden}):
        is_gone = _is_in(path, _EMPTY) and not _is_in(path, given)
        if os.path.exists(path) and not is_gone:
            yield path


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def secret_places(home: str) -> Iterator[str]:
    """Where people usually keep keys, as far as they are there."""
    for name in (*_SECRET_FOLDERS, *_SECRET_FILES):
        if os.path.exists(path := f"{home}/{name}"):
            yield path


def listening_sockets() -> Iterator[str]:
    """Doors to whatever runs outside (tmux, Docker, munge, an agent of ssh): to connect is not to write, so a read-only
    mount would leave them open. Those without a place among the files are not found here."""
    with open("/proc/net/unix") as file:
        for line in file:
            words = line.split(maxsplit=7)
            if len(words) == 8 and words[3] == _LISTENS and words[7].startswith("/"):
                yield words[7].rstrip("\n")
