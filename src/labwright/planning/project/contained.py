"""Running generated code: only in a contained child, in the project's interpreter, on a copy that it cannot change."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.compute.sdk_folder import write_small_package
from labwright.planning.scan import ProjectScan
from labwright.sandbox import Fence, SandboxLimits, SandboxResult, containment, run_contained
from labwright.workflow import load_command, read_answer
from labwright.workspace.copies import copy_files
from labwright.workspace.digest import Digest

_RUNNER = Path(__file__).with_name("run_tests.py")
_LIMITS = SandboxLimits(wall_seconds=120.0, cpu_seconds=40, memory_mb=2048, processes=64)
_PREFIX = "labwright-plan-"
_ABANDONED_AFTER_SECONDS = 3600.0  # no check takes as long
_WORKSPACE, _MADE_UP = "workspace", "made_up.json"
# Libraries that start a thread for each core would soon meet the limit of processes.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def project_python(scan: ProjectScan) -> str:
    """The chosen environment's interpreter; where none is made yet, one that is there. Never a shim."""
    chosen = scan.environment.chosen
    known = [chosen] if chosen else list(scan.environment.interpreters)
    for interpreter in known:
        for name in ("python3", "python"):
            python = os.path.join(interpreter.path, "bin", name)
            if os.access(python, os.X_OK):
                return python
    return sys.executable


def interpreter_folders(python: str) -> dict[str, str]:
    """What a contained command has to see to start it, at its own place; `/usr` is there anyway."""
    real = Path(os.path.realpath(python)).parent.parent
    return {str(path): str(path) for path in {Path(python).parent.parent, real} if path != Path("/usr")}


def closed_folder(python: str) -> str:
    """The first on the way to an interpreter that a user without rights may not enter."""
    ways = [Path(python), Path(os.path.realpath(python))]
    folders = [folder for way in ways for folder in reversed(way.parents)]
    return next((str(folder) for folder in folders if not folder.stat().st_mode & stat.S_IXOTH), "")


@dataclass(frozen=True, slots=True)
class Child:
    """Where a copy lies for code that runs contained, and how to run it."""

    folder: Path
    python: str

    @property
    def workspace(self) -> Path:
        """The copy."""
        return self.folder / _WORKSPACE

    def _place(self, name: str) -> str:
        return f"/plan/{name}" if containment().kind == "bubblewrap" else str(self.folder / name)

    @property
    def barred_from(self) -> str:
        """A folder that keeps the child from its interpreter."""
        return closed_folder(self.python) if _stops_at_closed_folders() else ""

    def _run(self, command: Sequence[str], word: str) -> SandboxResult:
        fence = Fence(
            read_only={str(self.folder): "/plan", **interpreter_folders(self.python)},
            workdir="/",
            environment={"PYTHONPATH": self._place("package"), "PYTHONDONTWRITEBYTECODE": "1", **_ONE_THREAD},
        )
        return run_contained(command, fence, _LIMITS, given=f"{word}\n".encode())

    def load(self, module: str, symbol: str) -> dict[str, Any]:
        """What the loaded code says of itself: a claim, which the checks hold against the IR."""
        word = secrets.token_hex(16)
        command = load_command(self.python, self._place("workspace/src"), module, symbol, word_on_input=True)
        done = self._run(command, word)
        return read_answer(_line_after(word, done), done.output, done.exit_code)

    def run_tests(self, made_up: Mapping[str, Any]) -> dict[str, Any] | None:
        """By file what each test did, and by task while it gives a made-up value; None if the runner did not end."""
        word = secrets.token_hex(16)
        (self.folder / _MADE_UP).write_text(json.dumps(made_up))
        (self.folder / _MADE_UP).chmod(0o644)
        names = ("run_tests.py", "workspace/src", "workspace/tests", _MADE_UP)
        places = [self._place(name) for name in names]
        line = _line_after(word, self._run([self.python, *places], word))
        return None if not line else dict(json.loads(line))


def _line_after(word: str, done: SandboxResult) -> bytes:
    """The rest of the one line that begins with the word: whatever else was said, anybody may have said."""
    lines = [line for line in done.output.splitlines() if line.startswith(f"{word} ".encode())]
    return lines[0][len(word) + 1 :] if len(lines) == 1 else b""


def _stops_at_closed_folders() -> bool:
    """Root's child has no rights, and only bubblewrap leads past."""
    return os.geteuid() == 0 and containment().kind != "bubblewrap"


@contextmanager
def child_for(workspace: Path, digest: Digest, python: str) -> Iterator[Child]:
    """What the digest names, or a Conflict; in a folder that other users of the machine are kept out of."""
    _remove_abandoned()
    closed = Path(tempfile.mkdtemp(prefix=_PREFIX))
    folder = closed / "child"
    try:
        copy_files(workspace, folder / _WORKSPACE, digest)
        write_small_package(folder / "package")
        shutil.copyfile(_RUNNER, folder / _RUNNER.name)
        _let_anybody_read(folder)
        if _stops_at_closed_folders():
            closed.chmod(0o755)
        yield Child(folder, python)
    finally:
        shutil.rmtree(closed)


def _remove_abandoned() -> None:
    """What a killed server left, with the next plan that is checked."""
    longest_ago = time.time() - _ABANDONED_AFTER_SECONDS
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(_PREFIX):
            continue
        with suppress(FileNotFoundError):  # another server may be as fast
            facts = entry.stat(follow_symlinks=False)
            if facts.st_uid == os.geteuid() and facts.st_mtime < longest_ago:
                shutil.rmtree(entry.path)


def _let_anybody_read(folder: Path) -> None:
    """Also the user without rights that root's child is."""
    for path, _folders, names in os.walk(folder):
        os.chmod(path, 0o755)  # noqa: S103 - a copy of what was generated
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
