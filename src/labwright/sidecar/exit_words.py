"""What a wait status tells: the exit code, the signal, and both in words."""

from __future__ import annotations

import os
import signal
from typing import Any


def facts_of_status(status: int) -> dict[str, Any]:
    if not os.WIFSIGNALED(status):
        return _facts_of_code(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    return {"exit_code": 128 + number, "signal": number, "error": _signal_words(number)}


def is_by_term(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGTERM
    return os.WEXITSTATUS(status) == 128 + signal.SIGTERM


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
