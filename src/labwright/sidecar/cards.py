"""The cards of one run: waited for, held while its job lives, told to it, and let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labwright.gpu.lease import Lease
from labwright.sidecar.gpuwrap import Busy, GaveUp, GpuGate, GpuRequest, Granted
from labwright.sidecar.record import RunRecord

Facts = dict[str, Any]


class Cards:
    def __init__(self, options: Facts, record: RunRecord) -> None:
        self._options = options
        self._record = record
        self.lease: Lease | None = None

    @property
    def uuids(self) -> list[str]:
        return list(self.lease.uuids) if self.lease else []

    @property
    def fds(self) -> tuple[int, ...]:
        return self.lease.fds if self.lease else ()

    def acquire(self, rest: Callable[[float], Facts | None]) -> Facts | None:
        """Why the run ends here, or None once the cards are ours (or none are needed).

        `rest` is called between two tries, and answers if there is a reason to leave off.
        """
        if not self._options["gpu"]:
            return None
        gate = GpuGate(GpuRequest.from_dict(self._options["gpu"]))
        said = ""
        try:
            while True:
                outcome = gate.attempt()
                if isinstance(outcome, GaveUp):
                    return {"status": "failed", "reason": outcome.reason, "error": outcome.message}
                if not isinstance(outcome, Busy):
                    self._take(outcome)
                    return None
                if outcome.reason != said:
                    said = outcome.reason
                    self._record.event("waiting", reason=said, holders=list(outcome.holders))
                if reason := rest(gate.poll_seconds):
                    return reason
        finally:
            gate.close()

    def _take(self, granted: Granted) -> None:
        self.lease = granted.lease
        self._record.event("leased", gpu_uuids=self.uuids, wake=False)
        for text in granted.warnings:
            self._record.event("warning", text=text)

    def release(self) -> None:
        if self.lease:
            self.lease.release()
            self.lease = None

    def variables(self) -> dict[str, str]:
        """What its job is told of them."""
        if self._options["hide_gpus"]:
            return {"CUDA_VISIBLE_DEVICES": ""}
        if self.lease and self._options["pin_gpus"]:
            return {"CUDA_VISIBLE_DEVICES": ",".join(self.uuids), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        return {}
