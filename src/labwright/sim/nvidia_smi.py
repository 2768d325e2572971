"""nvidia-smi for simulated GPUs: `-L`, `--query-gpu` and `--query-compute-apps`, as csv."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":  # started with -I -S, so that it is quick and needs nothing installed
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from labwright.sim.state import STATE_VARIABLE, Card, DriverState, read_state

Row = tuple[DriverState, int, Card, tuple[int, int]]

_GPU_FIELDS: dict[str, tuple[Callable[[Row], object], str]] = {
    "index": (lambda row: row[1], ""),
    "uuid": (lambda row: row[2].uuid, ""),
    "name": (lambda row: row[2].name, ""),
    "pci.bus_id": (lambda row: f"00000000:{row[2].bus:02X}:00.0", ""),
    "memory.total": (lambda row: row[2].memory_total_mb, "MiB"),
    "memory.used": (lambda row: row[2].memory_used_mb, "MiB"),
    "memory.free": (lambda row: row[2].memory_total_mb - row[2].memory_used_mb, "MiB"),
    "utilization.gpu": (lambda row: row[2].utilization, "%"),
    "temperature.gpu": (lambda row: 30 + row[2].utilization // 2, ""),
    "driver_version": (lambda row: row[0].driver_version, ""),
}
_PROCESS_FIELDS: dict[str, tuple[Callable[[Row], object], str]] = {
    "gpu_uuid": (lambda row: row[2].uuid, ""),
    "pid": (lambda row: row[3][0], ""),
    "used_memory": (lambda row: row[3][1], "MiB"),
}


def main(arguments: Sequence[str]) -> int:
    state = _responding_state()
    if state.init_code:
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        return 9
    cards = [(index, card) for index, card in enumerate(state.cards) if not card.lost]
    options = dict(argument.partition("=")[::2] for argument in arguments)
    style = options.get("--format", "csv").split(",")
    if "--query-gpu" in options:
        rows: list[Row] = [(state, index, card, (0, 0)) for index, card in cards]
        return _print(options["--query-gpu"].split(","), _GPU_FIELDS, rows, style)
    if "--query-compute-apps" in options:
        rows = [(state, index, card, process) for index, card in cards for process in card.processes]
        return _print(options["--query-compute-apps"].split(","), _PROCESS_FIELDS, rows, style)
    for index, card in cards:
        print(f"GPU {index}: {card.name} (UUID: {card.uuid})")
    return 0


def _responding_state() -> DriverState:
    """Return the state once the driver does not hang."""
    state = read_state(Path(os.environ[STATE_VARIABLE]))
    while state.hang:
        time.sleep(0.02)
        state = read_state(Path(os.environ[STATE_VARIABLE]))
    return state


def _print(
    wanted: Sequence[str],
    fields: dict[str, tuple[Callable[[Row], object], str]],
    rows: Sequence[Row],
    style: Sequence[str],
) -> int:
    unknown = [name for name in wanted if name not in fields]
    if unknown:
        print(f'Field "{unknown[0]}" is not a valid field to query.')
        return 2
    if "noheader" not in style:
        print(", ".join(wanted))
    for row in rows:
        print(", ".join(_cell(fields[name], row, "nounits" in style) for name in wanted))
    return 0


def _cell(entry: tuple[Callable[[Row], object], str], row: Row, bare: bool) -> str:
    read, unit = entry
    return str(read(row)) if bare or not unit else f"{read(row)} {unit}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
