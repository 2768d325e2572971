"""Numbers in lines for people: pairs such as `loss: 0.25`, and what patterns of one's own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.sidecar.sources import output as output_module
from tests.unit.test_sources import Output, points, refusals


def test_pairs_are_read_if_enabled(tmp_path: Path) -> None:
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
def test_text_that_looks_like_pairs_is_skipped(tmp_path: Path, line: str) -> None:
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
def test_pairs_beside_such_text_are_read(tmp_path: Path, line: str, found: dict[str, float]) -> None:
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
def test_printed_steps_are_used_unless_they_restart_in_each_epoch(
    tmp_path: Path, line: str, step: int, found: dict[str, float]
) -> None:
    output = Output(tmp_path, key_value=True)
    output.write(f"{line}\nEpoch 9/9\nResumed from step 300\n")
    output.look()
    assert points(output.entries) == [(step, found)]


def test_an_average_is_a_separate_metric(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("loss: 0.5\nAccuracy: 50.9%, Avg loss: 2.15\nLast reward: 10.0\tAverage reward: 9.5\n")
    output.look()
    assert points(output.entries) == [
        (0, {"loss": 0.5}),
        (1, {"Accuracy": 50.9, "Avg_loss": 2.15}),
        (2, {"Last_reward": 10.0, "Average_reward": 9.5}),
    ]


@pytest.mark.parametrize("is_killed", [False, True])
def test_steps_that_restart_in_each_epoch_overwrite_nothing(tmp_path: Path, is_killed: bool) -> None:
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


def test_steps_that_continue_over_epochs_stay_as_printed(tmp_path: Path) -> None:
    output = Output(tmp_path, key_value=True)
    output.write("lr=0.1\nseed=3\nEpoch 0 | iter 0 | loss 5\nEpoch 0 | iter 1 | loss 4\nEpoch 0 | iter 1 | acc 0.2\n")
    output.write("Validation: score=0.3\nEpoch 1 | iter 2 | loss 3\nEpoch 1 | global_step 2 | acc 0.4\n")
    output.look()
    steps = [step for step, found in points(output.entries) if "epoch" in found]
    assert steps == [0, 1, 1, 2, 2]


def test_pairs_are_off_by_default(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.write("step=5 loss=0.25\n")
    output.look()
    assert output.entries == []


def test_named_groups_of_patterns_become_metrics(tmp_path: Path) -> None:
    pattern = r"Epoch (?P<step>\d+): loss is (?P<loss>\S+)"
    output = Output(tmp_path, patterns=[pattern])
    output.write("Epoch 3: loss is 0.5\nEpoch 4: loss is big\nsomething=1\n")
    output.look()
    assert points(output.entries) == [(3, {"loss": 0.5})] and refusals(output.entries) == {"loss": "not a number"}


def test_a_pattern_that_matches_text_is_reported(tmp_path: Path) -> None:
    output = Output(tmp_path, patterns=[r"acc (?P<acc>\S+)"])
    output.write("acc 93.5%\nacc soon\n")
    output.look()
    assert points(output.entries) == [] and refusals(output.entries) == {"acc": "not a number"}


def test_a_very_slow_pattern_is_dropped_and_the_rest_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "_PATIENCE_SECONDS", 0.05)
    output = Output(tmp_path, patterns=[r"(?P<x>(\d+)+)$", r"loss (?P<loss>\S+)"])
    output.write(f"{'1' * 60}x\n" + f"{'1' * 60}x loss 0.5\n" + '{"loss": 0.25}\n')
    output.look()
    assert points(output.entries) == [(0, {"loss": 0.5}), (1, {"loss": 0.25})]
    assert "took too long" in refusals(output.entries)["(a pattern)"]
