"""How a run ended: by its wait status the exit code and the signal, and with what it was told, both in words."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

TERMINATED = {"status": "failed", "reason": "terminated", "error": "The sidecar was told to end (SIGTERM)."}


def facts_of_status(status: int) -> dict[str, Any]:
    if not os.WIFSIGNALED(status):
        return _facts_of_code(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    return {"exit_code": 128 + number, "signal": number, "error": _signal_words(number)}


def is_by_term(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGTERM
    return os.WEXITSTATUS(status) == 128 + signal.SIGTERM


def end_facts(
    told: str, exit_code: int, reason_to_stop: Callable[[], str], time_limit_seconds: float | None
) -> dict[str, Any]:
    """`told`: why it was ended, if it did not end by itself."""
    if told == "stop":
        return {"status": "stopped", "reason": reason_to_stop() or "stopped on request"}
    if told == "terminated":
        return dict(TERMINATED)
    if told == "time_limit":
        error = f"Time limit of {time_limit_seconds:g} s reached."
        return {"status": "failed", "reason": "time_limit", "error": error}
    return {"status": "failed" if exit_code else "finished", "reason": "exit_code" if exit_code else ""}


def _facts_of_code(code: int) -> dict[str, Any]:
    if 128 < code <= 128 + signal.NSIG:
        number = code - 128
        return {
            "exit_code": code,
            "signal": number,
            "error": f"{_signal_words(number)}, as the shell reports it",
        }
    return {"exit_code": code, "signal": None, "error": f"Exit code {code}" if code else None}


def _signal_words(number: int) -> str:
    try:
        return f"Signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"Signal {number}"
