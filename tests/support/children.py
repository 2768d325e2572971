"""Processes started by a test. None of them outlives the test, whether it passes or fails."""

from __future__ import annotations

import subprocess
from typing import Any, AnyStr

_begun: list[subprocess.Popen[Any]] = []


def end_with_test(process: subprocess.Popen[AnyStr]) -> subprocess.Popen[AnyStr]:
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
