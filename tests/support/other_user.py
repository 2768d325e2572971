"""Run commands as users created for the test, who can reach the interpreter and the code.

The checkout and the interpreter may be in a closed home directory. The process gets its own mount namespace, which
shows both at a place that everybody can enter.
"""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"


class TestUser:
    __test__ = False

    def __init__(self, name: str, stage: Path) -> None:
        self.name = name
        self._stage = stage
        subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/bash", name], check=True)
        entry = pwd.getpwnam(name)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid

    def remove(self) -> None:
        subprocess.run(["userdel", self.name], check=True)

    def make_folder(self, path: Path) -> Path:
        path.mkdir()
        os.chown(path, self.uid, self.gid)
        path.chmod(0o755)
        return path

    def command(self, *argv: str) -> list[str]:
        """Return `argv` as run by this user. A leading `python` becomes this interpreter with this code on its path."""
        binds = {"python": sys.base_prefix, "site": sysconfig.get_paths()["purelib"], "src": str(SRC)}
        for name in binds:
            (self._stage / name).mkdir(exist_ok=True)
        mounts = "; ".join(f"mount --bind {shlex.quote(path)} {self._stage / name}" for name, path in binds.items())
        inner = shlex.join(["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", *argv])
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"set -e; {mounts}; exec {inner}"]

    @property
    def python(self) -> str:
        return f"{self._stage}/python/bin/python{sys.version_info.major}.{sys.version_info.minor}"

    def environment(self, home: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "USER": self.name,
            "LOGNAME": self.name,
            "PYTHONPATH": f"{self._stage}/src:{self._stage}/site",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": f"{self._stage}/python/lib",  # for an interpreter with its own shared library
        }
