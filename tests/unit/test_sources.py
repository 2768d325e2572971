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

from labwright.sidecar.sources import patterns
from labwright.sidecar.sources.lines import LONGEST, GrowingLines
from labwright.sidecar.sources.metric_file import MetricFile
from labwright.sidecar.sources.numbers import numbers_in
from labwright.sidecar.sources.output import OutputSource, is_worth_a_look
from labwright.sidecar.sources.system import SystemSource
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


def test_a_json_line_is_a_point_by_its_step(output: Output) -> None:
    output.write('hello\n{"step": 3, "loss": 0.2, "val": {"acc": 1}}\n{"global_step": 4.0, "epoch": 1, "loss": NaN}\n')
    output.look()
    assert output.entries[0] == {"source": "output", "attempt": 1, "v": 1}
    (first, second) = points(output.entries)
    assert first == (3, {"loss": 0.2, "val/acc": 1.0})
    assert second[0] == 4 and math.isnan(second[1]["loss"]) and second[1]["epoch"] == 1
    assert abs(output.entries[1]["t"] - time.time()) < 60


def test_without_a_step_points_are_counted_also_across_a_kill(output: Output) -> None:
    output.write('{"loss": 1}\n{"epoch": 0.5, "loss": 2}\n')
    output.look()
    output.renew()
    output.write('{"loss": 3}\n')
    output.look()
    assert [step for step, _ in points(output.entries)] == [0, 1, 2]


def test_lines_without_a_step_go_on_after_the_highest_and_not_after_the_last(output: Output) -> None:
    output.write('{"loss": 1}\n{"loss": 2}\n{"epoch": 0, "val": 1}\n{"loss": 3}\n{"epoch": 1, "val": 1}\n{"loss": 4}\n')
    output.look()
    assert [step for step, found in points(output.entries) if "loss" in found] == [0, 1, 2, 3]


def test_where_epochs_are_a_metric_an_epoch_alone_is_no_step_also_after_a_kill(tmp_path: Path) -> None:
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


def test_half_lines_bars_colours_and_binary_are_taken_as_they_come(output: Output) -> None:
    output.write(b'\r 10%|##  |\r 20%|### |\r{"step": 1, "a": 1}\r\n\x1b[32m{"step": 2, "a"')
    output.look()
    output.write(b': 2}\x1b[0m\n\x00\xff\xfe{"step": 9}\n' + os.urandom(5000) + b'\n{"step": 3, "a": 3}')
    output.look()
    assert [step for step, _ in points(output.entries)] == [1, 2]
    output.look(last=True)
    assert [step for step, _ in points(output.entries)] == [1, 2, 3]


def test_what_is_no_number_is_said_once(output: Output) -> None:
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


def test_a_structured_log_is_no_metric(output: Output) -> None:
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


def test_deep_nesting_ends_nothing(output: Output) -> None:
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


def test_pairs_are_taken_where_they_are_switched_on(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("step=5 train/loss=0.25 lr: 1e-3 acc = 93.5% eta: 0:30 name=x took=3s nan_count=nan\nplain words\n")
    output.look()
    ((step, numbers),) = points(output.entries)
    assert step == 5 and numbers.pop("nan_count") != numbers.get("nan_count")
    assert numbers == {"train/loss": 0.25, "lr": 0.001, "acc": 93.5}


@pytest.mark.parametrize(
    "line",
    [
        "Namespace(lr=0.1, epochs=3, model=Net(dim=64))",
        "args: Namespace(lr=0.1, epochs=3,",
        "    adam_beta1=0.9,",
        "AdamW(lr=0.001) on Linear(in_features=10, out_features=5)",
        "see https://example.org/run?step=3&loss=0.5 and http://localhost:8080/",
        "GET /runs?limit=5&offset=10",
        "listening on localhost:8080",
        "Using device: cuda:0",
        "rank 0 on xpu:1",
        "connected to node01.cluster:29500",
        "worker@host:22",
        "train.py:42 in main",
        "python train.py --lr=0.1",
        "at 2026-01-01T12:30:45",
        "version=1.2.3",
        "addr=10.0.0.1:29500",
        "me@10.0.0.1:22",
        "epoch 3 of 10, batch 64",
        "loss3 and acc7, 2 losses",
        "tok/s=12,345 loss: 0,25",
        "date=2026-01-02",
        "\x9a\x00h=7 \x13b: 3\x02",
    ],
)
def test_what_only_looks_like_pairs_is_left_alone(tmp_path: Path, line: str) -> None:
    output = Output(tmp_path, key_value=True)
    output.write(f"{line}\n")
    output.look()
    assert points(output.entries) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Epoch 3 (lr=0.1): loss=0.5", {"lr": 0.1, "loss": 0.5}),
        ("10/10 [00:01<00:00, 9.5it/s, loss=0.25]", {"loss": 0.25}),
        ("Trainer(seed=1) says loss: 2, val.acc:0.5", {"loss": 2.0, "val.acc": 0.5}),
        ("saved to s3://x/y?v=1 acc=0.5", {"acc": 0.5}),
        ("loss:   0.3456  acc   =  0.5", {"loss": 0.3456, "acc": 0.5}),
        ("epoch 3 train_loss 0.3 val_acc 0.91", {"train_loss": 0.3, "val_acc": 0.91}),
        (
            "Epoch: [0][10/100] Loss 2.3e+00 (2.5e+00) Acc@1 71.5 Acc@5: 90",
            {"Loss": 2.3, "Acc@1": 71.5, "Acc@5": 90.0, "epoch": 0.0},
        ),
        ("{'val_acc': 0.5, 'epoch': 3}", {"val_acc": 0.5}),
        ("step 0: train loss 4.2, val loss 4.3", {"train_loss": 4.2, "val_loss": 4.3}),
        ("Train Epoch: 3 Loss: 0.5, Best Val Acc: 90%", {"Loss": 0.5, "Best_Val_Acc": 90.0}),
        ("the accuracy is 0.5, mean loss (eval): 0.2", {"accuracy": 0.5, "eval": 0.2}),
        ("\x07\x1b[1mloss=0.5\x1b(B\x0f \x1b[32macc=0.25\x1b[m", {"loss": 0.5, "acc": 0.25}),
        ("loss=0.5,acc=0.25, lr=1e-3 - eta 3", {"loss": 0.5, "acc": 0.25, "lr": 0.001}),
    ],
)
def test_pairs_beside_them_are_taken(tmp_path: Path, line: str, found: dict[str, float]) -> None:
    output = Output(tmp_path, key_value=True)
    output.write(f"{line}\n")
    output.look()
    assert [values for _, values in points(output.entries)] == [found]


@pytest.mark.parametrize(
    ("line", "step", "found"),
    [
        ("iter 50: loss 1.9, time 12.5ms", 50, {"loss": 1.9}),
        ("step 100: train loss 1.9, val loss 2.0", 100, {"train_loss": 1.9, "val_loss": 2.0}),
        ("Step: 100 loss: 0.4", 100, {"loss": 0.4}),
        ("step:1000/4578 train_loss:3.1 step_avg:10", 1000, {"train_loss": 3.1, "step_avg": 10.0}),
        ("Epoch 1/3 - loss: 0.5", 1, {"loss": 0.5}),
        ("[Epoch 007] Iteration 12, loss = 0.34", 12, {"loss": 0.34, "epoch": 7.0}),
        ("Epoch: 3 | val_acc: 0.9", 3, {"val_acc": 0.9}),
        ("Epoch 3, accuracy: 9500/10000 (95%), loss: 0.5", 3, {"accuracy": 9500.0, "loss": 0.5}),
        ("Epoch 2 [640/60000 (1%)] GLOBAL_STEP=9 loss=2", 9, {"loss": 2.0, "epoch": 2.0}),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3", 0, {"Loss": 2.3, "epoch": 1.0}),
        ("Epoch [2/3], Step [100/600], Loss: 0.25", 0, {"Loss": 0.25, "epoch": 2.0}),
        ("| epoch   1 |   200/ 2983 batches | loss  7.63", 0, {"loss": 7.63, "epoch": 1.0}),
        ("Epoch 1, Batch 100, loss: 0.5", 0, {"loss": 0.5, "epoch": 1.0}),
        ("| epoch 001:    100 / 1000 loss=10.5", 0, {"loss": 10.5, "epoch": 1.0}),
        ("Epoch 2/3 - 100/500 - loss: 0.5", 0, {"loss": 0.5, "epoch": 2.0}),
        ("{'loss': 0.5, 'epoch': 0.04}", 0, {"loss": 0.5, "epoch": 0.04}),
        (
            "{'loss': '0.5', 'learning_rate': '5e-05', 'epoch': '0.04', 'torch': '2.9.1'}",
            0,
            {"loss": 0.5, "learning_rate": 5e-05, "epoch": 0.04},
        ),
        ("best epoch 7: val_acc 0.9", 0, {"val_acc": 0.9}),
        ("epoch 1.5, step 1,000, loss 3", 0, {"loss": 3.0}),
    ],
)
def test_steps_are_read_as_they_are_printed_unless_each_epoch_begins_them_anew(
    tmp_path: Path, line: str, step: int, found: dict[str, float]
) -> None:
    output = Output(tmp_path, key_value=True)
    output.write(f"{line}\nEpoch 9/9\nResumed from step 300\n")
    output.look()
    assert points(output.entries) == [(step, found)]


def test_an_average_is_another_metric_than_what_it_is_of(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("loss: 0.5\nAccuracy: 50.9%, Avg loss: 2.15\nLast reward: 10.0\tAverage reward: 9.5\n")
    output.look()
    assert points(output.entries) == [
        (0, {"loss": 0.5}),
        (1, {"Accuracy": 50.9, "Avg_loss": 2.15}),
        (2, {"Last_reward": 10.0, "Average_reward": 9.5}),
    ]


@pytest.mark.parametrize("is_killed", [False, True])
def test_steps_that_turn_out_to_begin_anew_with_each_epoch_cover_none_before(tmp_path: Path, is_killed: bool) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("Loaded the weights of epoch 9, step 900\nEpoch 1, Step 100, loss: 5\nEpoch 1, Step 200, loss: 4\n")
    output.look()
    if is_killed:
        output.renew()
    output.write("Epoch 2, Step 100, loss: 3\nEpoch 2, Step 200, loss: 2\nEpoch 3, Step 900, loss: 1\n")
    output.look()
    assert [(step, found["loss"]) for step, found in points(output.entries)] == [
        (100, 5), (200, 4), (201, 3), (202, 2), (203, 1),
    ]  # fmt: skip


def test_steps_that_go_on_from_epoch_to_epoch_stay_as_they_are_printed(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("lr=0.1\nseed=3\nEpoch 0 | iter 0 | loss 5\nEpoch 0 | iter 1 | loss 4\nEpoch 0 | iter 1 | acc 0.2\n")
    output.write("Validation: score=0.3\nEpoch 1 | iter 2 | loss 3\nEpoch 1 | global_step 2 | acc 0.4\n")
    output.look()
    steps = [step for step, found in points(output.entries) if "epoch" in found]
    assert steps == [0, 1, 1, 2, 2]


def test_pairs_are_off_by_default(output: Output) -> None:
    output.write("step=5 loss=0.25\n")
    output.look()
    assert output.entries == []


def test_patterns_name_their_numbers(tmp_path: Path) -> None:
    pattern = r"Epoch (?P<step>\d+): loss is (?P<loss>\S+)"
    output = Output(tmp_path, patterns=[pattern])
    output.write("Epoch 3: loss is 0.5\nEpoch 4: loss is big\nsomething=1\n")
    output.look()
    assert points(output.entries) == [(3, {"loss": 0.5})] and refusals(output.entries) == {"loss": "not a number"}


def test_a_pattern_that_fits_what_is_no_number_says_so(tmp_path: Path) -> None:
    output = Output(tmp_path, patterns=[r"acc (?P<acc>\S+)"])
    output.write("acc 93.5%\nacc soon\n")
    output.look()
    assert points(output.entries) == [] and refusals(output.entries) == {"acc": "not a number"}


def test_a_pattern_that_would_take_years_is_given_up_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "_PATIENCE_SECONDS", 0.05)
    output = Output(tmp_path, patterns=[r"(?P<x>(\d+)+)$", r"loss (?P<loss>\S+)"])
    output.write(f"{'1' * 60}x\n" + f"{'1' * 60}x loss 0.5\n" + '{"loss": 0.25}\n')
    output.look()
    assert points(output.entries) == [(0, {"loss": 0.5}), (1, {"loss": 0.25})]
    assert "took too long" in refusals(output.entries)["(a pattern)"]


def test_only_output_that_may_hold_something_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    assert not is_worth_a_look(str(log), {})
    for text, worth in [("", False), ("hello\n", False), ("{", True), ("Traceback (most", True), ("x" * 100_000, True)]:
        log.write_text(text)
        assert is_worth_a_look(str(log), {}) is worth
    log.write_text("a=1\n")
    assert is_worth_a_look(str(log), {"key_value": True})


def test_a_time_in_the_line_counts_if_it_is_a_time(tmp_path: Path) -> None:
    found = numbers_in({"step": 1, "_timestamp": 1000.5, "time": 3.0}, since=1000, until=1001)
    assert found is not None and (found.time, found.values) == (1000.5, {"time": 3.0})


def test_lines_of_a_growing_file_carry_their_end(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"ab\ncd\r\nef")
    lines = GrowingLines(str(file), 0)
    assert list(lines.read(4)) == [(b"ab\n", 3)]
    assert list(lines.read(100)) == [(b"cd\r\n", 7)]
    assert list(lines.read(100, last=True)) == [(b"ef", 9)]


def test_after_a_jump_the_rest_of_a_cut_line_is_no_line(tmp_path: Path) -> None:
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


def test_a_broken_event_file_is_said_and_read_no_further_than_is_safe(tmp_path: Path) -> None:
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


def test_nothing_is_said_of_what_ended_processes_take(tmp_path: Path) -> None:
    file = MetricFile(str(tmp_path), "system", 1)
    source = SystemSource(file, time.time(), 0.01, str(tmp_path), set)

    def sampled() -> bool:
        source.look()
        return file.flush()

    wait_until(sampled, "a sample")
    assert {key for _, numbers in points(read(file.path)) for key in numbers} == {"system/disk_free_gb"}
