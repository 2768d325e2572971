"""Bubblewrap tried once, for real, before anything relies on it: namespaces are often there but forbidden."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

_PATIENCE_SECONDS = 10.0


def fault_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Why it does not work on this machine; empty where it does."""
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False, env=environment
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except PermissionError as error:
        return f"{error.filename} may not be used here"
    except subprocess.TimeoutExpired:
        return f"bubblewrap does not answer within {_PATIENCE_SECONDS:g} s"
    return "" if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip()[:300]}"
