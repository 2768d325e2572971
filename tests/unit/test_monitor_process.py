"""A monitor gets the time it needs for the last output of a run, as long as it makes progress."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.paths import RunPaths
from labwright.sidecar import monitor as monitor_module
from labwright.sidecar.monitor import MonitorProcess
from labwright.sidecar.record import RunJournal


def closed(folder: Path, monitor: Callable[[], None]) -> tuple[int, list[str]]:
    """Return how the monitor ended, and the warnings of the run."""
    paths = RunPaths(str(folder))
    record = RunJournal(paths, "run-1", wake="")
    monitor_process = MonitorProcess(paths, {"sidecar": {}}, record, lambda: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # inherited by the monitor
    pid = os.fork()
    if pid == 0:
        monitor()
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    statuses: list[int] = []

    def rest(_seconds: float) -> None:
        time.sleep(0.02)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            statuses.append(status)
            monitor_process.note_end(pid, status)

    monitor_process.pid = pid
    monitor_process.close(rest)
    return statuses[0], [event["text"] for event in record.events() if event["event"] == "warning"]


def work() -> None:
    until = time.monotonic() + 7.0
    while time.monotonic() < until:
        pass


def test_a_slow_monitor_that_works_may_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "_SILENCE_SECONDS", 3.0)  # enough time to make progress on any machine
    assert closed(tmp_path, work) == (0, [])


def test_a_hung_monitor_is_killed_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "_SILENCE_SECONDS", 0.5)
    status, warnings = closed(tmp_path, signal.pause)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(warnings) == 1 and "not all read" in warnings[0]
