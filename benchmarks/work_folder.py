"""Where the benchmarks keep their files: on the disk of the checkout, until the session ends."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers import BUILD


def new_folder(name: str) -> Path:
    """Not deleted before the session's end: on some file systems that slows down whatever is made next."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_session_folder()))


@functools.cache
def _session_folder() -> Path:
    (BUILD / "bench").mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="session-", dir=BUILD / "bench")).resolve()
    atexit.register(shutil.rmtree, folder)
    _spread(folder)
    return folder


def _spread(folder: Path) -> None:
    """Ask ext4 to place each folder in here apart, away from what others delete; elsewhere this does nothing."""
    if chattr := shutil.which("chattr"):
        subprocess.run([chattr, "+T", folder], check=False, stderr=subprocess.DEVNULL)
