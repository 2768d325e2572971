"""What an agent's shell sees: the machine read-only, the project, and neither cards, scheduler, tokens nor other doors.

Not held back: what its user may read outside of the places below, and the network with all that answers on it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from labwright.agent.shell.servers import other_states
from labwright.compute.lab import Lab
from labwright.compute.notify.channels import PrivateFiles
from labwright.files import write_whole
from labwright.paths import key_file
from labwright.sandbox.machine import View, listening_sockets, secret_places

_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/munge", "/etc/slurm", "/etc/slurm-llnl")
_DRIVERS = ("/proc/driver/nvidia", "/sys/class/kfd")
_PROJECT_SECRETS = (".env", ".env.local", "*.pem", "*.key", "id_rsa", "id_ed25519", "credentials.json", "secrets.*")
_SIMULATED_DRIVER = "LABWRIGHT_SIM_STATE"
_SLURM_CONFIG = "SLURM_CONF"
_NAME_SERVERS = "/etc/resolv.conf"  # on many machines a link into /run
NOT_HERE = (
    *("sbatch", "srun", "salloc", "sattach", "sbcast", "scontrol", "scancel", "squeue", "sinfo", "sacct", "munge"),
    *("qsub", "bsub", "condor_submit", "nvidia-smi"),
)
_SAYING = """\
#!/bin/sh
echo "$(basename "$0"): there are no GPUs and no scheduler in this shell." >&2
echo 'Look with: curl -sS -H @"$LABWRIGHT_HEADER" "$LABWRIGHT_URL/cluster"; start runs with POST /runs.' >&2
exit 126
"""


def view_of(lab: Lab, header: Path, environ: Mapping[str, str], *, writes: bool) -> View:
    project = os.path.realpath(lab.paths.project)
    config = [os.path.realpath(lab.paths.config)] if lab.paths.config.is_file() else []
    return View(
        writable=(project,) if writes else (),
        read_only=(*([] if writes else [project]), *config),
        hidden=(*_hidden(lab, environ), *_secrets_of(lab.paths.project)),
        shown=(os.path.realpath(header), *_name_servers()),
        replaced=dict.fromkeys(_programs(environ), str(_stand_in(lab))),
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
    """Files of keys that lie at the top of a project."""
    for name in os.listdir(project):
        if any(fnmatch(name, pattern) for pattern in _PROJECT_SECRETS):
            yield str(project / name)


def _name_servers() -> tuple[str, ...]:
    real = os.path.realpath(_NAME_SERVERS)
    return (real,) if real.startswith("/run/") and os.path.exists(real) else ()


def _programs(environ: Mapping[str, str]) -> Iterator[str]:
    """Wherever on the PATH they lie; not those in places that are empty in there."""
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        for name in NOT_HERE:
            if (found := shutil.which(name, path=folder)) and not found.startswith(("/tmp/", "/run/")):  # noqa: S108
                yield os.path.realpath(found)


def _stand_in(lab: Lab) -> Path:
    """What answers in their place."""
    path = lab.paths.shells / "not-here"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, _SAYING.encode())
        path.chmod(0o755)
    return path
