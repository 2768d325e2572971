"""Who holds a run: the process that made the claim of its attempt."""

from __future__ import annotations

import socket

from labwright.files import read_json
from labwright.paths import RunPaths
from labwright.processes import ProcessIdentity, boot_id


def read_claim(paths: RunPaths, attempt: int) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.from_dict(read_json(paths.claim(attempt)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):  # torn by a power cut, or tampered with: taken, by nobody who lives
        return ProcessIdentity(pid=0, start_time=-1, boot_id=boot_id(), host=socket.gethostname())
