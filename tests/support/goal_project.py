"""A project whose script has flags of all kinds, for tests that read goals."""

from __future__ import annotations

from typing import Any

from labwright.planning.goals import GoalReading

TRAIN = """
import argparse, json
WIDTH = 3
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=0.1)
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--weight-decay", type=float, default=0.01)
p.add_argument("--dropout", type=float, default=0.2)
p.add_argument("--label-smoothing", type=float, default=0.0)
p.add_argument("--hidden", type=int, default=16)
p.add_argument("--num-layers", type=int, default=2)
p.add_argument("--optimizer", choices=["sgd", "adam", "adamw"], default="sgd")
p.add_argument("--schedule", choices=["constant", "cosine"], default="constant")
p.add_argument("--amp", action="store_true")
p.add_argument("--warmup-steps", type=int, default=10)
p.add_argument("--epochs", type=int, default=10)
p.add_argument("--max-steps", type=int, default=None)
p.add_argument("--seed", type=int, default=0)
args = p.parse_args()
for step in range(3):
    print(json.dumps({"step": step, "train_loss": 1.0, "val_loss": 1.0, "val_acc": 0.5}))
"""


def varied_project(reading: GoalReading) -> dict[str, list[Any]]:
    return {variation.flag: list(variation.values) for variation in reading.variations}
