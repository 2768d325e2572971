"""What an agent's shell can see: the machine read-only and the project, but no GPUs, scheduler, tokens or servers.

Not restricted: other files that its user may read, and the network.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from labwright.compute.environment import for_jobs, split_secrets
from labwright.compute.lab import Lab
from labwright.compute.notify.channels import PrivateFiles
from labwright.files import write_whole
from labwright.paths import STATE_DIR, ProjectPaths, key_file
from labwright.sandbox.machine import MachineView, listening_sockets, secret_places

_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/munge", "/etc/slurm", "/etc/slurm-llnl")
_DRIVERS = ("/proc/driver/nvidia", "/sys/class/kfd")
_PROJECT_SECRETS = (".env", ".env.local", "*.pem", "*.key", "id_rsa", "id_ed25519", "credentials.json", "secrets.*")
_SIMULATED_DRIVER = "LABWRIGHT_SIM_STATE"
_SLURM_CONFIG = "SLURM_CONF"
_NAME_SERVERS = "/etc/resolv.conf"  # on many machines a link into /run


def view_of(lab: Lab, header: Path, environ: Mapping[str, str], *, writes: bool) -> MachineView:
    project = os.path.realpath(lab.paths.project)
    config = [os.path.realpath(lab.paths.config)] if lab.paths.config.is_file() else []
    resolver = os.path.realpath(_NAME_SERVERS)
    name_servers = [resolver] if resolver.startswith("/run/") and os.path.exists(resolver) else []
    return MachineView(
        writable=(project,) if writes else (),
        read_only=(*([] if writes else [project]), *config),
        hidden=(*_hidden(lab, environ), *_secrets_of(lab.paths.project)),
        shown=(os.path.realpath(header), *name_servers),
        replaced=replacements(lab.paths.shells, environ.get("PATH", os.defpath)),
        workdir=project,
    )


def _hidden(lab: Lab, environ: Mapping[str, str]) -> Iterator[str]:
    home = environ.get("HOME") or os.path.expanduser("~")
    yield from (str(lab.paths.state), lab.settings.lease_dir, *map(str, other_states()))
    yield from (str(lab.paths.database.parent), lab.settings.state_dir or f"{home}/.local/state/labwright")
    yield str(key_file(environ, "any").parent)
    yield from (*secret_places(home), *PrivateFiles(lab.paths)())
    yield from (*_SYSTEM_SECRETS, *_DRIVERS)
    yield from (environ[name] for name in (_SIMULATED_DRIVER, _SLURM_CONFIG) if environ.get(name))
    yield from listening_sockets()


def _secrets_of(project: Path) -> Iterator[str]:
    """Yield files with keys at the top of a project."""
    for name in os.listdir(project):
        if any(fnmatch(name, pattern) for pattern in _PROJECT_SECRETS):
            yield str(project / name)


def other_states() -> set[Path]:
    """Return the state folders of all running servers, whose tokens are secret; none if the kernel shows no locks."""
    lock = f"/{STATE_DIR}/{ProjectPaths(Path('/')).lock.name}"
    return {Path(path).parent for pid in _lock_holders() for path in _open_files(pid) if path.endswith(lock)}


def _lock_holders() -> set[str]:
    try:
        with open("/proc/locks") as file:
            return {words[4] for line in file if (words := line.split())[1] == "FLOCK"}
    except FileNotFoundError:
        return set()


def _open_files(pid: str) -> Iterator[str]:
    """Yield nothing for a process that has ended or belongs to another user: we cannot read its state folder either."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            yield from [os.readlink(entry.path) for entry in entries]
    except OSError:
        return


NOT_HERE = (
    *("sbatch", "srun", "salloc", "sattach", "sbcast", "scontrol", "scancel", "squeue", "sinfo", "sacct", "munge"),
    *("qsub", "bsub", "condor_submit", "nvidia-smi"),
)
_REFUSAL = """\
#!/bin/sh
echo "$(basename "$0"): there are no GPUs and no scheduler in this shell." >&2
echo 'Ask the server: curl -sS -H @"$LABWRIGHT_HEADER" "$LABWRIGHT_URL/cluster"; start runs with POST /runs.' >&2
exit 126
"""
_RUN = "/run"  # empty in the shell
_REAL_PS = f"{_RUN}/ps"
_PS = f"""\
#!/bin/bash
# ps looks itself up in /proc by its pid. In this namespace the pid is another one, so it needs one that exists in both.
for _ in {{1..32}}; do
    ([ -e "/proc/$BASHPID" ] || exit 99; exec {_REAL_PS} "$@")
    code=$?
    [ $code = 99 ] || exit $code
done
# Pid 1 always exists; but in such a namespace all users are nobody.
exec unshare --user --pid --fork {_REAL_PS} "$@"
"""


def replacements(folder: Path, path: str) -> dict[str, str]:
    """Return which file replaces which program: schedulers and nvidia-smi, which do not work here, and `ps`."""
    refusal = _script(folder / "not-here", _REFUSAL)
    return {**dict.fromkeys(_found(NOT_HERE, path), refusal), **_listing(folder, path)}


def _listing(folder: Path, path: str) -> dict[str, str]:
    found = [file for file in _found(["ps"], path) if os.path.basename(file) == "ps"]
    if not found or not os.path.isdir(_RUN) or os.path.islink(_RUN):
        return {}
    return {**dict.fromkeys(found, _script(folder / "ps", _PS)), _REAL_PS: found[0]}


def _found(names: Sequence[str], path: str) -> Iterator[str]:
    """Yield the programs on the PATH, except in folders that are empty in the shell."""
    for folder in path.split(os.pathsep):
        for name in names:
            if (found := shutil.which(name, path=folder)) and not found.startswith(("/tmp/", f"{_RUN}/")):  # noqa: S108
                yield os.path.realpath(found)


def _script(path: Path, text: str) -> str:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, text.encode())
    path.chmod(0o755)
    return str(path)


_LEADS_OUTSIDE = ("SLURM", "SBATCH", "SALLOC", "MUNGE", "LABWRIGHT_", "DBUS_", "DOCKER_", "KRB5", "LD_PRELOAD", "SSH_")
_LEADS_OUTSIDE_BY_NAME = frozenset({"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "KUBECONFIG", "BASH_ENV", "ENV"})
_NO_CARDS = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "NVIDIA_VISIBLE_DEVICES": "void",
}
# Nobody answers a pager or a prompt, and caches in the home folder cannot be written.
_DEFAULTS = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108 - the shell has its own empty /tmp
    "PIP_CACHE_DIR": "/tmp/pip",  # noqa: S108
    "UV_CACHE_DIR": "/tmp/uv",  # noqa: S108
    "UV_LINK_MODE": "copy",
}


def shell_environment(environ: Mapping[str, str], project: Path, url: str, header: Path) -> dict[str, str]:
    """Return the variables of a run, without secrets and without those that point to services outside of the shell."""
    plain, _ = split_secrets(for_jobs(environ, project, sys.prefix))
    kept = {
        name: value
        for name, value in plain.items()
        if name not in _LEADS_OUTSIDE_BY_NAME and not name.startswith(_LEADS_OUTSIDE)
    }
    return {**kept, **_DEFAULTS, **_NO_CARDS, "LABWRIGHT_URL": url, "LABWRIGHT_HEADER": str(header)}
