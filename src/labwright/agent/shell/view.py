"""What an agent's shell sees: the machine read-only, the project, and neither cards, scheduler, tokens nor other doors.

Not held back: what its user may read outside of the places below, and the network with all that answers on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from labwright.agent.shell.servers import other_states
from labwright.agent.shell.stand_ins import stand_ins
from labwright.compute.lab import Lab
from labwright.compute.notify.channels import PrivateFiles
from labwright.paths import key_file
from labwright.sandbox.machine import View, listening_sockets, secret_places

_SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/munge", "/etc/slurm", "/etc/slurm-llnl")
_DRIVERS = ("/proc/driver/nvidia", "/sys/class/kfd")
_PROJECT_SECRETS = (".env", ".env.local", "*.pem", "*.key", "id_rsa", "id_ed25519", "credentials.json", "secrets.*")
_SIMULATED_DRIVER = "LABWRIGHT_SIM_STATE"
_SLURM_CONFIG = "SLURM_CONF"
_NAME_SERVERS = "/etc/resolv.conf"  # on many machines a link into /run


def view_of(lab: Lab, header: Path, environ: Mapping[str, str], *, writes: bool) -> View:
    project = os.path.realpath(lab.paths.project)
    config = [os.path.realpath(lab.paths.config)] if lab.paths.config.is_file() else []
    return View(
        writable=(project,) if writes else (),
        read_only=(*([] if writes else [project]), *config),
        hidden=(*_hidden(lab, environ), *_secrets_of(lab.paths.project)),
        shown=(os.path.realpath(header), *_name_servers()),
        replaced=stand_ins(lab.paths.shells, environ.get("PATH", os.defpath)),
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
