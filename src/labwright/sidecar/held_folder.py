"""A run's folder, held open by its supervisor: it stays the run's wherever its project is moved to."""

from __future__ import annotations

import os

from labwright.paths import RunPaths

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class HeldFolder:
    def __init__(self, run_dir: str) -> None:
        self.place = RunPaths(run_dir)  # where it is when the job begins
        self._fd = os.open(run_dir, _FOLDER)
        self.paths = RunPaths(f"/proc/self/fd/{self._fd}")  # good in this process and its forks

    def take_anew(self) -> None:
        """One that was deleted may be made again by the server; then that is the run's."""
        if os.fstat(self._fd).st_nlink == 0 and os.path.isdir(self.place.dir):
            anew = os.open(self.place.dir, _FOLDER)
            os.dup2(anew, self._fd, inheritable=False)
            os.close(anew)

    def close(self) -> None:
        os.close(self._fd)
