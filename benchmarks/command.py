"""How long the command line takes before it says anything."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figure import Figure, at_most, median_of

_ROUNDS = 10


def measure() -> list[Figure]:
    _milliseconds_of_help()
    rounds = [_milliseconds_of_help() for _ in range(_ROUNDS)]
    return [median_of("labwright --help", "ms", rounds, "a process each", at_most(250))]


def _milliseconds_of_help() -> float:
    labwright = Path(sys.executable).with_name("labwright")
    began = time.perf_counter()
    subprocess.run([labwright, "--help"], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3
