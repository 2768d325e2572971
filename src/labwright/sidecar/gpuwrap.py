"""The gate before a launch: lease the cards, check the driver for foreign processes, and wait.

After a failure, `judge_failure` says whether the GPU was the reason. This is not a fence: a process that takes no lease
can still use a card later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from labwright.domain.gpu import (
    DEVICE_BUSY,
    GPU_ERROR,
    OUT_OF_MEMORY,
    BusyLimits,
    Gpu,
    GpuProcess,
    by_preference,
    foreign_on,
    kept_words,
    lease_words,
    resolve_names,
    why_busy,
)
from labwright.gpu.lease import Contended, Lease, LeaseWaiter, take_named
from labwright.gpu.lease_dir import LeaseDirError
from labwright.gpu.probe import Detection, run_detector

_DETECTOR_SECONDS = 8.0
_SAMPLES = 3  # utilization fluctuates: a single 0 does not mean idle
_FRESH_SECONDS = 0.3
_LEASE_POLL_SECONDS = 0.05
_FOREIGN_POLL_SECONDS = 1.0  # well below the time after which a silent ticket expires
_SETTLE_SECONDS = 0.5
_REFUSALS_TO_SETTLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    run_id: str
    user: str
    count: int
    lease_dir: str
    check_foreign: bool  # also check the driver for processes that take no lease
    allowed: tuple[str, ...] = ()  # the only cards this server may use; all if empty
    named: tuple[str, ...] = ()  # cards that the command names itself: leased if free, never waited for
    retries: int = -1
    retry_delay_seconds: float = 10.0
    ageing_seconds: float = 30.0
    busy_memory_mb: int = 1024
    busy_utilization: int = 10
    pynvml_dir: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GpuRequest:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, **{name: tuple(known.get(name, ())) for name in ("allowed", "named")}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    lease: Lease
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    reason: str
    holders: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    message: str
    reason: str = "no_gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFailure:
    reason: str  # gpu_contention, cuda_oom or gpu_error
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Avoidance:
    """A card with a foreign process. It is `settled` once that is more than the trace of the card's last run."""

    until: float
    settled: bool
    obstacle: dict[str, Any]


class GpuGate:
    """Call `attempt` until it grants or gives up, sleeping `poll_seconds` in between."""

    def __init__(self, request: GpuRequest) -> None:
        self.poll_seconds = _LEASE_POLL_SECONDS
        self._request = request
        self._limits = BusyLimits(memory_mb=request.busy_memory_mb, utilization=request.busy_utilization)
        self._waiter = LeaseWaiter(
            request.lease_dir,
            run_id=request.run_id,
            user=request.user,
            count=request.count,
            ageing_seconds=request.ageing_seconds,
        )
        self._detection = Detection(source="none")
        self._detected_at = float("-inf")
        self._avoid: dict[str, _Avoidance] = {}
        self._refusals: dict[str, int] = {}  # how often in a row the driver showed a foreign process on a card
        self._tries = 0
        self._next_try = float("-inf")

    def attempt(self) -> Granted | Busy | GaveUp:
        """Take one step. It takes no longer than the detector's timeout."""
        if time.monotonic() >= self._next_try:  # tries are counted by time, so that polling for a lease uses up none
            self._tries += 1
            self._next_try = time.monotonic() + self._request.retry_delay_seconds
            self._avoid.clear()
            if self._request.check_foreign or not self._has_enough():
                self._detected_at = float("-inf")  # query the driver again
        try:
            outcome = self._step()
        except LeaseDirError as error:
            return GaveUp(message=f"{error.message} {error.hint}")
        is_settled = all(avoidance.settled for avoidance in self._avoided().values())
        if isinstance(outcome, Busy) and 0 <= self._request.retries < self._tries and is_settled:
            tries = "1 try" if self._tries == 1 else f"{self._tries} tries"
            return GaveUp(message=f"No GPU after {tries}: {outcome.reason}.")
        return outcome

    def close(self) -> None:
        """Leave the queue."""
        self._waiter.close()

    def _step(self) -> Granted | Busy | GaveUp:
        if not self._request.count and not self._request.named:
            return Granted(lease=Lease({}))
        if self._detected_at == float("-inf"):
            self._detect()
        if self._request.named:
            return self._take_named()
        if self._has_enough():
            return self._take()
        count = len(self._detection.gpus)
        if self._detection.errors:  # a driver that fails now may work later
            text = f"{count} of {self._request.count} GPUs found: {'; '.join(self._detection.errors)}"
            return self._busy([{"kind": "driver", "words": text}], _FOREIGN_POLL_SECONDS)
        return GaveUp(message=f"The run requests {self._request.count} GPUs, but this machine has {count}.")

    def _detect(self) -> None:
        samples = _SAMPLES if self._request.check_foreign else 1
        seen = run_detector(_DETECTOR_SECONDS, samples, pynvml_dir=self._request.pynvml_dir)
        allowed = () if self._request.named else self._request.allowed
        self._detection = replace(seen, gpus=tuple(gpu for gpu in seen.gpus if not allowed or gpu.uuid in allowed))
        self._detected_at = time.monotonic()

    def _has_enough(self) -> bool:
        return len(self._detection.gpus) >= max(1, self._request.count)

    def _take_named(self) -> Granted:
        gpus, unknown = resolve_names(self._detection.gpus, self._request.named)
        warnings = [_unknown_gpu_warning(name) for name in unknown]
        lease, taken = take_named(
            self._request.lease_dir,
            [gpu.uuid for gpu in gpus],
            run_id=self._request.run_id,
            user=self._request.user,
        )
        crowded = [
            lease_words(gpu, taken[gpu.uuid]) if gpu.uuid in taken else why_busy(gpu, self._limits)
            for gpu in gpus
            if gpu.uuid in taken or foreign_on(gpu)
        ]
        warnings += [f"{why}; the command uses it anyway." for why in crowded]
        lease.make_inheritable()
        return Granted(lease=lease, warnings=tuple(warnings))

    def _take(self) -> Granted | Busy:
        """Lease first, then query the driver: a process that it shows on a leased card is foreign."""
        while True:
            usable = [gpu for gpu in by_preference(self._detection.gpus) if gpu.uuid not in self._avoided()]
            taken = self._waiter.try_take([gpu.uuid for gpu in usable])
            if isinstance(taken, Contended):
                return self._wait(taken, usable)
            if self._is_clean(taken):
                taken.make_inheritable()
                return Granted(lease=taken)

    def _wait(self, contended: Contended, usable: Sequence[Gpu]) -> Busy:
        for uuid in contended.holders:
            self._refusals.pop(uuid, None)  # processes on it belong to the holder
        leased = [_lease_obstacle(gpu, contended) for gpu in usable if gpu.uuid in contended.holders | contended.kept]
        avoided = self._avoided()
        soonest = min((avoidance.until for avoidance in avoided.values()), default=self._next_try)
        until_check = min(max(soonest - time.monotonic(), _LEASE_POLL_SECONDS), _FOREIGN_POLL_SECONDS)
        poll = _LEASE_POLL_SECONDS if leased else until_check
        return self._busy([*leased, *(avoidance.obstacle for avoidance in avoided.values())], poll)

    def _is_clean(self, lease: Lease) -> bool:
        """Return whether the driver shows no foreign process on the leased cards. Release them otherwise."""
        clean = False
        try:
            clean = not self._request.check_foreign or not self._has_foreign_use(lease)
        finally:
            if not clean:
                lease.release()
        return clean

    def _has_foreign_use(self, lease: Lease) -> bool:
        """Check the cards that were just leased. Avoid those with a foreign process for a while."""
        if time.monotonic() - self._detected_at > _FRESH_SECONDS:
            self._detect()
        seen = {gpu.uuid: gpu for gpu in self._detection.gpus}
        obstacles = [self._obstacle(uuid, seen.get(uuid)) for uuid in lease.uuids]
        for obstacle in filter(None, obstacles):
            self._avoid_card(obstacle)
        return any(obstacles)

    def _obstacle(self, uuid: str, gpu: Gpu | None) -> dict[str, Any] | None:
        if gpu is None:
            why = "; ".join(self._detection.errors) or "the driver no longer lists it"
            return {"kind": "driver", "uuid": uuid, "words": f"GPU {uuid} is not available: {why}"}
        reason = why_busy(gpu, self._limits)
        if not reason:
            self._refusals.pop(uuid, None)
            return None
        processes = [asdict(process) for process in foreign_on(gpu)]
        return {"kind": "foreign", "index": gpu.index, "uuid": uuid, "words": reason, "processes": processes}

    def _avoid_card(self, obstacle: dict[str, Any]) -> None:
        """Avoid a card until the next try; at first only briefly, since an ended run still shows for a second."""
        uuid = obstacle["uuid"]
        self._refusals[uuid] = self._refusals.get(uuid, 0) + 1
        settled = self._refusals[uuid] >= _REFUSALS_TO_SETTLE
        soon = time.monotonic() + _SETTLE_SECONDS
        until = max(self._next_try, soon) if settled else soon
        self._avoid[uuid] = _Avoidance(until=until, settled=settled, obstacle=obstacle)

    def _avoided(self) -> dict[str, _Avoidance]:
        now = time.monotonic()
        return {uuid: avoidance for uuid, avoidance in self._avoid.items() if avoidance.until > now}

    def _busy(self, obstacles: Sequence[dict[str, Any]], poll_seconds: float) -> Busy:
        self.poll_seconds = poll_seconds
        in_order = sorted(obstacles, key=lambda obstacle: obstacle.get("index", -1))
        return Busy(reason="; ".join(obstacle["words"] for obstacle in in_order), holders=tuple(in_order))


def _lease_obstacle(gpu: Gpu, contended: Contended) -> dict[str, Any]:
    where = {"index": gpu.index, "uuid": gpu.uuid}
    if gpu.uuid in contended.holders:
        holder = contended.holders[gpu.uuid]
        return {"kind": "lease", **where, "words": lease_words(gpu, holder), **asdict(holder)}
    waiter = contended.kept[gpu.uuid]
    words = kept_words(gpu, waiter, time.time())
    return {"kind": "queue", **where, "words": words, "run_id": waiter.run_id, "user": waiter.user}


def _unknown_gpu_warning(name: str) -> str:
    if "$" in name or "`" in name:
        return f"The command picks a GPU by {name}, which only its shell can resolve, so that card is not leased."
    return f"The command names GPU {name}, which is not on this machine."


def foreign_processes(detection: Detection, uuids: Sequence[str], own_pids: set[int]) -> list[GpuProcess]:
    """Return the processes on these cards that do not belong to the run."""
    return [process for gpu in detection.gpus if gpu.uuid in uuids for process in foreign_on(gpu, own_pids)]


def judge_failure(output_tail: str, exit_code: int, foreign_seen: bool) -> GpuFailure | None:
    """Return the GPU failure that the end of the output shows, or None.

    It is contention only if a foreign process was on the card. The patterns are those of PyTorch, JAX, TensorFlow and
    CUDA. They are compiled only here, since every run imports this module at its start.
    """
    if exit_code == 0:
        return None
    if _find(OUT_OF_MEMORY, output_tail):
        if foreign_seen:
            return GpuFailure(
                reason="gpu_contention",
                message="The GPU ran out of memory while another process was using it.",
            )
        return GpuFailure(
            reason="cuda_oom", message="The run ran out of GPU memory. No other process was using the card."
        )
    if busy := _find(DEVICE_BUSY, output_tail):
        if foreign_seen:
            return GpuFailure(reason="gpu_contention", message="The GPU was busy with another process.")
        return GpuFailure(reason="gpu_error", message=f"The GPU refused the run: {busy[0]}.")
    if error := _find(GPU_ERROR, output_tail):
        return GpuFailure(reason="gpu_error", message=f"The GPU or its driver failed: {error[0]}.")
    return None


def _find(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE)
