"""What the reader finds in outputs of libraries and scripts that it was not tuned on."""

from __future__ import annotations

import re

from labwright.sidecar.printed import PrintedReader
from tests.corpus.cases import CASES, Case, Series

# Learning rates and gradient norms may be read or not.
OPTIONAL = {"lr", "learning_rate", "grad_norm"}
# Read wrongly or not at all so far. A case that is read right must leave this list.
GAPS = {
    "accelerate with a postfix", "torchtune", "paddle", "gan", "coco", "regression", "structlog", "chinese",
    "reinforcement learning by hand", "rllib", "recommender", "several words by hand",
}  # fmt: skip


def found_in(text: str) -> Series:
    reader = PrintedReader()
    found: Series = {}
    for key, step, value in [*reader.feed(text.encode()), *reader.close()]:
        found.setdefault(re.sub(r"\W+", "_", key.lower()).strip("_"), []).append((step, value))
    return {key: points for key, points in found.items() if key not in OPTIONAL}


def is_right(case: Case) -> bool:
    found = found_in(case.text)
    if found.keys() != case.metrics.keys():
        return False
    return all(_same(found[key], points) for key, points in case.metrics.items())


def _same(found: list[tuple[int | None, float]], expected: list[tuple[int | None, float]]) -> bool:
    if len(found) != len(expected):
        return False
    pairs = zip(found, expected, strict=True)
    return all(got[1] == want[1] and want[0] in (None, got[0]) for got, want in pairs)


def test_outputs_are_read_right_but_for_known_gaps() -> None:
    assert {case.name for case in CASES if not is_right(case)} == GAPS
