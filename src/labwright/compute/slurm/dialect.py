"""How the Slurm at hand differs from others: its version, how large an array may be, whether it keeps accounts.

Asked once, when it is first needed; while nobody answers, what most clusters have. What we send and read otherwise is
kept to what 22.05 to 26.05 have in common: `squeue -o` and `sinfo -o` instead of `--json`, whose fields change with
each version, and no option that we know to have come or gone. 22.05, 24.11 and 26.05 were run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.probe import probe_version

DEFAULT_ARRAY_SIZE = 1001
_VERSION = re.compile(r"(\d+)\.(\d+)")
_CPUS_FORGOTTEN, _CPUS_REMEMBERED = (22, 5), (23, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    version: tuple[int, int] | None = None  # None: it could not be asked, or made nothing of the question
    max_array_size: int = DEFAULT_ARRAY_SIZE
    keeps_accounts: bool = False

    @property
    def srun_forgets_cpus(self) -> bool:
        """From 22.05 on srun did not take `--cpus-per-task` over from sbatch, but a variable of its own; 23.11 does."""
        return self.version is not None and _CPUS_FORGOTTEN <= self.version < _CPUS_REMEMBERED


class DialectProbe:
    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._known: Dialect | None = None

    def ask(self) -> Dialect:
        if self._known is None:
            try:
                self._known = probe_dialect(self._commands)
            except (SlurmSilent, SlurmRefused):
                return Dialect()
        return self._known


def probe_dialect(commands: SlurmCommands) -> Dialect:
    configuration = commands.call("scontrol", "show", "config")
    accounts = _setting("AccountingStorageType", configuration)
    return Dialect(
        version=read_version(probe_version(commands)),
        max_array_size=_array_size(configuration),
        keeps_accounts=accounts.startswith("accounting_storage/") and not accounts.endswith("/none"),
    )


def controller_start(commands: SlurmCommands) -> float | None:
    """When the controller that answers now was started; None where it does not say so in a way that we can read."""
    try:
        return datetime.fromisoformat(_setting("BOOT_TIME", commands.call("scontrol", "show", "config"))).timestamp()
    except (SlurmSilent, SlurmRefused, ValueError):
        return None


def _array_size(configuration: str) -> int:
    """One where arrays are switched off, by 0; a site may also allow fewer tasks than numbers for them."""
    size = _setting("MaxArraySize", configuration)
    fewer = re.search(r"\bmax_array_tasks=(\d+)", _setting("SchedulerParameters", configuration))
    allowed = int(size) if size.isdigit() else DEFAULT_ARRAY_SIZE
    return max(1, min(allowed, int(fewer[1])) if fewer else allowed)


def read_version(text: str) -> tuple[int, int] | None:
    """Of "slurm 24.05.1" or Debian's "slurm-wlm 22.05.8"."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2])) if match else None


def _setting(name: str, configuration: str) -> str:
    match = re.search(rf"^{name}\s*=\s*(\S+)", configuration, re.MULTILINE)
    return match[1] if match else ""
