"""Where the processes before this one left off: numbers without a step go on from there, and do not cover theirs."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TAIL = 1 << 16
_HEADER = 1 << 16
_THE_SAME = ("attempt", "try", "host")
_POINT = b'{"s":'  # as `lines.template` begins it


def next_step(run_dir: str, header: dict[str, Any]) -> int:
    """0 for the first. Not after those that still log: ranks and workers beside each other all begin at 0.

    Nor after those of another try: there the whole command is run again, and its numbers count instead. Nor after those
    on other hosts, of which nobody here knows whether they still log.
    """
    try:
        names = os.listdir(f"{run_dir}/metrics")
    except OSError:  # it has logged nothing yet
        return 0
    return max((_step_after(f"{run_dir}/metrics/{name}", header) for name in names), default=0)


def _step_after(path: str, header: dict[str, Any]) -> int:
    try:
        name = os.path.basename(path)
        return 0 if not name.startswith("sdk-") or _is_written(int(name.split("-")[1])) else _read(path, header)
    except (OSError, ValueError, AttributeError):  # cut short by a kill, or none of ours
        return 0


def _is_written(pid: int) -> bool:
    """By another process."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's, which may not be signalled: it is there
    return True


def _read(path: str, header: dict[str, Any]) -> int:
    with open(path, "rb") as file:
        theirs = json.loads(file.readline(_HEADER))
        if any(theirs.get(name) != header[name] for name in _THE_SAME):
            return 0
        file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - _TAIL))
        points = [line for line in file.read().split(b"\n")[:-1] if line.startswith(_POINT)]
    return max((int(line[len(_POINT) : line.index(b",")]) + 1 for line in points), default=0)
