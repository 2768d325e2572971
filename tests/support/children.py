"""Processes that a test began: whatever becomes of the test, none is left for the next one to stumble over."""

from __future__ import annotations

import subprocess
from typing import Any, AnyStr

_begun: list[subprocess.Popen[Any]] = []


def ended_with_the_test(process: subprocess.Popen[AnyStr]) -> subprocess.Popen[AnyStr]:
    _begun.append(process)
    return process


def end_all() -> None:
    while _begun:
        process = _begun.pop()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
