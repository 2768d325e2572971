"""Loading a workflow in a child, seen from the parent: the command to start, and its answer read with distrust."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

_OUTPUT_LIMIT = 4000


def load_command(
    python: str, source_root: str | os.PathLike[str], module: str, symbol: str, *, word_on_input: bool = False
) -> list[str]:
    """For a sandbox or a run. `PYTHONPATH` must lead to the folder that holds `labwright`.

    With `word_on_input` the child reads one line, and its answer begins with that word.
    """
    word = ["-"] if word_on_input else []
    return [python, "-m", "labwright.workflow.load", os.fspath(source_root), module, symbol, *word]


def load_in_child(
    python: str,
    source_root: str | os.PathLike[str],
    module: str,
    symbol: str,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> dict[str, Any]:
    """The line that the child printed: `ok` with `workflow`, `contract`, `effects`; or not, with a `fault`."""
    import subprocess

    try:
        done = subprocess.run(
            load_command(python, source_root, module, symbol),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=None if environment is None else dict(environment),
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _fault("timed_out", f"loading took longer than {timeout:g} s", "Importing must not do any work.")
    return read_answer(done.stdout, done.stderr, done.returncode)


def read_answer(stdout: bytes, stderr: bytes, exit_code: int) -> dict[str, Any]:
    """A child that ended without its line, by `os._exit` or a crash, has failed; its last words are kept."""
    try:
        found = json.loads(stdout)
        if isinstance(found, dict) and isinstance(found.get("ok"), bool):
            return found
    except (ValueError, RecursionError):
        pass
    words = stderr.decode("utf-8", "replace")[-_OUTPUT_LIMIT:]
    message = f"the loading process ended with exit code {exit_code} and without an answer"
    return _fault("no_answer", message, "Does the code end the process when it is imported?", words)


def _fault(code: str, message: str, hint: str = "", trace: str = "") -> dict[str, Any]:
    return {"ok": False, "fault": {"code": code, "message": message, "hint": hint, "traceback": trace}, "effects": []}
