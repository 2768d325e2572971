"""Other systems, installed only when asked: queues as Debian packages, MLflow in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path("build")
MLFLOW = BUILD / "peers" / "mlflow" / "bin" / "mlflow"
NOT_INSTALLED = "not installed (--peers installs it)"

_why_missing: dict[str, str] = {}


def install() -> None:
    """What cannot be installed is noted and shown beside the figures; nothing fails because of it."""
    _install_package("task-spooler", "tsp")
    _install_package("parallel", "parallel")
    if not MLFLOW.exists():
        folder = MLFLOW.parents[1]
        made = _attempt("MLflow", [sys.executable, "-m", "venv", str(folder)])
        if made:
            _attempt("MLflow", [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "mlflow"])


def _install_package(package: str, command: str) -> None:
    if shutil.which(command) is None:
        _attempt(package, ["scripts/install-system-packages", package])


def _attempt(peer: str, command: list[str]) -> bool:
    print(f"installing {peer} …", file=sys.stderr)
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        _why_missing[peer] = f"could not be installed: {error}"
        return False
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        _why_missing[peer] = f"could not be installed: {words[-1]}"
    return done.returncode == 0


def why_missing(peer: str) -> str:
    return _why_missing.get(peer, NOT_INSTALLED)
