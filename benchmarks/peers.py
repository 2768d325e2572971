"""Other systems, installed only when asked: queues as Debian packages, the rest each in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path("build")
MLFLOW = BUILD / "peers" / "mlflow" / "bin" / "mlflow"
NOT_INSTALLED = "not installed (--peers installs it)"
LOGGERS = {"wandb": "wandb", "trackio": "trackio", "Aim": "aim"}  # their packages

_why_missing: dict[str, str] = {}


def install() -> None:
    """What cannot be installed is noted and shown beside the figures; nothing fails because of it."""
    _install_package("task-spooler", "tsp")
    _install_package("parallel", "parallel")
    for peer, package in {"MLflow": "mlflow", **LOGGERS}.items():
        if not _command(package).exists():
            made = _attempt(peer, [sys.executable, "-m", "venv", str(python_of(package).parents[1])])
            if made:
                _attempt(peer, [str(python_of(package)), "-m", "pip", "install", "--quiet", package])


def python_of(package: str) -> Path:
    return BUILD / "peers" / package / "bin" / "python"


def is_installed(package: str) -> bool:
    return _command(package).exists()


def _command(package: str) -> Path:
    """Each of them brings a command of its own name, which pip makes last."""
    return python_of(package).with_name(package)


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
