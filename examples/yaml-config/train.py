"""A small network that separates two spirals, configured as with Hydra: a YAML file and `key.sub=value`.

Prints `step=… loss=… accuracy=…`. Needs PyYAML, but not Hydra: the loader has ten lines.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import yaml

CONFIG = Path(__file__).parent / "conf" / "config.yaml"


def load_config(overrides: list[str]) -> dict[str, Any]:
    """Return the file's values with each `a.b=value` applied. An unknown key is an error."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    for override in overrides:
        key, equals, text = override.partition("=")
        *path, last = key.split(".")
        place = config
        for part in path:
            place = place.get(part, {})
        if not equals or last not in place:
            raise SystemExit(f"{override!r} does not name a value of {CONFIG.name}")
        place[last] = type(place[last])(yaml.safe_load(text))
    return config


def two_spirals(count: int, noise: float, rng: random.Random) -> list[tuple[float, float, int]]:
    samples = []
    for index in range(count):
        turn = 0.5 + 1.2 * math.pi * rng.random()
        sign = 1 if index % 2 else -1
        x, y = sign * turn * math.cos(turn) / 4, sign * turn * math.sin(turn) / 4
        samples.append((x + rng.gauss(0, noise) / 4, y + rng.gauss(0, noise) / 4, index % 2))
    return samples


class Network:
    def __init__(self, hidden: int, rng: random.Random) -> None:
        self.inner = [[rng.gauss(0, 2), rng.gauss(0, 2), rng.gauss(0, 1)] for _ in range(hidden)]
        self.outer = [rng.gauss(0, 0.5) for _ in range(hidden)]
        self.speed = [[0.0] * 4 for _ in range(hidden)]

    def forward(self, x: float, y: float) -> tuple[list[float], float]:
        units = [math.tanh(a * x + b * y + c) for a, b, c in self.inner]
        score = sum(weight * unit for weight, unit in zip(self.outer, units))
        return units, 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def learn(self, sample: tuple[float, float, int], lr: float, momentum: float) -> float:
        x, y, label = sample
        units, chance = self.forward(x, y)
        error = chance - label
        for index, unit in enumerate(units):
            back = error * self.outer[index] * (1 - unit * unit)
            gradient = (back * x, back * y, back, error * unit)
            self.speed[index] = [momentum * old + new for old, new in zip(self.speed[index], gradient)]
            for place in range(3):
                self.inner[index][place] -= lr * self.speed[index][place]
            self.outer[index] -= lr * self.speed[index][3]
        return -math.log(max(1e-12, chance if label else 1 - chance))


def main() -> None:
    config = load_config(sys.argv[1:])
    rng = random.Random(config["seed"])
    training = two_spirals(config["data"]["points"], config["data"]["noise"], rng)
    unseen = two_spirals(400, config["data"]["noise"], rng)
    network = Network(config["model"]["hidden"], rng)
    momentum = config["optimizer"]["momentum"] if config["optimizer"]["name"] == "momentum" else 0.0
    every, total = max(1, config["max_steps"] // 10), 0.0
    for step in range(1, config["max_steps"] + 1):
        for sample in rng.sample(training, min(16, len(training))):
            total += network.learn(sample, config["optimizer"]["lr"], momentum) / 16
        if step % every == 0 or step == config["max_steps"]:
            right = sum((network.forward(x, y)[1] > 0.5) == bool(label) for x, y, label in unseen)
            print(f"step={step} loss={total / every:.4f} accuracy={right / len(unseen):.4f}", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
