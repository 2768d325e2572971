"""The reader of printed metrics: its score on the shared corpus, if that is beside the project, and its speed."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figure import Figure, Target, at_least, median_of
from labwright.sidecar.printed import PrintedReader

_CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
_LINES = 100_000
_ROUNDS = 5
_BLOCK = 1 << 20
_PREFIX = "2026-11-18 10:00:{0:02},{1:03} - trainer - INFO - "


def measure() -> list[Figure]:
    return [
        *_score(),
        _speed("lines without metrics", "downloading shard {2} into /data/cache/shard_{2}.bin\n", at_least(50)),
        _speed("no metrics, every line of another shape", "{3} wrote part {2} of the cache\n", at_least(50)),
        _speed("metric lines", "step {2} | train_loss 0.{2:06} | val_loss 0.{2:06} | lr 3.0e-04\n", at_least(8)),
    ]


def _score() -> list[Figure]:
    if not (_CORPUS / "score.py").exists():
        return []
    command = [sys.executable, "-m", "labwright.sidecar.printed", "{log}"]
    scorer = [sys.executable, str(_CORPUS / "score.py"), "--dir", str(_CORPUS / "dev"), "--", *command]
    output = subprocess.run(scorer, capture_output=True, text=True, check=True).stdout
    found = re.search(r"== dev: (\d+)/(\d+) pass", output)
    assert found, output
    share = 100 * int(found[1]) / int(found[2])
    return [median_of("corpus cases that pass", "%", [share], f"{found[1]} of {found[2]}", at_least(90))]


def _speed(name: str, form: str, target: Target) -> Figure:
    data = "".join((_PREFIX + form).format(i % 60, i % 1000, i, _letters(i)) for i in range(_LINES)).encode()
    rates = []
    for _ in range(_ROUNDS):
        reader, start = PrintedReader(), time.process_time()
        for position in range(0, len(data), _BLOCK):
            reader.feed(data[position : position + _BLOCK])
        rates.append(len(data) / 1e6 / (time.process_time() - start))
    return median_of(f"reader, {name}", "MB/s", rates, "processor time of one core", target)


def _letters(number: int) -> str:
    return "".join(chr(ord("g") + int(digit)) for digit in str(number))
