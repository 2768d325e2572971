"""What the SDK takes, what it refuses, and how it writes it down."""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections import UserList
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from labwright.sdk import lines, metrics_file
from labwright.sdk.held import as_dict
from labwright.sdk.lines import NotLoggable, number_text, plain
from labwright.sdk.media import Histogram, Image, encode_png
from labwright.sdk.metrics_file import MetricsFile
from labwright.sdk.places import LogTarget, offline, rank
from labwright.sdk.tracked import Run
from tests.support.full_disk import limit_file_size


class Scalar:
    """As NumPy's and PyTorch's scalars look from outside."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def item(self) -> Any:
        return self._value


class Array:
    """As much of a NumPy array as an image needs."""

    def __init__(self, shape: tuple[int, ...], content: bytes) -> None:
        self.shape, self.dtype, self._content = shape, "uint8", content

    def tobytes(self) -> bytes:
        return self._content


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    file = MetricsFile(str(tmp_path), {"attempt": 1, "rank": 0, "v": 1}, "run_1", "")
    made = Run(LogTarget(str(tmp_path), "run_1", "n", owned=False), file, lambda _run, _code: None)
    yield made
    made.flush()


def written(folder: str | Path) -> list[dict[str, Any]]:
    """Every line after the first of each file, as JSON; fails on a line that is none."""
    found = []
    for path in sorted(Path(folder, "metrics").glob("sdk-*.jsonl")):
        content = path.read_text()
        assert content.endswith("\n")
        header, *rest = [json.loads(line) for line in content.splitlines()]
        assert (header["source"], header["v"]) == ("sdk", 1)
        found += rest
    return found


def refusals(run: Run) -> dict[str, str]:
    return {line["refused"]["key"]: line["refused"]["why"] for line in written(run.dir) if "refused" in line}


def test_numbers_of_any_library_are_written_as_floats() -> None:
    taken = [0.1, 3, True, Scalar(2.5), Scalar(Scalar(1).item()), Decimal("0.5"), math.inf, -math.inf, math.nan, -0.0]
    texts = [number_text(value) for value in taken]
    assert texts == ["0.1", "3.0", "1", "2.5", "1.0", "0.5", "Infinity", "-Infinity", "NaN", "-0.0"]


NO_NUMBERS = ["0.5", b"1", None, [1.0], object(), Scalar("x"), pytest.param(10**400, id="huge"), 1j, {"a"}]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_values_that_are_not_numbers_are_refused(value: Any) -> None:
    with pytest.raises(NotLoggable):
        number_text(value)


def test_every_float_comes_back_exactly(run: Run) -> None:
    values = [0.1, 1e-320, 1.7976931348623157e308, -2.5e-9, 123456789.123456789]
    for _ in range(2):  # the second time by the fast way
        run.log({f"k{index}": value for index, value in enumerate(values)})
    assert [list(line["m"].values()) for line in written(run.dir)] == [values, values]


def test_nan_and_infinity_work_in_the_fast_path(run: Run) -> None:
    for value in (1.0, math.nan, math.inf, -math.inf, 2.0):
        run.log({"loss": value, "n": 1.0})
    got = [line["m"]["loss"] for line in written(run.dir)]
    assert [str(value) for value in got] == ["1.0", "nan", "inf", "-inf", "2.0"]


def test_bad_values_are_reported_once_and_others_are_logged(run: Run) -> None:
    for _ in range(3):
        run.log({"loss": 0.5, "name": "resnet", "k" * 10_000_000: 1.0, "": 2.0, "none": None})
    assert [line["m"] for line in written(run.dir) if "m" in line] == [{"loss": 0.5}] * 3
    said = refusals(run)
    assert {"name", "", "none"} < set(said) and len(said) == 4
    assert "10000000 characters" in said[next(key for key in said if key.startswith("kkk"))]


@pytest.mark.parametrize("data", [3, None, "loss", [("loss", 1.0)], object()])
def test_other_types_than_dicts_are_refused_without_an_exception(run: Run, data: Any) -> None:
    run.log(data)
    assert refusals(run) == {"log()": f"it takes a dict, not a {type(data).__name__}"}


def test_a_hundred_thousand_keys_become_several_lines(run: Run) -> None:
    run.log({f"layer/{index}": float(index) for index in range(100_000)}, step=4)
    found = written(run.dir)
    assert sum(len(line["m"]) for line in found) == 100_000 and {line["s"] for line in found} == {4}
    assert max(len(json.dumps(line)) for line in found) < 1 << 19


def test_odd_keys_keep_their_text(run: Run) -> None:
    keys = ["100%", "a b", 'quo"te', "new\nline", "é✓", "%s", "{}", "a/b/c"]
    for _ in range(2):
        run.log(dict.fromkeys(keys, 1.5))
    assert [list(line["m"]) for line in written(run.dir)] == [keys, keys]
    run.log({"\ud800x": 1.0, 7: 2.0})  # type: ignore[dict-item]
    assert written(run.dir)[-1]["m"] == {"?x": 1.0, "7": 2.0}


def test_nested_dicts_are_flattened_with_slashes(run: Run) -> None:
    circle: dict[str, Any] = {"loss": 1.0}
    circle["self"] = circle
    run.log({"train": {"loss": 0.5, "acc": {"top1": 0.9}}})
    run.log(circle)
    assert written(run.dir)[0]["m"] == {"train/loss": 0.5, "train/acc/top1": 0.9}


def test_steps_follow_the_rules_of_wandb(run: Run) -> None:
    run.log({"a": 1})
    run.log({"b": 1}, commit=False)
    run.log({"c": 1})
    run.log({"d": 1}, step=10)
    run.log({"e": 1})
    run.log({"f": 1}, step=20, commit=True)
    run.log({"g": 1})
    run.log({"h": 1}, step=-1)
    run.log({"i": 1}, step=3)
    found = {key: line["s"] for line in written(run.dir) for key in line["m"]}
    assert found == {"a": 0, "b": 1, "c": 1, "d": 10, "e": 10, "f": 20, "g": 21, "h": -1, "i": 3}


def test_batches_without_a_step_continue_after_the_validation_epoch(run: Run) -> None:
    for epoch in range(2):
        for _ in range(3):
            run.log({"train": 1.0})
        run.log({"val": 1.0}, step=epoch)
        run.log({"test": 1.0}, step=float(epoch))
    found = [(key, line["s"]) for line in written(run.dir) for key in line["m"]]
    assert [step for key, step in found if key == "train"] == [0, 1, 2, 3, 4, 5]
    assert [step for key, step in found if key != "train"] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "step", [2**63, -(2**63) - 1, 2.0**63, pytest.param(10**5000, id="huge"), 0.5, "7", math.nan, object()]
)
def test_an_invalid_step_is_reported_and_not_replaced(run: Run, step: Any) -> None:
    run.log({"loss": 1.0}, step=step)
    assert [line["s"] for line in written(run.dir) if "m" in line] == []
    assert "step" in refusals(run)


def test_after_the_last_possible_step_logging_is_refused(run: Run) -> None:
    run.log({"loss": 1.0}, step=-(2**63))
    run.log({"loss": 1.0}, step=2**63 - 1, commit=True)
    run.log({"loss": 2.0})
    assert [line["s"] for line in written(run.dir) if "m" in line] == [-(2**63), 2**63 - 1]
    assert refusals(run) == {"step": f"the last possible step is {2**63 - 1}"}


def test_steps_of_other_libraries_are_accepted(run: Run) -> None:
    for step in (3.0, True, Decimal(9)):
        run.log({"loss": 1.0}, step=step)  # type: ignore[arg-type]
    assert [line["s"] for line in written(run.dir)] == [3, 1, 9]


def test_the_summary_is_the_last_of_each_metric(run: Run) -> None:
    for value in (3.0, 2.0, 1.0):
        run.log({"loss": value, "acc": 1 - value})
    run.log({"loss": 0.5, "epoch": 1})
    run.summary["best"] = 0.25
    assert run.summary.as_dict() == {"loss": 0.5, "acc": 0.0, "epoch": 1.0, "best": 0.25}
    assert run.summary["loss"] == run.summary.loss == run.summary.get("loss") == 0.5


def test_the_config_accepts_what_scripts_pass(run: Run) -> None:
    class Namespace:
        def __init__(self) -> None:
            self.lr, self.path = 0.1, Path("/data")

    run.config.update(Namespace())
    run.config["layers"] = (64, 64)
    run.config.seed = 10**30
    run.config.big = 10**5000
    assert run.config.lr == run.config["lr"] == 0.1 and "seed" in run.config and dict(run.config)["layers"] == (64, 64)
    told: dict[str, Any] = {}
    for line in written(run.dir):
        told.update(line["config"])
    assert told["lr"] == 0.1 and told["path"] == "/data" and told["layers"] == [64, 64] and told["seed"] == hex(10**30)
    assert as_dict(None) == {} and as_dict(3) == {"config": 3}


def test_lists_of_other_libraries_work_and_deep_nesting_becomes_text() -> None:
    assert plain({"dims": UserList([64, UserList([8])]), "steps": range(10**12)}) == {
        "dims": [64, [8]],
        "steps": "range(0, 1000000000000)",
    }


def test_alerts_have_three_levels_and_a_pause(run: Run) -> None:
    run.alert("Diverged", text="loss is NaN", level="ERROR")
    for _ in range(3):
        run.alert("Slow", level="warning", wait_duration=60)
    run.alert("x" * 10_000_000, level="?")
    told = [line["alert"] for line in written(run.dir)]
    assert told[0] == {"title": "Diverged", "text": "loss is NaN", "level": "ERROR"}
    assert [alert["level"] for alert in told] == ["ERROR", "WARN", "INFO"] and len(told[2]["title"]) == 1024


def test_an_array_becomes_a_png(run: Run) -> None:
    pixels = bytes(range(24))
    run.log({"sample/first": Image(Array((2, 4, 3), pixels), caption="eight pixels")}, step=7)
    artifact = written(run.dir)[0]["artifact"]
    assert (artifact["key"], artifact["kind"], artifact["caption"]) == ("sample/first", "image", "eight pixels")
    content = Path(run.dir, artifact["path"]).read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">II", content[16:24]) == (4, 2)
    size = struct.unpack(">I", content[33:37])[0]
    rows = zlib.decompress(content[41 : 41 + size])
    assert rows == b"\0" + pixels[:12] + b"\0" + pixels[12:]
    with pytest.raises(ValueError, match="not an image"):
        encode_png(pixels, 5, 5, 3)


def test_images_come_from_files_figures_and_lists(run: Run, tmp_path: Path) -> None:
    class Figure:
        def savefig(self, target: Any, format: str) -> None:
            target.write(format.encode())

    picture = tmp_path / "epoch.jpg"
    picture.write_bytes(b"first")
    run.log({"file": Image(picture), "plot": Figure(), "many": [Image(str(picture)), Image(Figure())]})
    picture.write_bytes(b"second")
    stored = [line["artifact"] for line in written(run.dir)]
    assert [entry["key"] for entry in stored] == ["file", "plot", "many", "many"]
    assert [Path(run.dir, entry["path"]).read_bytes() for entry in stored] == [b"first", b"png", b"first", b"png"]


def test_an_invalid_image_loses_only_itself(run: Run) -> None:
    run.log({"a": Image("/does/not/exist.png"), "b": Image(3), "c": Image(Array((5,), b"12345")), "loss": 1.0})
    assert set(refusals(run)) == {"a", "b", "c"}
    assert written(run.dir)[-1]["m"] == {"loss": 1.0}


def test_a_key_cannot_lead_out_of_the_run_folder(run: Run) -> None:
    run.log({"../../../etc/x": Histogram([1.0])})
    assert os.listdir(f"{run.dir}/artifacts")[0].startswith("_.._.._etc_x-0-")


def test_histograms_count_every_value(run: Run) -> None:
    facts = Histogram([0.0, 1.0, 1.0, [2.0, math.nan]], num_bins=2).facts()
    assert facts == {"counts": [1, 3], "edges": [0.0, 1.0, 2.0], "not_finite": 1}
    assert sum(Histogram([5.0] * 3).facts()["counts"]) == 3
    run.log({"grad": Histogram(np_histogram=([1, 2], [0, 1, 2]))})
    artifact = written(run.dir)[0]["artifact"]
    assert artifact["kind"] == "histogram"
    stored = json.loads(Path(run.dir, artifact["path"]).read_text())
    assert stored == {"counts": [1.0, 2.0], "edges": [0.0, 1.0, 2.0]}


def test_saved_files_are_named_by_reference(run: Run, tmp_path: Path) -> None:
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).touch()
    run.save(tmp_path / "*.pt")
    run.save("/does/not/exist")
    assert [line["artifact"]["path"] for line in written(run.dir) if "artifact" in line] == [
        str(tmp_path / "a.pt"),
        str(tmp_path / "b.pt"),
    ]
    assert len(refusals(run)) == 1


def test_a_saved_file_in_the_run_folder_has_a_relative_path(run: Run) -> None:
    Path(run.dir, "artifacts/plots").mkdir(parents=True)
    Path(run.dir, "artifacts/plots/roc.html").touch()
    run.save(f"{run.dir}/artifacts/plots/*")
    assert [line["artifact"]["path"] for line in written(run.dir)] == ["artifacts/plots/roc.html"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, 0),
        ({"RANK": "3", "LOCAL_RANK": "1"}, 3),
        ({"RANK": "0", "LOCAL_RANK": "1"}, 0),
        ({"LOCAL_RANK": "2"}, 2),
        ({"SLURM_PROCID": "5"}, 5),
        ({"SLURM_PROCID": "0", "LOCAL_RANK": "1"}, 1),
        ({"RANK": "x"}, 0),
    ],
)
def test_the_rank_is_what_the_launcher_says(environ: dict[str, str], expected: int) -> None:
    assert rank(environ) == expected


def test_lines_for_a_full_disk_are_limited_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metrics_file, "_OWED_LIMIT", 1000)
    (tmp_path / "metrics").write_text("in the way")
    file = MetricsFile(str(tmp_path), {"attempt": 1, "rank": 0, "v": 1}, "run_1", "")
    for step in range(500):
        file.write(lines.metric_lines(step, 0.0, ['"loss":1.0']))
    (tmp_path / "metrics").unlink()
    assert file.flush()
    file.write(lines.metric_lines(500, 0.0, ['"loss":1.0']))
    steps = [line["s"] for line in written(tmp_path) if "m" in line]
    dropped = 501 - len(steps)
    assert steps == list(range(dropped, 501)) and 400 < dropped < 500
    assert f"{dropped} log lines were dropped" in json.dumps(written(tmp_path))
    assert capfd.readouterr().err.count("cannot write") == 1
    file.close()


def test_the_server_is_woken_a_few_times_a_second_without_waiting(tmp_path: Path) -> None:
    fifo = tmp_path / "wake"
    os.mkfifo(fifo)
    file = MetricsFile(str(tmp_path), {"v": 1}, "run_1", str(fifo))
    file.write(b"{}\n")  # nobody reads: no wait, no error
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    file.wake_at = 0.0
    for _ in range(1000):
        file.write(b"{}\n")
    woken = os.read(reader, 65536).decode().splitlines()
    assert set(woken) == {"run_1 metrics"} and len(woken) < 20
    os.close(reader)
    file.close()


def test_a_disk_without_room_for_a_folder_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with limit_file_size(0):
        assert offline(str(tmp_path), {"name": "n"}) is None
    assert capsys.readouterr().err.count("cannot log into") == 1
    assert list(tmp_path.iterdir()) == []
