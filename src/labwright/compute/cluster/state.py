"""The cluster as this server believes it to be: detected, or set by hand, which wins."""

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
_SLURM_FRESH_SECONDS = 60.0  # partitions and nodes change rarely, and the controller is everybody's


class ClusterState:
    def __init__(self, lease_dir: str) -> None:
        self._lease_dir = lease_dir
        self._lock = threading.Lock()  # one look at the driver at a time
        self._looked_at = 0.0
        self.slurm_expected = False  # it has answered here before
        self.cards_expected: tuple[Gpu, ...] = ()  # as the driver named them when it answered last
        self.current = Cluster(type=ClusterType.CPU_ONLY)

    def detect(self) -> Cluster:
        with self._lock:
            self.current = self._look()
            return self.current

    def _look(self) -> Cluster:
        """A driver that does not answer has not taken the cards away: what was known stays, marked degraded."""
        seen = detect(self._lease_dir, slurm_expected=self.slurm_expected)
        self._looked_at = time.monotonic()
        if seen.type is ClusterType.SLURM and seen.status is not ClusterStatus.OFFLINE:
            self.slurm_expected = True
        if seen.gpus or not _is_silent_driver(seen):
            self.cards_expected = seen.gpus
        return _with_what_was_known(seen, self.current, self.cards_expected)

    def fresh(self) -> Cluster:
        """With GPU use as it is now; several readers within two seconds share one look at the driver."""
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
        """The cards, and who else is here, every few seconds, day and night: Slurm is not asked, and nothing is without
        cards. Only a driver or a controller that did not answer is asked again: nobody has to do that by hand."""
        with self._lock:
            if self._is_unanswered:
                self.current = self._slurm_now() if self.current.type is ClusterType.SLURM else self._look()
            if not self.current.gpus:
                return ()
            self._note_company(bool(machine.other_people()))
        return look_at_gpus(self._lease_dir)

    @property
    def _is_unanswered(self) -> bool:
        """Cards that a driver told of before are looked at anyway."""
        is_hidden = _is_silent_driver(self.current) and self.current.source is ClusterSource.DETECTED
        return is_hidden or self.current.status is ClusterStatus.OFFLINE

    def _note_company(self, is_shared: bool) -> None:
        """People come and go while the server runs; what was set by hand stays."""
        if self.current.source is ClusterSource.DETECTED and self.current.shared_machine != is_shared:
            advice = advise_gpuwrap(self.current.type, is_shared)
            self.current = replace(self.current, shared_machine=is_shared, gpuwrap=advice)

    def _fresh_slurm(self) -> Cluster:
        """Nobody waits for somebody else's look: a controller that is down takes its time."""
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
        """Detection still tells what there is; a type that this machine cannot be is refused."""
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
    """A machine without cards is degraded only where a driver is there and does not answer."""
    return seen.type is ClusterType.CPU_ONLY and seen.status is ClusterStatus.DEGRADED


def _with_what_was_known(seen: Cluster, known: Cluster, cards: tuple[Gpu, ...]) -> Cluster:
    """Silence takes nothing away: cards and partitions that were there before stay, with the new health."""
    if seen.status is ClusterStatus.OFFLINE and known.partitions:
        return replace(known, status=seen.status, evidence=seen.evidence)
    return _with_cards(seen, cards) if cards and _is_silent_driver(seen) else seen


def _with_cards(seen: Cluster, cards: tuple[Gpu, ...]) -> Cluster:
    """Without them runs would begin beside each other on cards that nobody leased."""
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
        raise Invalid("No GPU driver answers on this machine.", hint="Choose cpu_only, or mend the driver.")
