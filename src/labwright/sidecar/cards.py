"""The cards of one run: waited for, held while its job lives, told to it, and let go."""

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
from labwright.sidecar.gpuwrap import Busy, GaveUp, GpuGate, GpuRequest, Granted, foreign_processes, judge_failure
from labwright.sidecar.record import RunJournal

Facts = dict[str, Any]


class Cards:
    def __init__(self, options: Facts, record: RunJournal) -> None:
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


_LOOK_SECONDS = 10.0
_DETECTOR_SECONDS = 10.0


class CardWatch:
    def __init__(self, gpu_options: dict[str, Any] | None) -> None:
        self._options = gpu_options
        self._look_at = time.monotonic() + _LOOK_SECONDS
        self._thread: threading.Thread | None = None
        self._found: Detection | None = None

    def poll(self) -> Detection | None:
        """What a look has brought since the last call."""
        if self._options is None:
            return None
        if self._thread is None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            self._thread = threading.Thread(target=self._look, args=(self._options,), daemon=True)
            self._thread.start()
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        return self._found

    def _look(self, options: dict[str, Any]) -> None:
        self._found = run_detector(timeout=_DETECTOR_SECONDS, samples=1, pynvml_dir=options.get("pynvml_dir"))


_TAIL_BYTES = 64 * 1024
_GONE_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    retry: bool = False
    delay_seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


class ContentionJudge:
    def __init__(self, record: RunJournal, gpu_options: dict[str, Any] | None) -> None:
        self._record = record
        self._options = gpu_options or {}
        self._retries_done = 0

    def judge(self, exit_facts: dict[str, Any], lease: Lease | None, output: str, begin: int = 0) -> RetryDecision:
        """`begin` is where this try's output does: that an earlier one had no memory says nothing of it."""
        if lease is None or exit_facts["status"] != "failed" or exit_facts["reason"] != "exit_code":
            return RetryDecision()
        tail, code = _tail(output, begin), exit_facts["exit_code"]
        if judge_failure(tail, code, foreign_seen=False) is None:
            return RetryDecision()  # nothing to do with GPUs, so the driver need not be asked
        verdict = judge_failure(tail, code, self._foreign_seen(lease))
        assert verdict is not None  # the same text again
        retrying = verdict.reason == "gpu_contention" and self._may_retry()
        self._alert(verdict.reason, verdict.message, ["ignore", "stop"] if retrying else ["ignore", "rerun"])
        if retrying:
            return self._retry(output, verdict.message)
        return RetryDecision(facts={"reason": verdict.reason, "error": verdict.message})

    def _foreign_seen(self, lease: Lease) -> bool:
        """Now, or when the monitor last looked: the intruder may be gone by the time the job has died."""
        if self._was_there_at_the_last_look():
            return True
        patience = time.monotonic() + _GONE_SECONDS
        while shown := self._shown_on(lease):
            if any(os.path.exists(f"/proc/{pid}") for pid in shown) or time.monotonic() >= patience:
                return True
            time.sleep(_LOOK_AGAIN_SECONDS)  # the driver still shows the job itself for a second or so
        return False

    def _shown_on(self, lease: Lease) -> list[int]:
        detection = run_detector(timeout=10.0, samples=1, pynvml_dir=self._options.get("pynvml_dir"))
        return [process.pid for process in foreign_processes(detection, lease.uuids, own_pids={os.getpid()})]

    def _was_there_at_the_last_look(self) -> bool:
        """Of this try alone: what was on another card before says nothing."""
        told = False
        for event in self._record.events():
            if event["event"] in ("started", "foreign_use"):
                told = bool(event.get("processes"))
        return told

    def _may_retry(self) -> bool:
        retries = self._options.get("retries", -1)
        enabled = self._options.get("check_foreign", False)
        return bool(enabled and (retries < 0 or self._retries_done < retries))

    def _retry(self, output: str, message: str) -> RetryDecision:
        self._retries_done += 1
        with passing_refusals(), open(output, "ab") as file:  # a full disk takes away this line, not the retry
            file.write(f"\n[labwright] {message} Trying again (retry {self._retries_done}).\n".encode())
        self._record.event("waiting", reason=f"retry {self._retries_done} after GPU contention", holders=[])
        return RetryDecision(retry=True, delay_seconds=self._options.get("retry_delay_seconds", 10.0))

    def _alert(self, rule: str, message: str, choices: list[str]) -> None:
        severity = "warning" if rule == "gpu_contention" else "critical"
        self._record.event("alert", rule=rule, message=message, severity=severity, choices=choices)


def _tail(path: str, begin: int) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(begin, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
