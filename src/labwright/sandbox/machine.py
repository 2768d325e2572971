"""A read-only view of the whole machine, for commands that may read but not change things.

Unlike a `Fence` this shows everything that is not hidden. Only harmless devices exist, `/tmp` and `/run` are empty, and
other processes can be listed but neither signalled nor inspected.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labwright.sandbox.fences import SandboxLimits, within

_NOTHING = "/dev/null"
_SHM = "/dev/shm"  # noqa: S108 - of the contained command alone
_EMPTY = ("/tmp", "/var/tmp", "/run", _SHM)  # noqa: S108 - likewise
_SECRET_FOLDERS = (".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", ".config/gcloud", ".config/gh")
_SECRET_FILES = (".netrc", ".git-credentials", ".pypirc", ".pgpass", ".bash_history", ".zsh_history")
_LISTENS = "00010000"  # the flag of a listening socket in /proc/net/unix


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """How the view differs from what the user sees. Paths must be real ones, without links."""

    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()  # shown unchanged, even inside empty or writable folders
    hidden: tuple[str, ...] = ()  # files and folders that appear empty
    shown: tuple[str, ...] = ()  # shown even inside hidden folders
    replaced: Mapping[str, str] = field(default_factory=dict)  # file -> its replacement
    workdir: str = "/"


def machine_command(command: Sequence[str], view: MachineView, limits: SandboxLimits) -> list[str]:
    """Return the bwrap command. Its user namespace removes the rights that the same user has over other processes."""
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


def _hidden(view: MachineView) -> Iterator[str]:
    """Yield the paths to hide that exist and would be visible."""
    given = (*view.writable, *view.read_only)
    for path in sorted({os.path.realpath(path) for path in view.hidden}):
        is_gone = _is_in(path, _EMPTY) and not _is_in(path, given)
        if os.path.exists(path) and not is_gone:
            yield path


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def secret_places(home: str) -> Iterator[str]:
    """Yield the existing files and folders in which people usually keep keys."""
    for name in (*_SECRET_FOLDERS, *_SECRET_FILES):
        if os.path.exists(path := f"{home}/{name}"):
            yield path


def listening_sockets() -> Iterator[str]:
    """Yield the sockets of services outside (tmux, Docker, munge, ssh-agent). A read-only mount does not prevent
    connections to them. Abstract sockets, which have no file, are not included."""
    with open("/proc/net/unix") as file:
        for line in file:
            words = line.split(maxsplit=7)
            if len(words) == 8 and words[3] == _LISTENS and words[7].startswith("/"):
                yield words[7].rstrip("\n")
