"""The current cluster: detected, or configured manually, which overrides detection."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from labwright.compute.cluster import machine
from labwright.compute.cluster.detect import describe, detect, inspect, query_gpus, with_leases
from labwright.domain.cluster import Cluster, ClusterSource, ClusterStatus, ClusterType, advise_gpuwrap, advise_parallel
from labwright.domain.errors import Invalid
from labwright.domain.gpu import Gpu

_FRESH_SECONDS = 2.0
_SLURM_FRESH_SECONDS = 60.0  # partitions and nodes change rarely, and the controller is shared


class ClusterState:
    def __init__(self, lease_dir: str) -> None:
        self._lease_dir = lease_dir
        self._lock = threading.Lock()  # one query of the driver at a time
        self._detected_at = 0.0
        self.slurm_expected = False  # Slurm has answered here before
        self.cards_expected: tuple[Gpu, ...] = ()  # from the last answer of the driver
        self.current = Cluster(type=ClusterType.CPU_ONLY)

    def detect(self) -> Cluster:
        with self._lock:
            self.current = self._detect()
            return self.current

    def _detect(self) -> Cluster:
        """Detect. If the driver does not answer, keep the known GPUs and mark the cluster as degraded."""
        seen = detect(self._lease_dir, slurm_expected=self.slurm_expected)
        self._detected_at = time.monotonic()
        if seen.type is ClusterType.SLURM and seen.status is not ClusterStatus.OFFLINE:
            self.slurm_expected = True
        if seen.gpus or not _is_silent_driver(seen):
            self.cards_expected = seen.gpus
        return _keep_known(seen, self.current, self.cards_expected)

    def fresh(self) -> Cluster:
        """Return the cluster with current GPU use. Readers within two seconds share one query of the driver."""
        if self.current.type is ClusterType.SLURM:
            # Do not wait for another thread's query: with the controller down it takes long.
            is_old = time.monotonic() - self._detected_at > _SLURM_FRESH_SECONDS
            if is_old and self._lock.acquire(blocking=False):
                try:
                    self.current = self._detect_slurm()
                finally:
                    self._lock.release()
            return self.current
        if not self.current.gpus:
            return self.current
        with self._lock:
            if time.monotonic() - self._detected_at > _FRESH_SECONDS:
                seen = self._detect()
                self.current = replace(self.current, gpus=seen.gpus, status=seen.status, evidence=seen.evidence)
                self._update_shared(seen.shared_machine)
            return replace(self.current, gpus=with_leases(self.current.gpus, self._lease_dir))

    def sample_gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs, and update whether the machine is shared. Called every few seconds.

        Slurm and a driver without known GPUs are queried only if they did not answer before, so that nobody has to
        detect again by hand.
        """
        with self._lock:
            is_silent = _is_silent_driver(self.current) and self.current.source is ClusterSource.DETECTED
            if is_silent or self.current.status is ClusterStatus.OFFLINE:
                self.current = self._detect_slurm() if self.current.type is ClusterType.SLURM else self._detect()
            if not self.current.gpus:
                return ()
            self._update_shared(bool(machine.other_users()))
        return query_gpus(self._lease_dir)

    def _update_shared(self, is_shared: bool) -> None:
        """Update whether the machine is shared: users come and go. A value set by hand stays."""
        if self.current.source is ClusterSource.DETECTED and self.current.shared_machine != is_shared:
            advice = advise_gpuwrap(self.current.type, is_shared)
            self.current = replace(self.current, shared_machine=is_shared, gpuwrap=advice)

    def _detect_slurm(self) -> Cluster:
        self._detected_at = time.monotonic()
        seen = _keep_known(describe(ClusterType.SLURM, inspect(self._lease_dir)), self.current, ())
        return replace(seen, source=self.current.source, parallel_by_hand=self.current.parallel_by_hand)

    def set_by_hand(
        self, kind: ClusterType, parallel: int | None, shared: bool | None, *, must_answer: bool = True
    ) -> Cluster:
        """Set the type by hand; the rest is still detected. Raises Invalid for a type that is impossible here."""
        findings = inspect(self._lease_dir)
        if must_answer and kind is ClusterType.SLURM and not findings.slurm.answers:
            raise Invalid(
                f"Slurm does not answer on this machine: {findings.slurm.said.removesuffix('.')}.",
                hint="Choose local_gpu or cpu_only; or start the server where sinfo works (SLURM_CONF).",
            )
        if must_answer and kind is ClusterType.LOCAL_GPU and not findings.gpus:
            raise Invalid("No GPU driver answers on this machine.", hint="Choose cpu_only, or repair the driver.")
        seen = describe(kind, findings)
        is_shared = seen.shared_machine if shared is None else shared
        with self._lock:
            self.current = replace(
                seen,
                source=ClusterSource.MANUAL,
                shared_machine=is_shared,
                gpuwrap=advise_gpuwrap(kind, is_shared),
                parallel_by_hand=parallel,
            )
            return self.current


def _is_silent_driver(seen: Cluster) -> bool:
    """Return whether there is a driver that does not answer: only then is a machine without GPUs degraded."""
    return seen.type is ClusterType.CPU_ONLY and seen.status is ClusterStatus.DEGRADED


def _keep_known(seen: Cluster, known: Cluster, cards: tuple[Gpu, ...]) -> Cluster:
    """Keep known GPUs and partitions if the driver or Slurm does not answer, with the new status.

    Without known GPUs, runs would start beside each other on GPUs without a lease.
    """
    if seen.status is ClusterStatus.OFFLINE and known.partitions:
        return replace(known, status=seen.status, evidence=seen.evidence)
    if not cards or not _is_silent_driver(seen):
        return seen
    kind = ClusterType.LOCAL_GPU
    return replace(
        seen,
        type=kind,
        gpus=cards,
        gpu_count=len(cards),
        gpuwrap=advise_gpuwrap(kind, seen.shared_machine),
        max_parallel=advise_parallel(kind, len(cards), seen.cpu_count),
    )
