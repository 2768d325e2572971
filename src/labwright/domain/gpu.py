"""A GPU as the driver and the leases show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    pid: int
    memory_mb: int = 0
    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """Written by the holder into the lease file; another user's words, so never trusted beyond display."""

    run_id: str
    user: str
    pid: int = 0
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    index: int
    uuid: str
    name: str
    memory_total_mb: int
    memory_used_mb: int = 0
    utilization: int = 0
    processes: tuple[GpuProcess, ...] = ()
    lease: LeaseHolder | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "processes": [asdict(process) for process in self.processes]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Gpu:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["processes"] = tuple(GpuProcess(**process) for process in known.get("processes", ()))
        if known.get("lease"):
            known["lease"] = LeaseHolder(**known["lease"])
        return cls(**known)
