"""Train a small neural network on two noisy half-moons, using only the standard library.

Prints one JSON object per line: `{"step": ..., "loss": ...}` while it trains, then one with the accuracy on
unseen points.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass

Point = tuple[float, float]
Sample = tuple[Point, int]  # position, and the moon it belongs to

CLASSES = 2
HIDDEN = 16
NOISE = 0.15


@dataclass
class Network:
    """Two numbers in, one hidden layer, one probability out."""

    inner: list[list[float]]  # a row for each hidden unit: two weights and a bias
    outer: list[float]  # a weight for each hidden unit, and a bias

    @classmethod
    def random(cls, rng: random.Random) -> Network:
        inner = [[rng.gauss(0, 1), rng.gauss(0, 1), 0.0] for _ in range(HIDDEN)]
        return cls(inner, [rng.gauss(0, 1 / math.sqrt(HIDDEN)) for _ in range(HIDDEN)] + [0.0])

    def forward(self, point: Point) -> tuple[list[float], float]:
        x, y = point
        hidden = [math.tanh(row[0] * x + row[1] * y + row[2]) for row in self.inner]
        score = sum(self.outer[unit] * value for unit, value in enumerate(hidden)) + self.outer[-1]
        return hidden, 1 / (1 + math.exp(-max(-60.0, min(60.0, score))))

    def learn(self, sample: Sample, lr: float) -> float:
        """Do one step of gradient descent on one sample. Return its loss before the step."""
        (x, y), label = sample
        hidden, probability = self.forward(sample[0])
        error = probability - label
        for unit, row in enumerate(self.inner):
            back = error * self.outer[unit] * (1 - hidden[unit] ** 2)
            row[0] -= lr * back * x
            row[1] -= lr * back * y
            row[2] -= lr * back
            self.outer[unit] -= lr * error * hidden[unit]
        self.outer[-1] -= lr * error
        return -math.log(max(1e-12, probability if label else 1 - probability))


def two_moons(count: int, rng: random.Random) -> list[Sample]:
    return [(_on_moon(index % CLASSES, rng), index % CLASSES) for index in range(count)]


def _on_moon(moon: int, rng: random.Random) -> Point:
    angle = math.pi * rng.random()
    x, y = math.cos(angle), math.sin(angle)
    if moon:
        x, y = 1 - x, 0.5 - y
    return x + rng.gauss(0, NOISE), y + rng.gauss(0, NOISE)


def accuracy(network: Network, samples: list[Sample]) -> float:
    return sum((network.forward(point)[1] > 0.5) == bool(label) for point, label in samples) / len(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.lr <= 0:
        raise ValueError(f"the learning rate must be above 0, not {options.lr:g}")

    rng = random.Random(options.seed)
    training, unseen = two_moons(1000, rng), two_moons(500, rng)
    network = Network.random(rng)
    for step in range(1, options.epochs + 1):
        rng.shuffle(training)
        loss = sum(network.learn(sample, options.lr) for sample in training) / len(training)
        print(json.dumps({"step": step, "loss": round(loss, 5)}), flush=True)
    print(json.dumps({"step": options.epochs, "accuracy": accuracy(network, unseen)}), flush=True)


if __name__ == "__main__":
    main()
