"""Build the command lines that contain another command: what it sees, what it may use, as which user it runs."""

from __future__ import annotations

import os
import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

SCRATCH = "/scratch"
_TMP, _SHM = "/tmp", "/dev/shm"  # noqa: S108 - of the contained command alone
# The files of /etc that programs need to start; nothing that names people or secrets.
_ETC = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/mime.types",
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SPARE_UIDS = (61184, 65519)  # reserved by systemd for dynamic users, who own no files
_SHARED_MEMORY = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What a contained command sees."""

    read_only: Mapping[str, str] = field(default_factory=dict)  # path here -> path inside
    writable: Mapping[str, str] = field(default_factory=dict)  # the same; besides scratch
    workdir: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    wall_seconds: float = 120.0
    cpu_seconds: int = 60
    memory_mb: int = 4096
    processes: int = 64
    scratch_mb: int = 256
    open_files: int = 256
    output_bytes: int = 1 << 20


def bubblewrap_command(command: Sequence[str], fence: Fence, limits: SandboxLimits) -> list[str]:
    """Return the bwrap command. As root, root makes the mounts, as it can reach all folders, and drops its rights."""
    is_root = os.geteuid() == 0
    return [
        "bwrap",
        *(_ROOTS_NAMESPACES if is_root else _USERS_NAMESPACES),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *(("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if is_root else ()),
        *_system_mounts(),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(_SHARED_MEMORY), "--tmpfs", _SHM, "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(limits.scratch_mb << 20), "--tmpfs", SCRATCH),
        *("--symlink", SCRATCH.lstrip("/"), _TMP),
        *_mounts(fence.read_only, "--ro-bind"),
        *_mounts(fence.writable, "--bind"),
        *("--remount-ro", "/", "--chdir", fence.workdir, "--"),
        *(_as_nobody() if is_root else ()),
        *within(limits),
        *command,
    ]


_USERS_NAMESPACES = ("--unshare-all",)
_ROOTS_NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


def limits_command(command: Sequence[str], _fence: Fence, limits: SandboxLimits) -> list[str]:
    return [*(_as_nobody() if os.geteuid() == 0 else ()), *within(limits), *command]


def _system_mounts() -> list[str]:
    found: list[str] = []
    for folder in _SYSTEM:
        if os.path.islink(folder):
            found += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            found += ["--ro-bind", folder, folder]
    return found + [part for path in _ETC if os.path.exists(path) for part in ("--ro-bind", path, path)]


def _mounts(folders: Mapping[str, str], bind: str) -> list[str]:
    """Mount outer folders first, so that none hides an inner one, with parents that everybody may enter."""
    mounts: list[str] = []
    for here, there in sorted(folders.items(), key=lambda item: item[1]):
        for parent in reversed(PurePosixPath(there).parents[:-1]):
            mounts += ["--perms", "0755", "--dir", str(parent)]
        mounts += [bind, here, there]
    return mounts


def _as_nobody() -> list[str]:
    """Switch to a random spare user: root has no process limit, and processes of a real user would count too."""
    user = str(random.SystemRandom().randint(*_SPARE_UIDS))
    rights = ("--clear-groups", "--no-new-privs", "--inh-caps=-all")
    return ["setpriv", "--reuid", user, "--regid", user, *rights, "--"]


def within(limits: SandboxLimits) -> list[str]:
    """Return the prlimit command. Memory counts what is allocated, as libraries map gigabytes that they never use."""
    return [
        "prlimit",
        f"--cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}",  # a signal first, then a kill
        f"--data={limits.memory_mb << 20}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.scratch_mb << 20}",
        f"--nofile={limits.open_files}",
        "--core=0",
        "--",
    ]


NO_SANDBOX = "labwright: bubblewrap does not work on"  # and the machine's name


def only_where_it_works(command: str) -> str:
    """Return a shell line that runs the command if bubblewrap works on that machine, else prints a message."""
    tried = shlex.join(bubblewrap_command(["/bin/true"], Fence(), SandboxLimits()))
    return f'{tried} || {{ echo "{NO_SANDBOX} $(uname -n)"; exit 1; }}; {command}'
