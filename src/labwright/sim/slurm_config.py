"""The files of a simulated Slurm: their paths and content."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labwright.domain.errors import Invalid

_CPUS_A_NODE = 4
_MEMORY_A_NODE_MB = 4000
_PORTS = range(10_000, 30_000)  # below the kernel's range for outgoing connections
_CGROUPS_CAN_BE_DISABLED = (24, 5)
_FIRST_TERMINAL = 10  # Slurm needs a device file per GPU: we use terminals that nobody opens


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """Slurm's timeouts, far shorter than on a real cluster."""

    node_silence_seconds: int = 30  # before a node that does not answer is down
    kill_wait_seconds: int = 2  # between TERM and KILL
    keep_ended_seconds: int = 3600  # ended jobs stay visible
    max_array_size: int = 1001


class Layout:
    """Every file of one simulated Slurm."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.daemons_conf = folder / "daemons.conf"
        self.task_prolog = folder / "task-prolog"
        self.gres = folder / "gres.conf"
        self.cgroup = folder / "cgroup.conf"
        self.nodes = folder / "nodes"
        self.munge = folder / "munge"
        self.munge_socket = self.munge / "socket"
        self.logs = folder / "log"
        self.state = folder / "state"
        self.spool = folder / "spool"
        self.pids = folder / "pid"

    def make_folders(self) -> None:
        for part in (self.munge, self.logs, self.state, self.spool, self.pids):
            part.mkdir(exist_ok=True)
        self.munge.chmod(0o700)

    def pid_file(self, name: str) -> Path:
        return self.pids / f"{name}.pid"

    def last_error(self) -> str:
        """Return why the controller did not start, from its log."""
        with contextlib.suppress(FileNotFoundError):
            found = re.findall(r"(?:fatal|error): (.*)", (self.logs / "slurmctld.log").read_text(errors="replace"))
            return found[-1] if found else "its log says nothing"
        return "slurmctld wrote no log"

    def write_gres(self, names: Sequence[str], gpus: int) -> None:
        lines = ["AutoDetect=off"]
        if gpus:
            lines += [f"NodeName={name} Name=gpu Type=sim {_devices(gpus)}" for name in names]
        self.gres.write_text("\n".join(lines) + "\n")

    def write_cgroup(self, version: tuple[int, ...]) -> None:
        """Disable cgroups: a newer slurmd does not start if it cannot create them. An older one does, and does not know
        the setting."""
        if version >= _CGROUPS_CAN_BE_DISABLED:
            self.cgroup.write_text("CgroupPlugin=disabled\n")

    def write_daemons_conf(self) -> None:
        """Write the daemons' configuration: the common one, and where to listen.

        srun must not use it. A node calls srun back at 127.0.0.1, even if the machine's name resolves to 127.0.1.1 as
        on Debian, so srun has to listen on all addresses.
        """
        own = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n" if _own_address() else ""
        self.daemons_conf.write_text(f"Include {self.conf}\n{own}")
        # slurmd would pass its own configuration to its jobs, and so to an srun in one.
        self.task_prolog.write_text(f"#!/bin/sh\necho 'export SLURM_CONF={self.conf}'\n")
        self.task_prolog.chmod(0o755)


def _devices(count: int) -> str:
    last = _FIRST_TERMINAL + count - 1
    if Path(f"/dev/tty{last}").exists():
        return f"File=/dev/tty[{_FIRST_TERMINAL}-{last}]"
    return f"Count={count}"  # the GPUs are counted, but CUDA_VISIBLE_DEVICES is not set


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(_PORTS, k=len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def _own_address() -> str:
    """Return the address of this machine's name, where Slurm's daemons listen: 127.0.1.1 on Debian.

    If the name does not resolve, they listen on all addresses, protected by munge.
    """
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def slurm_conf(layout: Layout, names: Sequence[str], gpus: int, ports: Sequence[int], timers: Timers) -> str:
    address = _own_address()
    settings = {**_identity(layout, ports[0], address), **_behaviour(timers), **_jobs(layout)}
    lines = [f"{name}={value}" for name, value in settings.items()]
    gres = f" Gres=gpu:sim:{gpus}" if gpus else ""
    for name, port in zip(names, ports[1:], strict=True):
        size = f"CPUs={_CPUS_A_NODE} RealMemory={_MEMORY_A_NODE_MB}{gres}"
        place = f"NodeHostname=localhost NodeAddr={address or '127.0.0.1'} Port={port}"
        lines.append(f"NodeName={name} {place} {size} State=UNKNOWN")
    everywhere = f"Nodes={','.join(names)} MaxTime=INFINITE State=UP"
    lines.append(f"PartitionName=main Default=YES {everywhere} GraceTime={timers.kill_wait_seconds}")
    lines.append(f"PartitionName=debug Nodes={names[0]} MaxTime=10 State=UP")
    lines.append(f"PartitionName=urgent {everywhere} PriorityTier=10 PreemptMode=off")  # preempts other jobs
    return "\n".join(lines) + "\n"


def _identity(layout: Layout, port: int, address: str) -> dict[str, object]:
    user = _own_user()
    return {
        "ClusterName": "sim",
        "SlurmctldHost": f"localhost({address or '127.0.0.1'})",
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "CredType": "cred/munge",
        "SlurmctldPort": port,
        "SlurmctldPidFile": layout.pid_file("slurmctld"),
        "SlurmdPidFile": layout.pid_file("slurmd-%n"),
        "SlurmctldLogFile": layout.logs / "slurmctld.log",
        "SlurmdLogFile": layout.logs / "slurmd-%n.log",
        "StateSaveLocation": layout.state,
        "SlurmdSpoolDir": layout.spool / "%n",
    }


def _own_user() -> str:
    """Return the user of this process, as Slurm does: a variable may name another."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise Invalid(
            f"Slurm needs a user name, and this system has none for user id {os.getuid()}.",
            hint="Add one to /etc/passwd, or run it as another user.",
        ) from None


def _behaviour(timers: Timers) -> dict[str, object]:
    return {
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": _MEMORY_A_NODE_MB // _CPUS_A_NODE,  # the sidecar uses a part of it
        "GresTypes": "gpu",
        "ReturnToService": 2,
        "SlurmctldTimeout": 30,
        "SlurmdTimeout": timers.node_silence_seconds,
        "InactiveLimit": 0,
        "KillWait": timers.kill_wait_seconds,
        "MinJobAge": timers.keep_ended_seconds,
        "MaxJobCount": 20_000,
        "MaxArraySize": timers.max_array_size,
        "SlurmdParameters": "config_overrides",  # use the configured sizes of nodes, not those of this machine
        "RebootProgram": "/bin/true",
        "MailProg": "/bin/true",
    }


def _jobs(layout: Layout) -> dict[str, object]:
    return {
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": 1,
        "JobAcctGatherParams": "OverMemoryKill",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": layout.logs / "jobcomp.log",
        "AccountingStorageType": "accounting_storage/none",
        "MpiDefault": "none",
        "TaskProlog": layout.task_prolog,
    }
