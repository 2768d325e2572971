"""Wait for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def wait_until(condition: Callable[[], Result | None], what: str = "the condition", timeout: float = 60.0) -> Result:
    """Return the first true value of the condition. On timeout, fail and say what was awaited."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for {what}; last answer: {answer!r}")
        time.sleep(0.02)
