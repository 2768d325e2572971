"""Probe a Slurm cluster: its partitions and nodes, and its dialect (version, largest array, accounting).

We use `squeue -o` and `sinfo -o`, which are the same in Slurm 22.05 to 26.05. The fields of `--json` change with each
version. Tested with 22.05, 24.11 and 26.05.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent
from labwright.domain.cluster import Node, Partition

SINFO_TIMEOUT_SECONDS = 10.0
_SEPARATOR = "\x1f"
# node, partition, up or down, time limit, CPUs, memory in MB, gres, state, CPUs as allocated/idle/other/total, reason
_FIELDS = ("%N", "%P", "%a", "%l", "%c", "%m", "%G", "%T", "%C", "%E")
_GPUS_ALLOCATED = "NodeList:200,GresUsed:400"
_NO_REASON = frozenset({"none", "(null)", "n/a"})
_LONGEST_REASON = 200
_GPUS = re.compile(r"(?:^|,)gpu(?::[^:,(]+)*?:(\d+)(?=[(,]|$)")
_CONFIGURATIONS = (
    "/etc/slurm/slurm.conf",
    "/etc/slurm-llnl/slurm.conf",  # Debian and Ubuntu before 2021
    "/usr/local/etc/slurm.conf",
    "/opt/slurm/etc/slurm.conf",
    "/run/slurm/conf/slurm.conf",  # written by nodes that get it from the controller
)
_UNWELL = ("down", "drain", "fail", "error", "unknown", "inval", "not_responding")
_MARKS = "*~#!%$@^-+"  # sinfo appends these to a state; only `*` means that the node does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node in one partition, as sinfo lists it."""

    node: str
    partition: str
    is_default: bool
    availability: str
    time_limit_seconds: int | None
    cpus: int
    memory_mb: int
    gpus: int
    state: str
    cpus_allocated: int = 0
    gpus_allocated: int | None = None
    reason: str = ""

    @property
    def is_unwell(self) -> bool:
        return self.state.endswith("*") or self.state.rstrip(_MARKS).startswith(_UNWELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmProbe:
    """The result of a probe; `said` is shown as evidence."""

    answers: bool = False
    is_configured: bool = False
    said: str = ""
    version: str = ""
    rows: tuple[NodeRow, ...] = ()

    @property
    def nodes(self) -> dict[str, NodeRow]:
        return {row.node: row for row in self.rows}

    @property
    def machines(self) -> tuple[Node, ...]:
        """Each node once, sorted by name."""
        by_name: dict[str, list[NodeRow]] = {}
        for row in self.rows:
            by_name.setdefault(row.node, []).append(row)
        return tuple(_machine(by_name[name]) for name in sorted(by_name, key=_natural_order))

    @property
    def unwell(self) -> list[str]:
        return [f"{row.node} is {row.state}" for row in self.nodes.values() if row.is_unwell]

    @property
    def gpu_count(self) -> int:
        return sum(row.gpus for row in self.nodes.values())

    @property
    def cpu_count(self) -> int:
        return sum(row.cpus for row in self.nodes.values())

    @property
    def memory_mb(self) -> int:
        return sum(row.memory_mb for row in self.nodes.values())

    @property
    def well(self) -> SlurmProbe:
        """The same without the nodes on which nothing can start now."""
        return replace(self, rows=tuple(row for row in self.rows if not row.is_unwell))

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The default partition first; sinfo's order changes with the state of the nodes."""
        by_name: dict[str, list[NodeRow]] = {}
        for row in self.rows:
            by_name.setdefault(row.partition, []).append(row)
        partitions = [_partition(by_name[name]) for name in sorted(by_name)]
        return tuple(sorted(partitions, key=lambda partition: not partition.default))


def probe_slurm(environ: Mapping[str, str] = os.environ) -> SlurmProbe:
    """Probe Slurm. Takes at most three timeouts."""
    commands = SlurmCommands.from_environment(environ)
    if not commands.is_installed("sinfo"):
        return SlurmProbe(said="sinfo is not installed")
    configured = "SLURM_CONF" in environ or any(os.path.exists(path) for path in _CONFIGURATIONS)
    listing = ["sinfo", "-h", "-N", "-o", _SEPARATOR.join(_FIELDS)]
    try:
        rows = read_rows(commands.call(*listing, timeout=SINFO_TIMEOUT_SECONDS))
        rows = _with_gpus_allocated(commands, rows)
        version = probe_version(commands)
    except SlurmSilent as error:  # a message about the controller means that sinfo has found a configuration
        return SlurmProbe(said=error.message, is_configured=configured or not error.is_hanging)
    except SlurmRefused as error:
        return SlurmProbe(said=error.message, is_configured=configured)
    said = f"{version}: {len({row.node for row in rows})} node(s), {len({row.partition for row in rows})} partition(s)"
    return SlurmProbe(answers=bool(rows), is_configured=configured, said=said, version=version, rows=tuple(rows))


def probe_version(commands: SlurmCommands) -> str:
    """Return a text such as "slurm 24.05.1" or Debian's "slurm-wlm 22.05.8"."""
    return commands.call("sinfo", "-V", timeout=SINFO_TIMEOUT_SECONDS).strip()


def _with_gpus_allocated(commands: SlurmCommands, rows: list[NodeRow]) -> list[NodeRow]:
    """Add the number of allocated GPUs, or leave it None if sinfo does not have the field."""
    if not any(row.gpus for row in rows):
        return rows
    try:
        listing = commands.call("sinfo", "-h", "-N", "-O", _GPUS_ALLOCATED, timeout=SINFO_TIMEOUT_SECONDS)
    except SlurmRefused:
        return rows
    used = read_gpus_allocated(listing)
    return [replace(row, gpus_allocated=used.get(row.node)) for row in rows]


def read_gpus_allocated(text: str) -> dict[str, int]:
    """Return the number of allocated GPUs by node."""
    lines = (line.split(maxsplit=1) for line in text.split("\n"))
    return {line[0]: count_gpus(line[1].strip()) for line in lines if len(line) == 2}


def read_rows(text: str) -> list[NodeRow]:
    rows = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split(_SEPARATOR)]
        if len(cells) != len(_FIELDS):
            continue
        node, partition, availability, limit, cpus, memory, gres, state, by_use, reason = cells
        row = NodeRow(
            node=node,
            partition=partition.rstrip("*"),
            is_default=partition.endswith("*"),
            availability=availability,
            time_limit_seconds=read_duration(limit),
            cpus=_leading_number(cpus),
            memory_mb=_leading_number(memory),
            gpus=count_gpus(gres),
            state=state.lower(),
            cpus_allocated=_leading_number(by_use),
            reason="" if reason.lower() in _NO_REASON else reason[:_LONGEST_REASON],
        )
        rows.append(row)
    return rows


def _natural_order(name: str) -> list[str | int]:
    """Sort key that puts node2 before node10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _leading_number(text: str) -> int:
    """Parse `16`, or `16+` if the nodes of a line differ."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match else 0


def count_gpus(gres: str) -> int:
    """Count GPUs in `gpu:2` or `gpu:a100:4(S:0-1),shard:8`; `(null)` has none."""
    return sum(int(count) for count in _GPUS.findall(re.sub(r"\([^)]*\)", "", gres)))


def read_duration(text: str) -> int | None:
    """Parse `[days-]hours:minutes:seconds`, or a part of it, as seconds. None for `infinite`."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _partition(rows: list[NodeRow]) -> Partition:
    return Partition(
        name=rows[0].partition,
        default=rows[0].is_default,
        state=rows[0].availability,
        time_limit_seconds=rows[0].time_limit_seconds,
        nodes=len(rows),
        nodes_unwell=sum(row.is_unwell for row in rows),
        cpus=sum(row.cpus for row in rows),
        gpus=sum(row.gpus for row in rows),
    )


def _machine(rows: list[NodeRow]) -> Node:
    last = rows[-1]
    return Node(
        name=last.node,
        state=last.state,
        is_well=not last.is_unwell,
        reason=last.reason,
        partitions=tuple(row.partition for row in rows),
        cpus=last.cpus,
        cpus_allocated=last.cpus_allocated,
        memory_mb=last.memory_mb,
        gpus=last.gpus,
        gpus_allocated=last.gpus_allocated,
    )


DEFAULT_ARRAY_SIZE = 1001
_VERSION = re.compile(r"(\d+)\.(\d+)")
_CPUS_FORGOTTEN, _CPUS_REMEMBERED = (22, 5), (23, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    version: tuple[int, int] | None = None  # None if unknown
    max_array_size: int = DEFAULT_ARRAY_SIZE
    keeps_accounts: bool = False

    @property
    def srun_forgets_cpus(self) -> bool:
        """From 22.05 until 23.11, srun ignored `--cpus-per-task` of sbatch and read only its own variable."""
        return self.version is not None and _CPUS_FORGOTTEN <= self.version < _CPUS_REMEMBERED


class DialectProbe:
    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._known: Dialect | None = None

    def get(self) -> Dialect:
        """Return the dialect, or the defaults while Slurm does not answer."""
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
        max_array_size=_max_array_size(configuration),
        keeps_accounts=accounts.startswith("accounting_storage/") and not accounts.endswith("/none"),
    )


def controller_start(commands: SlurmCommands) -> float | None:
    """Return when the controller was started, or None if unknown."""
    try:
        return datetime.fromisoformat(_setting("BOOT_TIME", commands.call("scontrol", "show", "config"))).timestamp()
    except (SlurmSilent, SlurmRefused, ValueError):
        return None


def _max_array_size(configuration: str) -> int:
    """Return how many tasks an array may have, or 1 if arrays are disabled."""
    size = _setting("MaxArraySize", configuration)
    site_limit = re.search(r"\bmax_array_tasks=(\d+)", _setting("SchedulerParameters", configuration))
    allowed = int(size) if size.isdigit() else DEFAULT_ARRAY_SIZE
    return max(1, min(allowed, int(site_limit[1])) if site_limit else allowed)


def read_version(text: str) -> tuple[int, int] | None:
    """Parse "slurm 24.05.1" or Debian's "slurm-wlm 22.05.8"."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2])) if match else None


def _setting(name: str, configuration: str) -> str:
    match = re.search(rf"^{name}\s*=\s*(\S+)", configuration, re.MULTILINE)
    return match[1] if match else ""
