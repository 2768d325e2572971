"""Create simulated GPUs, change what their driver reports, and run a command that sees them.

Only the driver is simulated: nothing computes, and there is no CUDA.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.sim.state import STATE_VARIABLE, Card, DriverState, read_state, write_state

_HERE = Path(__file__).parent
_SOURCE = _HERE / "fake_nvml.c"
_LIBRARY = "libnvidia-ml.so.1"
DRIVER_NOT_LOADED = 9


def build_driver(cache_dir: Path) -> Path:
    """Return the folder with the simulated NVML library, which is compiled once per version of its source."""
    folder = cache_dir / f"nvml-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}"
    library = folder / _LIBRARY
    if library.exists():
        return folder
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise Invalid("Simulated GPUs need a C compiler.", hint="Install gcc, e.g. apt-get install gcc libc6-dev.")
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{_LIBRARY}.{os.getpid()}"
    _compile(compiler, aside)
    aside.replace(library)
    return folder


def _compile(compiler: str, target: Path) -> None:
    options = ["-shared", "-fPIC", "-O2", f"-Wl,-soname,{_LIBRARY}"]
    built = subprocess.run(
        [compiler, *options, "-o", str(target), str(_SOURCE)], capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise Invalid(f"The simulated GPU driver does not compile: {built.stderr.strip()[:500]}")


class SimulatedGpus:
    """Some GPUs and their driver. The driver reads one file, which any process may change meanwhile."""

    def __init__(self, state_file: Path) -> None:
        self._file = state_file

    @classmethod
    def create(cls, directory: Path, count: int) -> SimulatedGpus:
        directory.mkdir(parents=True, exist_ok=True)
        machine = secrets.token_hex(4)  # leases are machine-wide, so two simulations must not share UUIDs
        cards = tuple(Card(uuid=f"GPU-{machine}-51b0-4000-8000-{n:012x}", bus=n + 1) for n in range(count))
        simulated = cls(directory / "driver.state")
        write_state(simulated._file, DriverState(cards=cards))
        _write_nvidia_smi(directory / "bin")
        return simulated

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SimulatedGpus:
        """Return the simulated GPUs that this process sees."""
        if STATE_VARIABLE not in environment:
            raise Invalid("No simulated GPUs here.", hint="Start a shell with: labwright sim gpus 4 -- bash")
        return cls(Path(environment[STATE_VARIABLE]))

    @property
    def cards(self) -> tuple[Card, ...]:
        return self._state.cards

    def set_card(
        self,
        index: int,
        *,
        memory_used_mb: int | None = None,
        utilization: int | None = None,
        processes: Sequence[tuple[int, int]] | None = None,
        bus: int | None = None,
        lost: bool | None = None,
    ) -> None:
        """Change what the driver reports about one GPU. Omitted values stay."""
        card = self._card(index)
        changed = replace(
            card,
            memory_used_mb=card.memory_used_mb if memory_used_mb is None else memory_used_mb,
            utilization=card.utilization if utilization is None else utilization,
            processes=card.processes if processes is None else tuple(processes),
            bus=card.bus if bus is None else bus,
            lost=card.lost if lost is None else lost,
        )
        self._write(self._state.with_card(index, changed))

    def remove_card(self, index: int) -> None:
        """Remove a GPU completely. For one that fell off the bus use `set_card(lost=True)`."""
        card = self._card(index)
        self._write(replace(self._state, cards=tuple(other for other in self.cards if other != card)))

    def fail(self, code: int = DRIVER_NOT_LOADED) -> None:
        """Make the driver fail with this NVML code; 0 repairs it."""
        self._write(replace(self._state, init_code=code))

    def hang(self, hanging: bool = True) -> None:
        self._write(replace(self._state, hang=hanging))

    def environment(self, base: Mapping[str, str], *, nvml: bool = True) -> dict[str, str]:
        """Return `base` with the simulated driver. Without `nvml` only nvidia-smi works."""
        env = {**base, STATE_VARIABLE: str(self._file)}
        env["PATH"] = _in_front(str(self._file.parent / "bin"), base.get("PATH", os.defpath))
        if nvml:
            driver = build_driver(cache_folder(base))
            env["LD_LIBRARY_PATH"] = _in_front(str(driver), base.get("LD_LIBRARY_PATH", ""))
        return env

    @property
    def _state(self) -> DriverState:
        return read_state(self._file)

    def _card(self, index: int) -> Card:
        if not 0 <= index < len(self.cards):
            raise Invalid(f"There is no GPU {index}; there are {len(self.cards)}, counted from 0.")
        return self.cards[index]

    def _write(self, state: DriverState) -> None:
        write_state(self._file, state)


def run_with_gpus(count: int, argv: Sequence[str]) -> int:
    """Run a command with `count` simulated GPUs and return its exit code."""
    if count < 1 or not argv:
        raise Invalid("Give a number of GPUs and a command.", hint="For example: labwright sim gpus 4 -- nvidia-smi")
    with tempfile.TemporaryDirectory(prefix="labwright-gpus-") as folder:
        environment = SimulatedGpus.create(Path(folder), count).environment(os.environ)
        try:
            code = subprocess.run(argv, env=environment, check=False).returncode
        except (FileNotFoundError, PermissionError) as error:
            raise Invalid(f"{argv[0]} cannot be started: {error.strerror}.") from error
    return 128 - code if code < 0 else code


def cache_folder(environment: Mapping[str, str]) -> Path:
    root = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', tempfile.gettempdir())}/.cache"
    return Path(root) / "labwright"


def _write_nvidia_smi(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    script = folder / "nvidia-smi"
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{_HERE / 'nvidia_smi.py'}' \"$@\"\n")
    script.chmod(0o755)


def _in_front(folder: str, path: str) -> str:
    return f"{folder}:{path}" if path else folder
