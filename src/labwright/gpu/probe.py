"""Query the driver about the GPUs. A driver call can hang forever, so only a child process makes it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labwright.domain.gpu import Gpu
from labwright.processes import all_pids, start_time

DETECTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpuwrap_detect.py")
_REAP_SECONDS = 1.0
_stuck: list[subprocess.Popen[bytes]] = []  # killed, but still stuck in the driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """The GPUs found, the source, and errors on the way."""

    source: str  # nvml, nvidia-smi or none
    gpus: tuple[Gpu, ...] = ()
    errors: tuple[str, ...] = ()
    driver_version: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "gpus": [gpu.to_dict() for gpu in self.gpus],
            "errors": list(self.errors),
            "driver_version": self.driver_version,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Detection:
        return cls(
            source=data["source"],
            gpus=tuple(Gpu.from_dict(gpu) for gpu in data["gpus"]),
            errors=tuple(data["errors"]),
            driver_version=data["driver_version"],
        )


def run_detector(
    timeout: float = 10.0,
    samples: int = 1,
    interval: float = 0.1,
    env: Mapping[str, str] | None = None,
    pynvml_dir: str | None = None,
) -> Detection:
    """Detect the GPUs within about `timeout` seconds, whatever the driver does.

    While an earlier detector is stuck in the driver, no new one is started: they would pile up by the thousand.
    """
    _stuck[:] = [child for child in _stuck if _is_alive(child)]
    if _stuck:
        return Detection(
            source="none", errors=("the driver did not answer, and the process that queried it is still stuck",)
        )
    command = [sys.executable, "-I", "-S", DETECTOR, f"--samples={samples}", f"--interval={interval}"]
    folder = pynvml_dir or find_pynvml_dir()
    if folder:
        command.append(f"--pynvml-dir={folder}")
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        start_new_session=True,  # so that a hanging nvidia-smi child is killed too
    )
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _abandon(child)
        return Detection(source="none", errors=(f"the driver did not answer within {timeout:g} s",))
    try:
        return Detection.from_dict(json.loads(out))
    except (ValueError, KeyError, TypeError):
        lines = err.decode(errors="replace").strip().splitlines()
        return Detection(source="none", errors=(f"the detector failed: {lines[-1] if lines else 'no output'}",))


def find_pynvml_dir() -> str | None:
    """Return the folder of pynvml without loading it, or None if site-packages is not on the path."""
    import importlib.util

    spec = importlib.util.find_spec("pynvml")
    return os.path.dirname(spec.origin) if spec and spec.origin else None


def _abandon(child: subprocess.Popen[bytes]) -> None:
    """Kill the child, but do not wait long: a process stuck in the driver cannot be killed."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdout, child.stderr):
        if pipe:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_REAP_SECONDS)
    if _is_alive(child):
        _stuck.append(child)


def _is_alive(child: subprocess.Popen[bytes]) -> bool:
    """Return whether the child or an nvidia-smi below it is still alive. Zombies do not count."""
    if child.poll() is None:
        return True
    for pid in all_pids():
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            if os.getsid(pid) == child.pid and start_time(pid) is not None:
                return True
    return False
