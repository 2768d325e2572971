"""An environment that a plan made, and what lay in it then: as long as that is so, it is what the command stands for.

So an approval of "made by this command" holds before it is made and after, and any later change of it voids it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from labwright.files import write_json
from labwright.planning.scan import Interpreter
from labwright.planning.scan.walk import JUST_MADE

_RECORD = "labwright.json"  # inside of the environment, so that it goes when that goes


def is_just_made(environment: Interpreter) -> bool:
    """The command came to its end, and nobody has written down yet what it made."""
    return (Path(environment.path) / JUST_MADE).exists()


def note_made(environment: Interpreter, command: str) -> None:
    folder = Path(environment.path)
    write_json(folder / _RECORD, {"made_by": command, "installed": installed_hash(folder)})
    (folder / JUST_MADE).unlink(missing_ok=True)


def made_by(environment: Interpreter) -> str:
    """The command that made what is there now; empty if somebody else made it, or changed it since."""
    folder = Path(environment.path)
    try:
        told = json.loads((folder / _RECORD).read_bytes())
        command, installed = str(told["made_by"]), told["installed"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return command if installed == installed_hash(folder) else ""


def installed_hash(environment: Path) -> str:
    """Of what lies there, file by file, by size and time: to read it all would take minutes. Caches do not count.

    Also of how it is set up: which other packages it lets in.
    """
    found = [_known(environment, str(file)) for file in (environment / "pyvenv.cfg",) if file.exists()]
    for root in (environment / "bin", *environment.glob("lib/python*/site-packages")):
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [_known(environment, os.path.join(folder, name)) for name in names]
    return hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()


def _known(environment: Path, path: str) -> tuple[str, int, int]:
    file = os.lstat(path)
    return os.path.relpath(path, environment), file.st_size, file.st_mtime_ns
