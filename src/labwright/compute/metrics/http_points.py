"""Points sent over HTTP go through a file of the run like all others, so that the folder stays the truth."""

from __future__ import annotations

import os
from typing import Any

from pydantic_core import to_json

from labwright.compute.lab import Lab
from labwright.files import append_whole
from labwright.store.idempotency import IdempotencyKey, refuse_other


def part_of(key: IdempotencyKey, number: int) -> IdempotencyKey:
    """Many points are several lines, of which a kill may leave the first ones."""
    return key.again(f"part {number}")


def write_http_points(lab: Lab, run_id: str, lines: list[dict[str, Any]], key: IdempotencyKey | None = None) -> None:
    """All of them or, with an error, none: whoever was told of an error sends them again.

    Raises Conflict if the key was used for others that nobody has read yet; the database does not know those.
    """
    folder = lab.paths.run(run_id).metrics
    os.makedirs(folder, mode=0o700, exist_ok=True)
    block = b"".join(to_json(line) + b"\n" for line in lines)
    with lab.unread.growing(run_id) as sent:
        if key is not None:
            refuse_other(key, sent.get(key.key, key.digest))
        fd = os.open(f"{folder}/http.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            append_whole(fd, block)
        finally:
            os.close(fd)
        if key is not None:
            sent[key.key] = key.digest
