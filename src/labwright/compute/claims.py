"""Who holds a run: the process that made the claim of its attempt."""

from __future__ import annotations

from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import ProcessIdentity


def read_claim(paths: RunPaths, attempt: int) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.from_dict(read_json(paths.claim(attempt)))
    except (FileNotFoundError, NotADirectoryError):
        return None
