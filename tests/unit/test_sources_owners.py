"""Whose file it is: a metric file in a folder that several runs share is read by one of them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from labwright.paths import RunPaths
from labwright.sidecar.record import HeldFolder, RunJournal
from labwright.sidecar.rules.book import RunRules
from labwright.sidecar.sources.followed import Claim, JsonLines, is_claimed_since
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.start import Start
from labwright.sidecar.sources.workdir_files import WorkdirFiles, birth_time, declared_by, open_for_writing
from tests.unit.test_sources import Entries, read


def test_two_claims_on_one_file_notice_each_other(tmp_path: Path) -> None:
    file = os.stat(tmp_path)
    first = Claim(str(tmp_path / "claims"), file)
    assert first.is_sole() and first.is_sole()
    second = Claim(str(tmp_path / "claims"), file)
    assert not first.is_sole() and not second.is_sole()
    second.close()
    assert not first.is_sole()  # what was written meanwhile may be the other's
    first.close()
    assert Claim(str(tmp_path / "claims"), file).is_sole()


class Watched:
    """A run in a workdir where others write too."""

    def __init__(self, folder: Path) -> None:
        self.paths = RunPaths(folder / "run")
        self.workdir = folder / "work"
        self.workdir.mkdir(parents=True)
        (folder / "run").mkdir()
        options = {"workdir": str(self.workdir), "metrics": {"claims": str(folder / "claims")}}
        self.spec = {"run": {"id": "run-1", "attempt": 1}, "sidecar": {**options, "alerts": {"stall_minutes": 1}}}
        self.files = WorkdirFiles(self.paths, self.spec, Start(time.time() - 3600), set)

    def look(self) -> Entries:
        """Answers what was said of files that are not the run's."""
        self.files.look(last=True)
        for file in self.files.files():
            file.write_refused_counts(time.time())
            file.flush()
        return read(Path(self.paths.metrics, "file-notes.jsonl")) if os.listdir(self.paths.dir) else []


def test_a_file_of_unknown_owner_is_reported_once(tmp_path: Path) -> None:
    run = Watched(tmp_path)
    (run.workdir / "metrics.jsonl").write_text('{"step": 1, "loss": 1}\n')
    run.spec["sidecar"]["metrics"]["files"] = ["numbers.csv"]
    (run.workdir / "numbers.csv").write_text("1,2\n")
    said = [[entry["refused"]["key"] for entry in run.look() if "refused" in entry] for _ in range(3)][-1]
    assert sorted(said) == ["metrics.jsonl", "numbers.csv"]


def test_the_full_disk_alert_names_the_real_folder(tmp_path: Path) -> None:
    run = Watched(tmp_path)
    run.spec["sidecar"]["alerts"] = {"builtin": {"disk_free_gb": 1e9}}
    held = HeldFolder(run.paths.dir)
    record = RunJournal(run.paths, "run-1", str(tmp_path / "wake"))
    RunRules(held.paths, run.spec, record, time.time()).look()
    held.close()
    (said,) = [event["message"] for event in record.events() if event["rule"] == "disk_nearly_full"]
    assert said.endswith(f"the disk of {run.paths.dir}.")


def test_notes_about_other_files_do_not_hide_a_stall(tmp_path: Path) -> None:
    run = Watched(tmp_path)
    (run.workdir / "metrics.jsonl").write_text('{"step": 1, "loss": 1}\n')
    assert run.look()
    record = RunJournal(run.paths, "run-1", str(tmp_path / "wake"))
    RunRules(run.paths, run.spec, record, time.time() - 3600).look()
    assert "stall" in [event["rule"] for event in record.events()]


def test_a_growing_file_renews_its_claim(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("")
    claim = Claim(str(tmp_path / "claims"), path.stat())
    os.utime(claim._fd, (1000, 1000))
    began = time.time() - 1
    assert not is_claimed_since(str(tmp_path / "claims"), path.stat(), began)
    file = MetricFile(str(tmp_path / "metrics"), "file", 1, "x", inode=path.stat().st_ino, **{"from": 0})
    followed = JsonLines(str(path), file, claim, began)
    path.write_text('{"step": 1, "loss": 1}\n')
    followed.look()
    assert is_claimed_since(str(tmp_path / "claims"), path.stat(), began)


def rows(first: int, count: int) -> str:
    return "".join(f'{{"step": {step}, "loss": {first + step}}}\n' for step in range(count))


@pytest.mark.parametrize("watched", [True, False], ids=["by one monitor", "by the next one"])
@pytest.mark.parametrize("count", [30, 40], ids=["as long as before", "longer"])
def test_a_rewritten_file_is_read_from_its_start(tmp_path: Path, watched: bool, count: int) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(rows(100, 30))

    def followed() -> JsonLines:
        header = {"inode": path.stat().st_ino, "from": 0}
        file = MetricFile(str(tmp_path / "metrics"), "file", 1, "x", **header)
        return JsonLines(str(path), file, Claim(str(tmp_path / "claims"), path.stat()), time.time())

    def taken(reader: JsonLines) -> list[float]:
        for _ in range(2):
            if reader.look():
                reader.take()
        reader.file.flush()
        lines = Path(reader.file.path).read_text().splitlines()
        return [entry["m"]["loss"] for entry in map(json.loads, lines) if "m" in entry]

    first = followed()
    before = taken(first)
    assert before == taken(first) == [100 + step for step in range(30)]
    path.write_text(rows(200, count))
    if not watched:
        first._claim.close()
        os.close(first.file._open())
    assert taken(first if watched else followed())[30:] == [200 + step for step in range(count)]


def test_open_files_are_found_with_their_mode(tmp_path: Path) -> None:
    with (tmp_path / "w").open("w"), (tmp_path / "a").open("a"), (tmp_path / "w").open() as _reader:
        found = {
            os.path.basename(file.path): file.truncated
            for file in open_for_writing([os.getpid()], lambda path: path.startswith(str(tmp_path)))
        }
    assert found == {"w": True, "a": False}


def test_the_creation_time_of_a_file_is_known(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    born = birth_time(str(tmp_path / "new"))
    assert born is None or abs(born - time.time()) < 5


def test_the_environment_of_a_process_declares_files() -> None:
    assert declared_by([os.getpid(), 2**22]) == set()
