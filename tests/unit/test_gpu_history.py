"""The server's history of its cards: thinned for a picture, kept across a kill, and bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labwright.compute.cluster import gpu_history
from labwright.compute.cluster.gpu_history import GpuHistory
from labwright.domain.gpu import Gpu, GpuMoment, LeaseHolder, gpu_traces
from labwright.files import append_whole

CARD = Gpu(index=0, uuid="GPU-1", name="card", memory_total_mb=1000, memory_used_mb=200, utilization=40)
HELD = replace(CARD, utilization=80, memory_used_mb=900, lease=LeaseHolder(run_id="run-1", user="ada"))


def test_a_span_has_mean_use_peak_memory_and_last_holder() -> None:
    moments = [GpuMoment.of([card], at) for at, card in ((10.0, CARD), (20.0, HELD), (90.0, CARD))]
    (trace,) = gpu_traces(moments, 0.0, 100.0, 2)
    assert (trace.times, trace.utilization) == ([20.0, 90.0], [60.0, 40.0])
    assert (trace.memory_used_mb, trace.run_ids) == ([900, 200], ["run-1", ""])


def test_samples_outside_the_requested_time_are_skipped() -> None:
    moments = [GpuMoment.of([CARD], at) for at in (10.0, 60.0, 200.0)]
    (trace,) = gpu_traces(moments, 50.0, 100.0, 10)
    assert trace.times == [60.0]


def test_history_is_read_after_a_restart_without_cut_off_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_history.time, "time", lambda: 1000.0)
    before = GpuHistory(tmp_path / "history", lambda: [HELD])
    before.note(970.0)
    before.note(985.0)
    with (tmp_path / "history").open("ab") as file:
        file.write(b'[]\n{"at": "x"}\n{"at": 990, "ca')
    after = GpuHistory(tmp_path / "history", lambda: [CARD])
    after.start()
    after.close()
    (trace,) = after.read(600, 600)
    assert trace.times[:2] == [970.0, 985.0]
    assert trace.run_ids[:2] == ["run-1", "run-1"]


def test_a_sample_is_shown_only_after_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_history.time, "time", lambda: 1000.0)
    history = GpuHistory(tmp_path / "history", lambda: [CARD])
    shown_early = []

    def append(fd: int, content: bytes) -> None:
        shown_early.extend(history.read(600, 600))
        append_whole(fd, content)

    monkeypatch.setattr(gpu_history, "append_whole", append)
    history.note(990.0)
    assert shown_early == [] and [trace.times for trace in history.read(600, 600)] == [[990.0]]


def test_on_a_full_disk_samples_are_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_history.time, "time", lambda: 1000.0)
    history = GpuHistory(tmp_path / "missing" / "history", lambda: [CARD])
    with pytest.raises(OSError):
        history.note(990.0)
    assert [trace.times for trace in history.read(600, 600)] == [[990.0]]


def test_the_file_has_a_maximum_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_history, "_MOST", 5)
    history = GpuHistory(tmp_path / "history", lambda: [CARD])
    for at in range(43):
        history.note(float(at))
    assert len((tmp_path / "history").read_text().splitlines()) <= 2 * 5


def test_without_cards_nothing_is_written(tmp_path: Path) -> None:
    GpuHistory(tmp_path / "history", list).note(1.0)
    assert not (tmp_path / "history").exists()
