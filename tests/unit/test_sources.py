"""Sources of metrics without the SDK: what they take, what they refuse and say, and that a kill costs nothing."""

from __future__ import annotations

import json
import math
import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from labwright.sidecar.sources.lines import LONGEST, GrowingLines, numbers_in
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.output import OutputSource, may_hold_metrics
from labwright.sidecar.sources.run_metrics import SystemSource
from labwright.sidecar.sources.tensorboard import masked_crc, read_scalars
from tests.support.event_file import event, masked, message, record, simple, tensor
from tests.support.waiting import wait_until

Entries = list[dict[str, Any]]


def read(path: str | Path) -> Entries:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def points(entries: Entries) -> list[tuple[int, dict[str, float]]]:
    return [(entry["s"], entry["m"]) for entry in entries if "m" in entry]


def refusals(entries: Entries) -> dict[str, str]:
    return {entry["refused"]["key"]: entry["refused"]["why"] for entry in entries if "refused" in entry}


class Output:
    """An output file and whoever reads it; `renew` is what a kill and a new monitor come to."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.log = folder / "output.log"
        self.log.touch()
        self.options = options
        self.heard: list[bytes] = []
        self.renew()

    def renew(self) -> None:
        if hasattr(self, "file") and self.file._fd is not None:
            os.close(self.file._fd)
        self.file = MetricFile(str(self.folder / "metrics"), "output", 1)
        self.source = OutputSource(str(self.log), self.file, self.options, (0, 0), self.heard.append, time.time())

    def write(self, data: bytes | str) -> None:
        with self.log.open("ab") as log:
            log.write(data.encode() if isinstance(data, str) else data)

    def look(self, *, last: bool = False) -> None:
        while self.source.look(last=last):
            self.file.flush()
        self.file.flush()

    @property
    def entries(self) -> Entries:
        return read(self.file.path) if os.path.exists(self.file.path) else []


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


def test_a_json_line_is_a_point_at_its_step(output: Output) -> None:
    output.write('hello\n{"step": 3, "loss": 0.2, "val": {"acc": 1}}\n{"global_step": 4.0, "epoch": 1, "loss": NaN}\n')
    output.look()
    assert output.entries[0] == {"source": "output", "attempt": 1, "v": 1}
    (first, second) = points(output.entries)
    assert first == (3, {"loss": 0.2, "val/acc": 1.0})
    assert second[0] == 4 and math.isnan(second[1]["loss"]) and second[1]["epoch"] == 1
    assert abs(output.entries[1]["t"] - time.time()) < 60


def test_points_without_a_step_are_counted_across_a_kill(output: Output) -> None:
    output.write('{"loss": 1}\n{"epoch": 0.5, "loss": 2}\n')
    output.look()
    output.renew()
    output.write('{"loss": 3}\n')
    output.look()
    assert [step for step, _ in points(output.entries)] == [0, 1, 2]


def test_lines_without_a_step_continue_after_the_highest_step(output: Output) -> None:
    output.write('{"loss": 1}\n{"loss": 2}\n{"epoch": 0, "val": 1}\n{"loss": 3}\n{"epoch": 1, "val": 1}\n{"loss": 4}\n')
    output.look()
    assert [step for step, found in points(output.entries) if "loss" in found] == [0, 1, 2, 3]


def test_an_epoch_is_not_a_step_if_epochs_are_a_metric(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("".join(f'{{"epoch": {epoch}, "loss": {epoch}}}\n' for epoch in (0.5, 1.0, 1.5)))
    output.look()
    output.renew()
    output.write(
        '{"epoch": 2, "msg": "validated", "val": 2}\n{\'epoch\': 2.0, \'test\': 2}\nEpoch 3: acc 3\nEpoch 4/4\n'
    )
    output.look()
    assert [(step, found["epoch"]) for step, found in points(output.entries)] == [
        *((0, 0.5), (1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0), (5, 3.0))
    ]


def test_half_lines_bars_colours_and_binary_data_are_read(output: Output) -> None:
    output.write(b'\r 10%|##  |\r 20%|### |\r{"step": 1, "a": 1}\r\n\x1b[32m{"step": 2, "a"')
    output.look()
    output.write(b': 2}\x1b[0m\n\x00\xff\xfe{"step": 9}\n' + os.urandom(5000) + b'\n{"step": 3, "a": 3}')
    output.look()
    assert [step for step, _ in points(output.entries)] == [1, 2]
    output.look(last=True)
    assert [step for step, _ in points(output.entries)] == [1, 2, 3]


def test_a_value_that_is_not_a_number_is_reported_once(output: Output) -> None:
    output.write('{"step": 1, "loss": 1, "mood": "good", "list": [1]}\n' * 3 + '{"step": "x", "loss": 1}\n')
    output.look()
    assert len(points(output.entries)) == 3
    said = refusals(output.entries)
    assert said["mood"] == said["list"] == "not a number" and "step is not a whole number" in said["(a line)"]
    assert sum("refused" in entry for entry in output.entries) == 3
    output.renew()
    output.write('{"step": 1, "mood": "good"}\n')
    output.look()
    assert sum("refused" in entry for entry in output.entries) == 3


def test_a_structured_log_line_is_not_a_metric(output: Output) -> None:
    output.write('{"level": "info", "msg": "ready", "port": 80}\n{}\n[1]\n{"a": {}}\n{broken}\n{"x": null}\n')
    output.look()
    assert output.entries == []


def test_a_line_of_ten_megabytes_is_refused_and_the_next_is_taken(output: Output) -> None:
    output.write(b'{"step": 1, "' + b"k" * (10 << 20) + b'": 1}\n{"step": 2, "loss": 1}\n')
    output.look()
    assert points(output.entries) == [(2, {"loss": 1.0})]
    assert str(LONGEST) in refusals(output.entries)["(a line)"]


def test_many_keys_long_keys_and_steps_below_zero(output: Output) -> None:
    for part in range(20):
        output.write(json.dumps({"step": -1, **{f"key{part}-{number}": number for number in range(5000)}}) + "\n")
    output.write(json.dumps({"step": 2, "k" * 1000: 1.0, "loss": 2**5000, "fine": 1}) + "\n")
    output.look()
    kept = [key for _, numbers in points(output.entries) for key in numbers]
    assert len(kept) == 10_000 and {step for step, _ in points(output.entries)} == {-1}
    said = refusals(output.entries)
    assert "10000" in said["(more keys)"] and said["k" * 300] == "the key is too long" and "loss" in said


def test_deep_nesting_does_no_harm(output: Output) -> None:
    output.write('{"a":' * 50_000 + "1" + "}" * 50_000 + '\n{"step": 1, "a": 1}\n')
    output.look()
    assert points(output.entries) == [(1, {"a": 1.0})]


def test_a_kill_at_any_byte_neither_loses_nor_doubles_a_point(output: Output) -> None:
    wanted = list(range(200))
    output.write("".join(json.dumps({"step": step, "loss": step, "word": "x"}) + "\n" for step in wanted))
    output.look()
    whole = Path(output.file.path).read_bytes()
    for cut in range(0, len(whole), 97):
        Path(output.file.path).write_bytes(whole[:cut])
        output.renew()
        output.look()
        assert [step for step, _ in points(output.entries)] == wanted


def test_much_output_without_metrics_is_not_read_again(output: Output) -> None:
    output.write(b"words\n" * 2_000_000)
    output.look()
    output.renew()
    output.heard.clear()
    output.look()
    assert len(output.heard) < 1_000_000


def test_a_full_disk_delays_points_and_loses_none(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    output.write("".join(f'{{"step": {step}, "a": 1}}\n' for step in range(1000)))
    real, room = os.write, [700]

    def write(fd: int, data: bytes) -> int:
        if room[0] == 0:
            raise OSError(28, "No space left on device")
        part, room[0] = data[: room[0]], 0
        return real(fd, part)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        output.look()
        assert output.file.is_behind
    output.look()
    assert [step for step, _ in points(output.entries)] == list(range(1000))


def test_only_output_that_may_hold_metrics_is_read(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    assert not may_hold_metrics(str(log), {})
    for text, worth in [("", False), ("hello\n", False), ("{", True), ("Traceback (most", True), ("x" * 100_000, True)]:
        log.write_text(text)
        assert may_hold_metrics(str(log), {}) is worth
    log.write_text("a=1\n")
    assert may_hold_metrics(str(log), {"key_value": True})


def test_a_plausible_time_in_the_line_is_used(tmp_path: Path) -> None:
    found = numbers_in({"step": 1, "_timestamp": 1000.5, "time": 3.0}, since=1000, until=1001)
    assert found is not None and (found.time, found.values) == (1000.5, {"time": 3.0})


def test_lines_of_a_growing_file_have_their_end_position(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"ab\ncd\r\nef")
    lines = GrowingLines(str(file), 0)
    assert list(lines.read(4)) == [(b"ab\n", 3)]
    assert list(lines.read(100)) == [(b"cd\r\n", 7)]
    assert list(lines.read(100, last=True)) == [(b"ef", 9)]


def test_after_a_jump_the_rest_of_a_line_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"ab\ncdef\n" + b"x" * (LONGEST + 5) + b"\ngh\nij")
    lines = GrowingLines(str(file), 0)
    lines.jump(5)
    assert list(lines.read(4)) == []
    lines.jump(9)  # into the long one
    assert [line for line, _ in lines.read(LONGEST * 2)] == [b"gh\n"]
    lines.jump(file.stat().st_size - 1)
    assert list(lines.read(100, last=True)) == []


def test_scalars_of_every_kind_are_read_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    number, content = struct.pack("<f", 0.5), struct.pack("<d", 0.25)
    path.write_bytes(
        event(10.0, 0)
        + event(11.0, 1, simple("loss", 0.5), simple("acc", math.nan))
        + event(12.0, 2, tensor("packed", 1, message(5, number)), tensor("content", 2, message(4, content)))
        + event(13.0, -1, tensor("whole", 9, message(10, b"\x07")))
        + event(14.0, 3, tensor("histogram", 1, message(5, number * 30)), tensor("text", 7, message(8, b"words")))
        + event(15.0, 4, message(1, b"image") + message(4, b"png" * 200_000))
        + event(16.0, 5, simple("last", 1.0))[:-3]
    )
    found = list(read_scalars(str(path), 0, path.stat().st_size))
    assert not any(record.broken for record in found)
    values = {(record.step, tag): value for record in found for tag, value in record.values.items()}
    assert math.isnan(values.pop((1, "acc")))
    assert values == {(1, "loss"): 0.5, (2, "packed"): 0.5, (2, "content"): 0.25, (-1, "whole"): 7.0}
    assert [record.time for record in found] == [10.0, 11.0, 12.0, 13.0, 14.0, 0.0]
    assert found[-1].end == path.stat().st_size - len(event(16.0, 5, simple("last", 1.0))) + 3


def test_the_checksum_is_the_real_one() -> None:
    assert masked_crc(b"123456789") == masked(b"123456789")
    assert masked_crc(b"") == 0xA282EAD8


def test_a_broken_event_file_is_reported_and_read_up_to_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "tfevents"
    good, bad = event(1.0, 1, simple("a", 1.0)), bytearray(event(1.0, 2, simple("a", 2.0)))
    bad[30] ^= 1
    rubbish = record(b"\xff" * 40)
    path.write_bytes(good + bytes(bad) + rubbish + good + b"\x01" * 100)
    found = list(read_scalars(str(path), 0, path.stat().st_size))
    assert [bool(record.broken) for record in found] == [False, True, True, False, True]
    assert "length" in found[-1].broken
    path.write_bytes(os.urandom(100_000))
    assert len(list(read_scalars(str(path), 0, 100_000))) == 1


def test_the_machine_is_sampled(tmp_path: Path) -> None:
    file = MetricFile(str(tmp_path), "system", 1)
    source = SystemSource(file, time.time(), 0.01, str(tmp_path), lambda: {os.getpid()})
    began, used = time.monotonic(), time.process_time() + 0.1
    while time.process_time() < used:
        math.sqrt(2)
    share = 100 * 0.1 / (time.monotonic() - began)  # a busy machine lets us have less than a whole core
    source.look()
    file.flush()
    ((_, numbers),) = points(read(file.path))
    assert share / 3 < numbers["system/cpu_percent"] < 400
    assert numbers["system/memory_mb"] > 5 and numbers["system/disk_free_gb"] > 0


def test_ended_processes_give_no_sample(tmp_path: Path) -> None:
    file = MetricFile(str(tmp_path), "system", 1)
    source = SystemSource(file, time.time(), 0.01, str(tmp_path), set)

    def sampled() -> bool:
        source.look()
        return file.flush()

    wait_until(sampled, "a sample")
    assert {key for _, numbers in points(read(file.path)) for key in numbers} == {"system/disk_free_gb"}
