"""Which sweep or run carried out which step of a plan: a line for each, in the folder of its execution."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from labwright.files import all_lines
from labwright.workspace import PlanWorkspaceHandle

_FILE = "carriers.jsonl"


def note_carrier(handle: PlanWorkspaceHandle, step: str, carrier: str, beside: Sequence[str] = ()) -> None:
    """After it was made. A kill in between is mended by who goes on: what is there already is noted again.

    `beside`: earlier ones, of which what finished counts as well.
    """
    line = json.dumps({"step": step, "carrier": carrier, "beside": list(beside)}).encode() + b"\n"
    fd = os.open(handle.paths.execution / _FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def counted_carriers(handle: PlanWorkspaceHandle) -> dict[str, list[str]]:
    """By step, all whose runs count; the newest last."""
    lines, _end = all_lines(str(handle.paths.execution / _FILE))
    found = (json.loads(line) for line in lines)
    return {line["step"]: [*line.get("beside", []), line["carrier"]] for line in found}
