"""A clock that can be set and a disk that can be slow, for a server and its children only."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


class Troubles:
    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "troubled.so", folder / "troubles"
        self._file.write_bytes(struct.pack("ll", 0, 0))
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", self._library, _SOURCE, "-ldl"], check=True)

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """Return the environment, keeping what is preloaded already."""
        preloaded = " ".join(filter(None, (str(self._library), base.get("LD_PRELOAD"))))
        return {**base, "LD_PRELOAD": preloaded, "TROUBLED": str(self._file)}

    def make(self, *, clock_seconds: int = 0, disk_milliseconds: int = 0) -> None:
        """Apply these troubles from now on. Writes in place, because running processes have the file mapped."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("ll", clock_seconds, disk_milliseconds))
