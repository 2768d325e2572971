"""Logistic regression on random features of two moons, configured by a dataclass; standard library only.

Logs `epoch 3 train_loss=0.41 val_error=0.12` through `logging`.
"""

from __future__ import annotations

import logging
import math
import random
import sys

from config import Config, config_from_flags

Sample = tuple[list[float], int]
logger = logging.getLogger("moons")


def two_moons(count: int, rng: random.Random) -> list[tuple[float, float, int]]:
    points = []
    for index in range(count):
        angle, moon = math.pi * rng.random(), index % 2
        x, y = (math.cos(angle), math.sin(angle)) if moon == 0 else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append((x + rng.gauss(0, 0.25), y + rng.gauss(0, 0.25), moon))
    return points


def as_features(points: list[tuple[float, float, int]], config: Config) -> list[Sample]:
    rng = random.Random(config.seed)
    waves = [(rng.gauss(0, config.bandwidth), rng.gauss(0, config.bandwidth), rng.uniform(0, 2 * math.pi))
             for _ in range(config.features)]  # fmt: skip
    scale = math.sqrt(2 / config.features)
    return [([scale * math.cos(a * x + b * y + c) for a, b, c in waves], label) for x, y, label in points]


def chance(weights: list[float], row: list[float]) -> float:
    score = sum(weight * value for weight, value in zip(weights, row))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def train(config: Config) -> None:
    rng = random.Random(config.seed)
    training, unseen = as_features(two_moons(500, rng), config), as_features(two_moons(300, rng), config)
    weights = [0.0] * config.features
    step = 0
    for epoch in range(1, config.num_epochs + 1):
        rng.shuffle(training)
        train_loss = 0.0
        for row, label in training:
            p = chance(weights, row)
            train_loss -= math.log(max(1e-12, p if label else 1 - p)) / len(training)
            for index, value in enumerate(row):
                weights[index] -= config.learning_rate * ((p - label) * value + config.l2 * weights[index])
            step += 1
            if step == config.max_steps:
                break
        wrong = sum((chance(weights, row) > 0.5) != bool(label) for row, label in unseen)
        logger.info("epoch %d train_loss=%.4f val_error=%.4f", epoch, train_loss, wrong / len(unseen))
        if step == config.max_steps:
            break


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    train(config_from_flags())
