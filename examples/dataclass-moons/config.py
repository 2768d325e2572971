"""Every setting of the training, as a dataclass; each field becomes a flag."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields


@dataclass
class Config:
    learning_rate: float = field(default=0.3, metadata={"help": "step size of gradient descent"})
    l2: float = field(default=0.0, metadata={"help": "penalty on large weights"})
    features: int = field(default=40, metadata={"help": "random Fourier features"})
    bandwidth: float = 1.5
    num_epochs: int = 60
    max_steps: int = field(default=0, metadata={"help": "stop after this many steps; 0 means no limit"})
    seed: int = 0


def config_from_flags() -> Config:
    parser = argparse.ArgumentParser()
    for item in fields(Config):
        parser.add_argument(
            f"--{item.name}", type=type(item.default), default=item.default, help=item.metadata.get("help")
        )
    return Config(**vars(parser.parse_args()))
