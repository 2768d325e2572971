"""An environment that a plan made, and what lay in it then: as long as that is so, it is what the command stands for.

So an approval of "made by this command" holds before it is made and after, and any later change of it voids it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from functools import lru_cache
from pathlib import Path

from labwright.files import write_json
from labwright.hashes import hash_file, packages_of
from labwright.planning.scan import Interpreter
from labwright.planning.scan.interpreters import package_folders
from labwright.planning.scan.walk import JUST_MADE

_RECORD = "labwright.json"  # inside of the environment, so that it goes when that goes
_SMALL_BYTES = 1 << 20


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
    """Of what lies there, file by file, and of which other packages it lets in. Caches do not count."""
    files = _files(environment)
    signatures = hashlib.sha256(json.dumps([_signature(file) for file in files]).encode()).hexdigest()
    return _hash_of_content(environment, signatures)


def distributions_hash(interpreter: Interpreter) -> str:
    """Of a Python that is nobody's environment: what is installed there, by name and version.

    It serves the whole machine, so every byte of it would be too much to read and not the project's affair.
    """
    found = [packages_of(folder) for folder in package_folders(interpreter)]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _files(environment: Path) -> list[str]:
    """Conda keeps machine code and Python itself beside the packages."""
    found = [str(file) for file in (environment / "pyvenv.cfg",) if file.exists()]
    is_conda = (environment / "conda-meta").is_dir()
    libraries = [environment / "lib"] if is_conda else list(environment.glob("lib/python*/site-packages"))
    for root in (environment / "bin", *libraries):
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found += [os.path.join(folder, name) for name in names]
    return sorted(found)


def _signature(path: str) -> tuple[str, int, int, int, int]:
    """With the time of the last change of any kind, which nobody can set back as that of the content can be."""
    file = os.lstat(path)
    return path, file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino


@lru_cache(maxsize=8)
def _hash_of_content(environment: Path, _signatures: str) -> str:
    """Read once for files of these signatures, since every verb asks."""
    found = [(os.path.relpath(file, environment), _content(file)) for file in _files(environment)]
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _content(path: str) -> str:
    file = os.lstat(path)
    if stat.S_ISLNK(file.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(file.st_mode) or not os.access(path, os.R_OK):
        return f"{file.st_size} {file.st_mtime_ns}"
    return _hash_of_large(_signature(path)) if file.st_size > _SMALL_BYTES else hash_file(path)


@lru_cache(maxsize=20_000)
def _hash_of_large(signature: tuple[str, int, int, int, int]) -> str:
    """Libraries of machine code are gigabytes: a package that is added must not mean to read them all anew."""
    return hash_file(signature[0])
