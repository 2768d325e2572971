"""Hugging Face's trainer state as a source of metrics: histories that go on, begin anew or vanish."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labwright.sidecar.sources.followed import Claim, TrainerState
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.trainer_states import states_before
from tests.unit.test_sources import points, read


def state(path: Path, steps: int, loss: float = 1.0, written: float | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    history = [{"step": step, "epoch": step / 2, "loss": loss / (step + 1)} for step in range(steps)]
    path.write_text(json.dumps({"log_history": history, "global_step": steps}))
    if written is not None:
        os.utime(path, (written, written))


class Training:
    """A run that began at a moment, in a folder with what earlier ones left there."""

    def __init__(self, folder: Path, began: float) -> None:
        self.file = MetricFile(str(folder / "metrics"), "trainer_state", 1, "x", **self._header(folder, began))
        claim = Claim(str(folder / "claims"), os.stat(folder))
        self._followed = TrainerState(self.file.header["file"], self.file, claim, began)

    def _header(self, folder: Path, began: float) -> dict[str, Any]:
        path = str(folder / "trainer_state.json")
        return {"file": path, "inode": 0, "from": -1, "prefix": "", "before": states_before(str(folder), began)}

    def read(self, path: Path) -> list[int]:
        """All steps that were taken so far."""
        self._followed.path = str(path)
        self._followed.look()
        if self._followed.look():
            self._followed.take()
        self.file.flush()
        return [step for step, _ in points(read(self.file.path))] if os.path.exists(self.file.path) else []

    def said(self) -> str:
        return " ".join(str(line["refused"]) for line in read(self.file.path) if "refused" in line)


def test_a_run_that_continues_from_a_checkpoint_does_not_repeat_its_history(tmp_path: Path) -> None:
    old, new = tmp_path / "checkpoint-5" / "trainer_state.json", tmp_path / "checkpoint-9" / "trainer_state.json"
    state(old, 5, written=1000)
    run = Training(tmp_path, began=2000)
    assert run.read(old) == []
    state(new, 9, written=2001)
    assert run.read(new) == [5, 6, 7, 8]
    new.write_text('{"log_history": [')  # half written
    assert run.read(new) == [5, 6, 7, 8]
    assert "5 were there before the run" in run.said()


def test_a_new_run_over_an_old_state_is_read_from_its_first_entry(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    state(path, 5, written=1000)
    run = Training(tmp_path, began=2000)
    state(path, 3, loss=7.0, written=2001)
    assert run.read(path) == [0, 1, 2]
    state(path, 8, loss=7.0, written=2002)
    assert run.read(path) == [*range(8)] and run.said() == ""


def test_a_run_that_writes_the_same_entries_again_has_them_too(tmp_path: Path) -> None:
    for name in ("checkpoint-2", "checkpoint-5", "."):
        state(tmp_path / name / "trainer_state.json", 2 if name == "checkpoint-2" else 5, written=1000)
    run = Training(tmp_path, began=2000)
    state(tmp_path / "checkpoint-2" / "trainer_state.json", 2, written=2001)
    state(tmp_path / "checkpoint-5" / "trainer_state.json", 5, written=2002)  # before anybody looked
    state(tmp_path / "checkpoint-8" / "trainer_state.json", 8, written=2003)
    assert run.read(tmp_path / "checkpoint-8" / "trainer_state.json") == [*range(8)]


def test_a_deleted_checkpoint_does_no_harm(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"checkpoint-{step}" / "trainer_state.json") for step in (2, 5)]
    for written, path in enumerate(paths, 2001):
        state(Path(path), written - 1999, written=written)
    claim = Claim(str(tmp_path / "claims"), os.stat(tmp_path))
    file = MetricFile(str(tmp_path / "metrics"), "trainer_state", 1, "x", file=paths[1], **{"from": -1, "before": []})
    followed = TrainerState(paths[1], file, claim, 2000)
    os.unlink(paths[1])
    followed.offer(paths[0])
    assert followed.path == paths[0]
    followed.offer(paths[1])
    assert followed.path == paths[0] and followed.paths == {*paths}


def test_a_history_that_the_run_rewrites_is_reported_and_read(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    run = Training(tmp_path, began=2000)
    state(path, 4, written=2001)
    assert run.read(path) == [0, 1, 2, 3]
    state(path, 2, loss=7.0, written=2002)
    assert run.read(path) == [0, 1, 2, 3, 0, 1]
    assert "rewritten" in run.said()
