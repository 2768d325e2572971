"""Softmax regression on small pictures of digits, drawn with noise; argparse and numpy.

Prints one JSON object per line, with the training and validation figures of each epoch.
"""

from __future__ import annotations

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the problem is so small that a second core would slow it down

import numpy as np

PIXELS = 64
CLASSES = 10
SIZE = 6_000


def make_digits(rng: np.random.Generator, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Each class is one fixed picture; a sample is that picture under noise."""
    pictures = np.random.default_rng(0).random((CLASSES, PIXELS))
    labels = rng.integers(0, CLASSES, SIZE)
    return pictures[labels] + noise * rng.standard_normal((SIZE, PIXELS)), labels


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def evaluate(weights: np.ndarray, pictures: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    chances = softmax(pictures @ weights)
    loss = -np.log(chances[np.arange(len(labels)), labels] + 1e-12).mean()
    return float(loss), float((chances.argmax(axis=1) == labels).mean())


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    learning = parser.add_argument_group("learning")
    learning.add_argument("--lr", type=float, default=0.1, help="learning rate")
    learning.add_argument("--batch-size", type=int, default=64, help="pictures per step")
    learning.add_argument("--weight-decay", type=float, default=0.0)
    learning.add_argument("--optimizer", choices=["sgd", "momentum"], default="sgd")
    parser.add_argument("--epochs", type=int, default=25, help="passes over the data")
    parser.add_argument("--max-steps", type=int, default=None, help="stop after this many steps")
    parser.add_argument("--noise", type=float, default=0.8, help="amount of noise in the pictures")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    rng = np.random.default_rng(options.seed)
    pictures, labels = make_digits(rng, options.noise)
    held_out = SIZE // 5
    weights, speed = np.zeros((PIXELS, CLASSES)), np.zeros((PIXELS, CLASSES))
    step, kept = 0, 0.9 if options.optimizer == "momentum" else 0.0
    for epoch in range(1, options.epochs + 1):
        order = held_out + rng.permutation(SIZE - held_out)
        for start in range(0, len(order), options.batch_size):
            chosen = order[start : start + options.batch_size]
            errors = softmax(pictures[chosen] @ weights)
            errors[np.arange(len(chosen)), labels[chosen]] -= 1
            gradient = pictures[chosen].T @ errors / len(chosen) + options.weight_decay * weights
            speed = kept * speed + gradient
            weights -= options.lr * speed
            step += 1
            if step == options.max_steps:
                break
        train_loss, _ = evaluate(weights, pictures[held_out:], labels[held_out:])
        val_loss, val_acc = evaluate(weights, pictures[:held_out], labels[:held_out])
        record = {"step": step, "epoch": epoch, "train_loss": train_loss, "val_loss": val_loss, "val_acc": val_acc}
        print(json.dumps(record), flush=True)
        if step == options.max_steps:
            break


if __name__ == "__main__":
    main()
