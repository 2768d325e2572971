"""What the reader of printed metrics finds in small logs, and what it leaves alone."""

from __future__ import annotations

from labwright.sidecar.printed import PrintedReader

Series = dict[str, list[tuple[int | None, float]]]

METRICS: dict[str, tuple[str, Series]] = {
    "two-word names": ("step 3: train loss 1.25, val loss 1.5\n", {"train_loss": [(3, 1.25)], "val_loss": [(3, 1.5)]}),
    "equals signs": ("epoch=2 loss=0.5 acc=0.75\n", {"loss": [(2, 0.5)], "acc": [(2, 0.75)]}),
    "a dict with wrapped numbers": (
        "{'epoch': 1, 'loss': np.float64(0.5), 'auc': tensor(0.9)}\n",
        {"loss": [(1, 0.5)], "auc": [(1, 0.9)]},
    ),
    "a ratio": ("Test set: Accuracy: 45/60 (75%)\n", {"test_Accuracy": [(None, 0.75)]}),
    "rounds of boosting": ("[4]\ttrain-auc:0.91\teval-auc:0.88\n", {"train_auc": [(4, 0.91)], "eval_auc": [(4, 0.88)]}),
    "rank 0 counts": (
        "[rank1]: step 1 loss 2.5\n[rank0]: step 1 loss 2.25\n[rank1]: step 2 loss 2.0\n",
        {"loss": [(1, 2.25)]},
    ),
    "CSV": ("epoch,val_loss,seconds\n1,0.5,3.1\n2,0.25,3.2\n", {"val_loss": [(1, 0.5), (2, 0.25)]}),
    "a box whose step comes last": (
        "-----------\n| train/ |    |\n|  loss | 4.5 |\n| total_timesteps | 64 |\n-----------\n",
        {"train/loss": [(64, 4.5)]},
    ),
    "nan": ("step 7: loss=nan\n", {"loss": [(7, float("nan"))]}),
    "redraws of a bar count once": (
        "\rEpoch 1:  50%|##   | 1/2 [00:01<00:01, 1.0it/s, loss=3.5]"
        "\rEpoch 1: 100%|#####| 2/2 [00:02<00:00, loss=3.0]\n",
        {"loss": [(1, 3.0)]},
    ),
    "an unknown name that repeats beside a step": (
        "".join(f"step {step} wobble=0.{step}5\n" for step in range(1, 4)),
        {"wobble": [(1, 0.15), (2, 0.25), (3, 0.35)]},
    ),
}
OTHERS = {
    "settings": "Namespace(lr=0.1, loss_weight=2.0, epochs=5)\nbatch_size: 64\nseed = 3\nConfig loss: 1.0\n",
    "pip": "Collecting torch==2.1.0\n  Downloading torch-2.1.0.whl (670.2 MB)\nSuccessfully installed torch-2.1.0\n",
    "a traceback": 'Traceback (most recent call last):\n  File "train.py", line 42, in step\nValueError: got 3\n',
    "a download": "\rmodel.bin:  37%|###   | 370M/1.00G [00:12<00:20, 31.0MB/s]\n",
    "a table of the driver": "| N/A   34C    P0    52W / 300W |   1234MiB / 16160MiB |     12%      Default |\n",
    "a model summary": "| 0 | encoder | Linear | 1.5 K |\nTotal params: 1,512\nTrainable params: 1,512\n",
    "numbers without names": "0 0.5\n1 0.25\n2 0.125\n",
    "times": "step 1 time 0.25s eta 0:10:00\nstep 2 time 0.26s eta 0:09:00\nstep 3 time 0.27s eta 0:08:00\n",
}


def read(text: str) -> Series:
    reader = PrintedReader()
    found: Series = {}
    for key, step, value in [*reader.feed(text.encode()), *reader.close()]:
        found.setdefault(key, []).append((step, value))
    return found


def test_metrics_are_found_at_their_steps() -> None:
    wrong = {name: repr(read(log)) for name, (log, expected) in METRICS.items() if repr(read(log)) != repr(expected)}
    assert not wrong


def test_nothing_is_invented() -> None:
    wrong = {name: read(log) for name, log in OTHERS.items() if read(log)}
    assert not wrong


def test_blocks_may_end_anywhere() -> None:
    for name, (log, _) in METRICS.items():
        reader, points = PrintedReader(), []
        for byte in log.encode():
            points += reader.feed(bytes([byte]))
        points += reader.close()
        expected = PrintedReader()
        assert repr(points) == repr([*expected.feed(log.encode()), *expected.close()]), name


def test_progress_shows_the_outermost_counter() -> None:
    reader = PrintedReader()
    reader.feed(b"Epoch 3/10: loss=0.5\n")
    assert reader.progress and reader.progress[:3] == (3, 10, "epoch")
