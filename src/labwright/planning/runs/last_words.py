"""What a run said last: of one that failed, most often why."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.run import Run
from labwright.services.runs import logs

_BYTES = 8_000
_LENGTH = 300


def last_words(lab: Lab, run: Run, lines: int = 1) -> str:
    content: str = logs.read(lab, run, -_BYTES, _BYTES)["content"]
    said = [line.rstrip()[:_LENGTH] for line in content.splitlines() if line.strip()]
    return "\n".join(said[-lines:])
