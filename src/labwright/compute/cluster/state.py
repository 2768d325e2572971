"""The cluster as this server knows it: detected, or set by hand, which wins."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from labwright.compute.cluster import machine
from labwright.compute.cluster.detect import Looks, describe, detect, look, look_at_gpus, with_leases
from labwright.domain.cluster import Cluster, ClusterSource, ClusterStatus, ClusterType, advise_gpuwrap, advise_parallel
from labwright.domain.errors import Invalid
from labwright.domain.gpu import Gpu

_FRESH_SECONDS = 2.0
_SLURM_FRESH_SECONDS = 60.0  # partitions and nodes change rarely, and the controller is shared


class ClusterState:
    def __init__(self, lease_dir: str) -> None:
        self._lease_dir = lease_dir
        self._lock = threading.Lock()  # one query of the driver at a time
        self._looked_at = 0.0
        self.slurm_expected = False  # Slurm has answered here before
        self.cards_expected: tuple[Gpu, ...] = ()  # from the last answer of the driver
        self.current = Cluster(type=ClusterType.CPU_ONLY)

    def detect(self) -> Cluster:
        with self._lock:
            self.current = self._look()
            return self.current

    def _look(self) -> Cluster:
        """Detect. If the driver does not answer, keep the known GPUs and mark the cluster as degraded."""
        seen = detect(self._lease_dir, slurm_expected=self.slurm_expected)
        self._looked_at = time.monotonic()
        if seen.type is ClusterType.SLURM and seen.status is not ClusterStatus.OFFLINE:
            self.slurm_expected = True
        if seen.gpus or not _is_silent_driver(seen):
            self.cards_expected = seen.gpus
        return _with_what_was_known(seen, self.current, self.cards_expected)

    def fresh(self) -> Cluster:
        """Return the cluster with current GPU use. Readers within two seconds share one query of the driver."""
        if self.current.type is ClusterType.SLURM:
            return self._fresh_slurm()
        if not self.current.gpus:
            return self.current
        with self._lock:
            if time.monotonic() - self._looked_at > _FRESH_SECONDS:
                seen = self._look()
                self.current = replace(self.current, gpus=seen.gpus, status=seen.status, evidence=seen.evidence)
                self._note_company(seen.shared_machine)
            return replace(self.current, gpus=with_leases(self.current.gpus, self._lease_dir))

    def look_around(self) -> tuple[Gpu, ...]:
        """Return the GPUs, and note other users. Called every few seconds, so Slurm is not queried.

        A driver or a controller that did not answer before is queried again, so that nobody has to do that by hand.
        """
        with self._lock:
            if self._is_unanswered:
                self.current = self._slurm_now() if self.current.type is ClusterType.SLURM else self._look()
            if not self.current.gpus:
                return ()
            self._note_company(bool(machine.other_people()))
        return look_at_gpus(self._lease_dir)

    @property
    def _is_unanswered(self) -> bool:
        """Whether the driver or the controller did not answer. Known GPUs are queried anyway."""
        is_hidden = _is_silent_driver(self.current) and self.current.source is ClusterSource.DETECTED
        return is_hidden or self.current.status is ClusterStatus.OFFLINE

    def _note_company(self, is_shared: bool) -> None:
        """Update whether the machine is shared: users come and go. A value set by hand stays."""
        if self.current.source is ClusterSource.DETECTED and self.current.shared_machine != is_shared:
            advice = advise_gpuwrap(self.current.type, is_shared)
            self.current = replace(self.current, shared_machine=is_shared, gpuwrap=advice)

    def _fresh_slurm(self) -> Cluster:
        """Do not wait for another thread's query: with the controller down it takes long."""
        if time.monotonic() - self._looked_at > _SLURM_FRESH_SECONDS and self._lock.acquire(blocking=False):
            try:
                self.current = self._slurm_now()
            finally:
                self._lock.release()
        return self.current

    def _slurm_now(self) -> Cluster:
        self._looked_at = time.monotonic()
        seen = _with_what_was_known(describe(ClusterType.SLURM, look(self._lease_dir)), self.current, ())
        return replace(seen, source=self.current.source, parallel_by_hand=self.current.parallel_by_hand)

    def set_by_hand(
        self, kind: ClusterType, parallel: int | None, shared: bool | None, *, must_answer: bool = True
    ) -> Cluster:
        """Set the type by hand; the rest is still detected. Raises Invalid for a type that is impossible here."""
        looks = look(self._lease_dir)
        if must_answer:
            _refuse_impossible(kind, looks)
        seen = describe(kind, looks)
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


def _with_what_was_known(seen: Cluster, known: Cluster, cards: tuple[Gpu, ...]) -> Cluster:
    """Keep known GPUs and partitions if the driver or Slurm does not answer, with the new status."""
    if seen.status is ClusterStatus.OFFLINE and known.partitions:
        return replace(known, status=seen.status, evidence=seen.evidence)
    return _with_cards(seen, cards) if cards and _is_silent_driver(seen) else seen


def _with_cards(seen: Cluster, cards: tuple[Gpu, ...]) -> Cluster:
    """Add known GPUs: without them runs would start beside each other on GPUs without a lease."""
    kind = ClusterType.LOCAL_GPU
    return replace(
        seen,
        type=kind,
        gpus=cards,
        gpu_count=len(cards),
        gpuwrap=advise_gpuwrap(kind, seen.shared_machine),
        max_parallel=advise_parallel(kind, len(cards), seen.cpu_count),
    )


def _refuse_impossible(kind: ClusterType, looks: Looks) -> None:
    if kind is ClusterType.SLURM and not looks.slurm.answers:
        raise Invalid(
            f"Slurm does not answer on this machine: {looks.slurm.said.removesuffix('.')}.",
            hint="Choose local_gpu or cpu_only; or start the server where sinfo works (SLURM_CONF).",
        )
    if kind is ClusterType.LOCAL_GPU and not looks.gpus:
        raise Invalid("No GPU driver answers on this machine.", hint="Choose cpu_only, or repair the driver.")
