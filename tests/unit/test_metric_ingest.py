"""From the lines of a run's metric files to its series."""

from __future__ import annotations

import json
import math
import os
import queue
from array import array
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.lab import Lab
from labwright.compute.metrics import batch as metric_batch
from labwright.compute.metrics import ingest
from labwright.compute.metrics.ingest import MetricIngest
from labwright.domain.errors import Conflict
from labwright.domain.metrics.points import Points
from labwright.domain.metrics.series import pack, unpack, unpack_steps
from labwright.services.metrics import verbs as metrics
from labwright.services.metrics.export import export
from labwright.services.runs import verbs as runs
from labwright.sidecar.rules.inputs import points_in
from labwright.store import alerts
from labwright.store.idempotency import IdempotencyKey
from tests.support.full_disk import limit_file_size
from tests.support.lab import lab_in, make_run, running_run
from tests.support.waiting import wait_until


def append_points(lab: Lab, run_id: str, lines: list[dict[str, Any]]) -> None:
    lab.unread.append_points(run_id, lab.paths.run(run_id).metrics, lines)


def line(step: int, *keys: str) -> dict[str, Any]:
    return {"s": step, "t": 1e9 + step, "m": {key: float(step) for key in keys}}


def test_run_at_its_series_limit_keeps_its_existing_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_batch, "MAX_KEYS", 3)
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "many").id
        reader = MetricIngest(lab)
        sampled = Path(lab.paths.run(run).metrics) / "system.jsonl"
        sampled.parent.mkdir(parents=True)
        sampled.write_text(f"{json.dumps(line(1, 'system/cpu_percent', 'system/memory_mb'))}\n")
        for lines in ([line(1, "a", "loss")], [line(2, "b", "new", "other", "a", "loss"), line(3, "new", "loss")]):
            append_points(lab, run, lines)
            reader.drain(run)
        found = metrics.read(lab, run, None, 100, "step", None)
        summary = runs.get(lab, run).summary
    own = {series["key"]: series["steps"] for series in found["series"] if series["source"] == "http"}
    assert own == {"a": [1, 2], "b": [2], "loss": [1, 2, 3]}
    assert found["keys"] == ["a", "b", "loss", "system/cpu_percent", "system/memory_mb"] == sorted(summary)
    assert summary["loss"]["last"] == 3.0
    assert found["refused"] == {
        "count": 3,  # values: two of `new`, one of `other`
        "first": [{"source": "http", "key": "(more keys)", "why": "a run may have 3 series", "count": 3}],
    }


def test_last_value_is_from_the_process_that_wrote_last(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "parent and child").id
        folder = Path(lab.paths.run(run).metrics)
        folder.mkdir(parents=True)
        for written_at, name in enumerate(("sdk-9-parent.jsonl", "sdk-10-child.jsonl")):
            (folder / name).write_text(f"{json.dumps({'s': 4, 't': 1e9, 'm': {'acc': float(written_at)}})}\n")
            os.utime(folder / name, (1e9 + written_at, 1e9 + written_at))
        MetricIngest(lab).drain(run)
        assert runs.get(lab, run).summary["acc"]["last"] == 1.0


def test_extremes_and_mean_of_an_ended_run_exclude_overwritten_values(tmp_path: Path) -> None:
    told: queue.Queue[str] = queue.Queue()
    with lab_in(tmp_path / "project") as lab:
        little, much = make_run(lab, "little").id, make_run(lab, "much").id
        reader = MetricIngest(lab, told.put)
        for run, count in ((little, 3), (much, 5000)):
            append_points(lab, run, [{"s": step, "t": 1e9, "m": {"loss": -9.0}} for step in range(count)])
            reader.take_batch(run)
            append_points(lab, run, [line(step, "loss", "acc") for step in (*reversed(range(count)), count)])
        reader.start()
        assert reader.finish(little) and not reader.finish(much)
        assert told.get(timeout=60) == much and reader.finish(much)
        reader.close()
        shown = [runs.get(lab, run).summary["loss"] for run in (little, much)]
        assert [(loss["min"], loss["max"], loss["mean"]) for loss in shown] == [(0.0, 3.0, 1.5), (0.0, 5000.0, 2500.0)]
        (_, loss) = metrics.read(lab, little, None, 10, "step", None)["series"]
        assert (loss["count"], loss["min"], loss["last"], loss["last_step"]) == (7, 0.0, 3.0, 3)


def shows_mean(lab: Lab, run_id: str, mean: float) -> bool:
    return bool(runs.get(lab, run_id).summary.get("loss", {}).get("mean") == mean)


def test_extremes_and_mean_of_an_active_run_soon_exclude_overwritten_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_STATISTICS_SECONDS", 0.5)
    with lab_in(tmp_path / "project") as lab:
        run = running_run(lab)
        reader = MetricIngest(lab)
        reader.start()
        for value in (-9.0, 1.0):
            append_points(lab, run, [{"s": step, "t": 1e9, "m": {"loss": value}} for step in range(3)])
            reader.soon(run)
            wait_until(partial(shows_mean, lab, run, value), "the summary to be of what is shown")
        reader.close()


def test_broken_link_beside_metric_files_loses_nothing(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "linked").id
        append_points(lab, run, [line(1, "a")])
        Path(lab.paths.run(run).metrics, "sdk-old.jsonl").symlink_to("gone")
        MetricIngest(lab).drain(run)
        assert "a" in runs.get(lab, run).summary


@pytest.mark.parametrize(
    "steps",
    [
        [-(2**63), 2**63 - 1],
        [2**63 - 2, 2**63 - 1, 5],
        [2**63 - 5, 2**63 - 4, 2**63 - 3, 2**63 - 2, 2**63 - 1],
        [-(2**62), 2**62],
        [2**53 + 1, 2**62 + 1, 0],
    ],
)
def test_every_64_bit_step_is_kept_exactly(tmp_path: Path, steps: list[int]) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "far").id
        append_points(lab, run, [{"s": step, "t": 1e9, "m": {"a": 1.0}} for step in (*steps, 2**63, -(2**63) - 1)])
        MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, ["a"], 100, "step", None)
        lines = list(export(lab, run, "jsonl", None, with_run=False))
    assert found["series"][0]["steps"] == sorted(steps)
    assert [json.loads(text)["step"] for text in "".join(lines).splitlines()] == steps
    assert found["refused"]["count"] == 2


def test_repeated_or_decreasing_steps_are_kept_whatever_their_packed_length() -> None:
    few = [list(steps) for count in (2, 3, 4, 5) for steps in product(range(-1, 5), repeat=count)]
    again = [[step] * count for step in (0, 1, 5, 1000, 123_456) for count in range(2, 80)]
    assert [steps for steps in (*few, *again) if _kept(steps) != steps] == []


def _kept(steps: list[int]) -> list[int]:
    some = array("d", [1e9] * len(steps))
    return unpack(pack(Points(array("q", steps), some, some))).steps.tolist()


@pytest.mark.parametrize("value", [0.5, -0.0, math.nan, math.inf])
def test_single_point_is_packed_like_the_first_of_many(value: float) -> None:
    alone, two = (Points(array("q", [7] * n), array("d", [1e9] * n), array("d", [value] * n)) for n in (1, 2))
    chunk = pack(alone)
    assert repr(unpack(chunk)) == repr(alone)
    assert chunk.levels == pack(two).levels and [*unpack_steps(chunk.steps, 1)] == [7]


@pytest.mark.parametrize("time", [math.nan, math.inf, "Infinity", 1e300, -1e300, 1e18, "noon", None])
def test_line_with_an_invalid_time_is_refused_alone(tmp_path: Path, time: Any) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "when").id
        odd = [{"s": step, "t": time, "m": {"a": 1.0}} for step in range(6)]
        picture = {"s": 1, "t": time, "artifact": {"key": "p", "kind": "image", "path": "p.png"}}
        append_points(lab, run, [*odd, picture, line(9, "a")])
        MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, ["a"], 100, "time", None)
        assert len(metrics.artifacts(lab, run)) == 1
    assert found["series"][0]["steps"] == [9] and found["refused"]["count"] == 6


def test_keys_can_be_repeated_or_comma_separated_and_missing_ones_are_named(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "asked").id
        append_points(lab, run, [line(1, "a", "b", "c,d", "c")])
        MetricIngest(lab).drain(run)

        def asked(*keys: str) -> tuple[list[str], list[str]]:
            found = metrics.read(lab, run, keys, 100, "step", None)
            return [series["key"] for series in found["series"]], found["unknown"]

        assert asked("a,b") == asked("a", "b") == asked("b, a") == (["a", "b"], [])
        assert asked("c,d") == (["c,d"], [])
        assert asked("a,nothing", "c,d") == (["a", "c,d"], ["nothing"])
        assert asked("") == ([], [])
        assert metrics.read(lab, run, None, 100, "step", None)["unknown"] == []
        exported = "".join(export(lab, run, "csv", ["a,b"], with_run=False)).splitlines()
        assert [row.split(",")[0] for row in exported] == ["key", "a", "b"]


def test_points_sent_again_with_their_key_are_stored_once_even_after_a_kill(tmp_path: Path) -> None:
    points = [("a", step, float(step), None) for step in range(2500)]
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "sent").id
        file = Path(lab.paths.run(run).metrics) / "http.jsonl"
        key = IdempotencyKey("k", f"POST /runs/{run}/metrics", "1")

        def send() -> int:
            return metrics.add_points(lab, run, points, 1e9, key)

        assert send() == 2500
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])  # killed here
        MetricIngest(lab).drain(run)
        assert send() == send() == 2500  # the first of these is still unread
        MetricIngest(lab).drain(run)
        size = file.stat().st_size
        assert send() == 2500 and file.stat().st_size == size
        with pytest.raises(Conflict):
            metrics.add_points(lab, run, points[:1], 1e9, replace(key, digest="2"))
        found = metrics.read(lab, run, ["a"], 3000, "step", None)["series"][0]
    assert found["count"] == 2500 and found["steps"] == [*range(2500)]
    assert [point.step for sent in content.splitlines() for point in points_in(sent)] == [*range(2500)]


def test_key_is_refused_for_other_points_even_before_the_first_are_read(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "sent").id
        key = IdempotencyKey("k", f"POST /runs/{run}/metrics", "1")
        other = replace(key, digest="2")
        with limit_file_size(0), pytest.raises(OSError, match="too large"):
            metrics.add_points(lab, run, [("a", 1, 3.0, None)], 1e9, other)  # refused, so the key is still free
        metrics.add_points(lab, run, [("a", 1, 1.0, None)], 1e9, key)
        for _ in range(2):
            with pytest.raises(Conflict):
                metrics.add_points(lab, run, [("a", 1, 2.0, None)], 1e9, other)
            MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, ["a"], 10, "step", None)
    assert found["series"][0]["values"] == [1.0] and not found["refused"]


def test_very_many_metrics_grow_together_and_keep_their_own_points(tmp_path: Path) -> None:
    keys = [f"key/{index}" for index in range(1200)]
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "many").id
        reader = MetricIngest(lab)
        for first in (0, 300, 301, 500):  # fills a chunk, adds to the next one, continues that
            lines = [line(step, *(keys if step % 300 == 0 else keys[::7])) for step in range(first, first + 300)]
            append_points(lab, run, lines)
            reader.drain(run)
        found = {series["key"]: series for series in metrics.read(lab, run, None, 5000, "step", None)["series"]}
    assert [found[key]["count"] for key in keys[:8]] == [1200, 4, 4, 4, 4, 4, 4, 1200]
    assert all(found[key]["steps"] == [0, 300, 600] for key in keys[1:7])
    assert found[keys[1197]]["steps"] == found[keys[1197]]["values"] == [*range(800)]


class Killed(BaseException):
    """Cannot be caught, like a kill."""


def test_very_many_metrics_are_stored_in_batches_and_a_kill_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_KEYS_AT_ONCE", 100)
    monkeypatch.setattr(metric_batch, "MAX_KEYS", 620)
    keys = [f"key/{index:03}" for index in range(650)]
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "many").id
        sent = IdempotencyKey("k", f"POST /runs/{run}/metrics", "1")
        metrics.add_points(lab, run, [("key/000", step, 1.0, None) for step in (7, 8)], 1e9, sent)
        append_points(lab, run, [line(1, *keys), line(2, *keys), {"alert": {"title": "once"}}])
        for stored in (200, 400, 600):
            _take_until_killed(lab, run, monkeypatch, portions=2)
            assert len(metrics.read(lab, run, None, 10, "step", None)["keys"]) == stored
        _take_until_killed(lab, run, monkeypatch, portions=0)
        metrics.add_points(lab, run, [("key/000", step, 1.0, None) for step in (7, 8)], 1e9, sent)
        MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, None, 10, "step", None)
        assert [alert.message for alert in alerts.pending_of_run(lab.db.reader(), run)] == ["once"]
    assert [(series["key"], series["count"]) for series in found["series"]] == [
        ("key/000", 4),
        *((key, 2) for key in keys[1:620]),
    ]
    assert found["refused"]["count"] == 60


def _take_until_killed(lab: Lab, run: str, monkeypatch: pytest.MonkeyPatch, *, portions: int) -> None:
    store, done = metric_batch.MetricBatch.store_points, []

    def store_or_die(*given: Any) -> None:
        if len(done) == portions:
            raise Killed
        done.append(store(*given))

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(metric_batch.MetricBatch, "store_points", store_or_die)
        MetricIngest(lab).drain(run)


def test_stopping_server_does_not_wait_for_very_many_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_KEYS_AT_ONCE", 5)
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "many").id
        append_points(lab, run, [line(1, *(f"key/{index}" for index in range(5000)))])

        def counts() -> list[int]:
            return [series["count"] for series in metrics.read(lab, run, None, 10, "step", None)["series"]]

        first = MetricIngest(lab)
        first.start()
        first.soon(run)
        wait_until(lambda: len(counts()) > 10, "some of them")
        first.close()
        assert len(counts()) < 5000
        monkeypatch.setattr(ingest, "_KEYS_AT_ONCE", 1000)
        MetricIngest(lab).drain(run)
        assert counts() == [1] * 5000


def test_many_points_of_an_ended_run_are_ingested_in_the_background(tmp_path: Path) -> None:
    told: queue.Queue[str] = queue.Queue()
    with lab_in(tmp_path / "project") as lab:
        little, much = make_run(lab, "little").id, make_run(lab, "much").id
        append_points(lab, little, [line(1, "loss")])
        append_points(lab, much, [line(step, "loss") for step in range(10_000)])
        reader = MetricIngest(lab, told.put)
        assert reader.finish(little)
        assert not reader.finish(much) and not metrics.read(lab, much, None, 10, "step", None)["series"]
        reader.start()
        assert told.get(timeout=60) == much and reader.finish(much)
        reader.close()
        counts = [metrics.read(lab, run, None, 10, "step", None)["series"][0]["count"] for run in (little, much)]
    assert counts == [1, 10_000]


def test_half_a_line_at_the_end_of_a_file_is_reported_once(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "cut").id
        folder = Path(lab.paths.run(run).metrics)
        folder.mkdir(parents=True)
        (folder / "sdk-1-a.jsonl").write_text(f'{json.dumps(line(1, "loss"))}\n{{"s":2,"t":1')
        (folder / "sdk-2-b.jsonl").write_text(f"{json.dumps(line(1, 'acc'))}\n")
        for _ in range(2):
            assert MetricIngest(lab).finish(run)
        found = metrics.read(lab, run, None, 10, "step", None)
    assert [series["steps"] for series in found["series"]] == [[1], [1]]
    (said,) = found["refused"]["first"]
    assert (said["key"], said["count"], found["refused"]["count"]) == ("(half a line)", 1, 1)


def test_points_refused_by_a_full_disk_are_refused_completely(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "full").id
        file = Path(lab.paths.run(run).metrics) / "http.jsonl"
        append_points(lab, run, [line(1, "loss")])
        room_for_half = file.stat().st_size * 3 // 2
        with limit_file_size(room_for_half), pytest.raises(OSError, match="too large"):
            append_points(lab, run, [line(2, "loss"), line(3, "loss")])
        append_points(lab, run, [line(4, "loss")])
        MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, None, 100, "step", None)
    assert [series["steps"] for series in found["series"]] == [[1, 4]]
    assert found["refused"] == {}


def test_points_after_a_line_torn_by_a_kill_are_all_stored(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        run = make_run(lab, "torn").id
        append_points(lab, run, [line(1, "loss"), line(2, "loss")])
        file = Path(lab.paths.run(run).metrics) / "http.jsonl"
        file.write_bytes(file.read_bytes()[:-5])
        append_points(lab, run, [line(3, "loss")])
        MetricIngest(lab).drain(run)
        found = metrics.read(lab, run, None, 100, "step", None)
    assert [series["steps"] for series in found["series"]] == [[1, 3]]
