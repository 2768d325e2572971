"""The cluster as this server believes it to be: detected, or set by hand, which wins."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from labwright.compute.detect import detect, with_leases
from labwright.domain.cluster import (
    Cluster,
    ClusterSource,
    ClusterStatus,
    ClusterType,
    advise_gpuwrap,
    advise_parallel,
)
from labwright.domain.errors import Invalid

_FRESH_SECONDS = 2.0


class ClusterState:
    def __init__(self, lease_dir: str) -> None:
        self._lease_dir = lease_dir
        self._lock = threading.Lock()  # one look at the driver at a time
        self._looked_at = 0.0
        self.current = Cluster(type=ClusterType.CPU_ONLY)

    def detect(self) -> Cluster:
        with self._lock:
            self.current = self._look()
            return self.current

    def _look(self) -> Cluster:
        """A driver that does not answer has not taken the cards away: what was known stays, marked degraded."""
        seen = detect(self._lease_dir)
        self._looked_at = time.monotonic()
        if seen.status is ClusterStatus.DEGRADED and not seen.gpus and self.current.gpus:
            return replace(self.current, status=seen.status, evidence=seen.evidence)
        return seen

    def fresh(self) -> Cluster:
        """With GPU use as it is now; several readers within two seconds share one look at the driver."""
        if not self.current.gpus:
            return self.current
        with self._lock:
            if time.monotonic() - self._looked_at > _FRESH_SECONDS:
                seen = self._look()
                self.current = replace(self.current, gpus=seen.gpus, status=seen.status, evidence=seen.evidence)
            return replace(self.current, gpus=with_leases(self.current.gpus, self._lease_dir))

    def set_by_hand(self, kind: ClusterType, max_parallel: int | None, shared: bool | None) -> Cluster:
        """Detection still tells what cards there are; a type that this machine cannot be is refused."""
        seen = detect(self._lease_dir)
        if kind is ClusterType.SLURM:
            raise Invalid("Slurm does not answer on this machine.", hint="Choose local_gpu or cpu_only.")
        if kind is ClusterType.LOCAL_GPU and not seen.gpus:
            raise Invalid("No GPU driver answers on this machine.", hint="Choose cpu_only, or mend the driver.")
        gpus = seen.gpus if kind is ClusterType.LOCAL_GPU else ()
        is_shared = seen.shared_machine if shared is None else shared
        self.current = replace(
            seen,
            type=kind,
            source=ClusterSource.MANUAL,
            gpus=gpus,
            gpu_count=len(gpus),
            shared_machine=is_shared,
            gpuwrap=advise_gpuwrap(kind, is_shared),
            max_parallel=max_parallel or advise_parallel(kind, len(gpus), seen.cpu_count),
        )
        return self.current
