"""The GPUs of one run: acquired before its job, watched while it runs, and checked for contention after a failure."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labwright.files import passing_refusals
from labwright.gpu.lease import Lease
from labwright.gpu.probe import Detection, run_detector
from labwright.sidecar.cause import tail_of
from labwright.sidecar.gpuwrap import Busy, GaveUp, GpuGate, GpuRequest, foreign_processes, judge_failure
from labwright.sidecar.record import RunJournal

_WATCH_SECONDS = 10.0
_DETECTOR_SECONDS = 10.0
_GONE_SECONDS = 2.0
_CHECK_AGAIN_SECONDS = 0.2


class Cards:
    """The lease of a run, and the variables that show its cards to the job."""

    def __init__(self, options: dict[str, Any], record: RunJournal) -> None:
        self._options = options
        self._record = record
        self.lease: Lease | None = None

    @property
    def uuids(self) -> list[str]:
        return list(self.lease.uuids) if self.lease else []

    @property
    def fds(self) -> tuple[int, ...]:
        return self.lease.fds if self.lease else ()

    def acquire(self, wait: Callable[[float], dict[str, Any] | None]) -> dict[str, Any] | None:
        """Wait for the cards. Return None once they are leased (or none are needed), else why the run ends here.

        `wait` sleeps between two attempts and returns a reason to give up, or None.
        """
        if not self._options["gpu"]:
            return None
        gate = GpuGate(GpuRequest.from_dict(self._options["gpu"]))
        reported = ""
        try:
            while True:
                outcome = gate.attempt()
                if isinstance(outcome, GaveUp):
                    return {"status": "failed", "reason": outcome.reason, "error": outcome.message}
                if not isinstance(outcome, Busy):
                    self.lease = outcome.lease
                    self._record.event("leased", gpu_uuids=self.uuids, wake=False)
                    for text in outcome.warnings:
                        self._record.event("warning", text=text)
                    return None
                if outcome.reason != reported:
                    reported = outcome.reason
                    self._record.event("waiting", reason=reported, holders=list(outcome.holders))
                if reason := wait(gate.poll_seconds):
                    return reason
        finally:
            gate.close()

    def release(self) -> None:
        if self.lease:
            self.lease.release()
            self.lease = None

    def variables(self) -> dict[str, str]:
        """Return the environment variables that show the cards to the job."""
        if self._options["hide_gpus"]:
            return {"CUDA_VISIBLE_DEVICES": ""}
        if self.lease and self._options["pin_gpus"]:
            return {"CUDA_VISIBLE_DEVICES": ",".join(self.uuids), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        return {}


class CardWatch:
    """Query the driver every ten seconds in a thread: a query may take seconds, or never return."""

    def __init__(self, gpu_options: dict[str, Any] | None) -> None:
        self._options = gpu_options
        self._query_at = time.monotonic() + _WATCH_SECONDS
        self._thread: threading.Thread | None = None
        self._detection: Detection | None = None

    def poll(self) -> Detection | None:
        """Return the result of a query that has ended since the last call, or None."""
        if self._options is None:
            return None
        if self._thread is None and time.monotonic() >= self._query_at:
            self._query_at = time.monotonic() + _WATCH_SECONDS
            self._thread = threading.Thread(target=self._query, args=(self._options,), daemon=True)
            self._thread.start()
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        return self._detection

    def _query(self, options: dict[str, Any]) -> None:
        self._detection = run_detector(timeout=_DETECTOR_SECONDS, samples=1, pynvml_dir=options.get("pynvml_dir"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    retry: bool = False
    delay_seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)  # reason and error, if the GPU explains the failure


class ContentionJudge:
    """Decide after a failure on a GPU: retry if somebody else was on the card, else the failure is the run's own."""

    def __init__(self, record: RunJournal, gpu_options: dict[str, Any] | None) -> None:
        self._record = record
        self._options = gpu_options or {}
        self._retries_done = 0

    def judge(self, exit_facts: dict[str, Any], lease: Lease | None, output: str, start: int = 0) -> RetryDecision:
        """Judge by the output of this try, which starts at offset `start`."""
        if lease is None or exit_facts["status"] != "failed" or exit_facts["reason"] != "exit_code":
            return RetryDecision()
        tail, code = tail_of(output, start), exit_facts["exit_code"]
        if judge_failure(tail, code, foreign_seen=False) is None:
            return RetryDecision()  # the GPU is not the reason, so the driver is not queried
        failure = judge_failure(tail, code, self._foreign_seen(lease))
        assert failure is not None  # the same text as above
        retries = self._options.get("retries", -1)
        may_retry = self._options.get("check_foreign", False) and (retries < 0 or self._retries_done < retries)
        retrying = failure.reason == "gpu_contention" and may_retry
        severity = "warning" if failure.reason == "gpu_contention" else "critical"
        choices = ["ignore", "stop"] if retrying else ["ignore", "rerun"]
        self._record.event("alert", rule=failure.reason, message=failure.message, severity=severity, choices=choices)
        if retrying:
            return self._retry(output, failure.message)
        return RetryDecision(facts={"reason": failure.reason, "error": failure.message})

    def _foreign_seen(self, lease: Lease) -> bool:
        """Return whether a foreign process is on the cards now, or was at the monitor's last query."""
        seen = False
        for event in self._record.events():
            if event["event"] in ("started", "foreign_use"):  # `started` begins this try
                seen = bool(event.get("processes"))
        if seen:
            return True
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            detection = run_detector(_DETECTOR_SECONDS, samples=1, pynvml_dir=self._options.get("pynvml_dir"))
            pids = [process.pid for process in foreign_processes(detection, lease.uuids, own_pids={os.getpid()})]
            if not pids:
                return False
            if any(os.path.exists(f"/proc/{pid}") for pid in pids) or time.monotonic() >= deadline:
                return True
            time.sleep(_CHECK_AGAIN_SECONDS)  # the driver still shows the ended job for about a second

    def _retry(self, output: str, message: str) -> RetryDecision:
        self._retries_done += 1
        with passing_refusals(), open(output, "ab") as file:  # a full disk costs this line, not the retry
            file.write(f"\n[labwright] {message} Trying again (retry {self._retries_done}).\n".encode())
        self._record.event("waiting", reason=f"retry {self._retries_done} after GPU contention", holders=[])
        return RetryDecision(retry=True, delay_seconds=self._options.get("retry_delay_seconds", 10.0))
