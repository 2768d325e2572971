"""What a capped output keeps, and how dropped output is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.paths import RunPaths
from labwright.sidecar import monitor
from labwright.sidecar.monitor import OutputCap

CAP = 1 << 20
LONG = 4 * CAP


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    made = RunPaths(tmp_path)
    Path(made.output).write_bytes(b"y" * LONG)
    return made


def held(paths: RunPaths) -> int:
    return Path(paths.output).stat().st_blocks * 512


def test_read_output_is_dropped_and_unread_output_is_spared(paths: RunPaths) -> None:
    cap = OutputCap(paths, CAP)
    told: list[int] = []
    cap.apply(LONG, CAP, told.append)
    assert Path(paths.output).read_bytes()[CAP:] == b"y" * (LONG - CAP)
    assert held(paths) < LONG
    cap.apply(LONG, LONG, told.append)
    assert held(paths) <= CAP
    assert told == []


def test_unread_output_is_not_dropped(paths: RunPaths) -> None:
    OutputCap(paths, CAP).apply(LONG, 0, pytest.fail)
    assert held(paths) >= LONG


def test_a_reader_too_far_behind_skips_output(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_SPARED_BYTES", 0)
    told: list[int] = []
    OutputCap(paths, CAP).apply(LONG, 0, told.append)
    assert told == [LONG - CAP // 4]
    assert held(paths) <= CAP
