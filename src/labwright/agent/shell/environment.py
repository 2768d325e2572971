"""The variables of an agent's shell: those of a run, without secrets and without what leads outside."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from labwright.compute.environment import for_jobs, split_secrets

_LEADS_OUTSIDE = ("SLURM", "SBATCH", "SALLOC", "MUNGE", "LABWRIGHT_", "DBUS_", "DOCKER_", "KRB5", "LD_PRELOAD", "SSH_")
_LEADS_OUTSIDE_BY_NAME = frozenset({"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "KUBECONFIG", "BASH_ENV", "ENV"})
_NO_CARDS = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "NVIDIA_VISIBLE_DEVICES": "void",
}
# Nobody answers a pager or a prompt, and caches at home cannot be written.
_MANNERS = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108 - inside it is empty and nobody else's
    "PIP_CACHE_DIR": "/tmp/pip",  # noqa: S108
    "UV_CACHE_DIR": "/tmp/uv",  # noqa: S108
    "UV_LINK_MODE": "copy",
}


def shell_environment(environ: Mapping[str, str], project: Path, url: str, header: Path) -> dict[str, str]:
    plain, _ = split_secrets(for_jobs(environ, project, sys.prefix))
    kept = {name: value for name, value in plain.items() if not _leads_outside(name)}
    return {**kept, **_MANNERS, **_NO_CARDS, "LABWRIGHT_URL": url, "LABWRIGHT_HEADER": str(header)}


def _leads_outside(name: str) -> bool:
    return name in _LEADS_OUTSIDE_BY_NAME or name.startswith(_LEADS_OUTSIDE)
