"""`make bench` is rarely run by hand: the names it measures must still exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_every_benchmark_finds_what_it_measures() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
