"""The command of a Python step: `labwright.workflow.perform` behind the same fence as in validation."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labwright.planning.project.contained import interpreter_folders, project_python
from labwright.planning.scan import ProjectScan
from labwright.sandbox import SCRATCH, Fence, SandboxLimits, containment
from labwright.sandbox.fences import bubblewrap_command, only_where_it_works, within

_LIMITS = SandboxLimits(wall_seconds=3600.0, cpu_seconds=3600, memory_mb=8192, processes=256, scratch_mb=1024)
_PATH = "/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlaces:
    """The folders of a task, as they lie here."""

    workspace: Path  # the approved copy
    package: Path  # what `import labwright` finds
    step: Path  # its inputs and its answer
    files: Path  # what tasks write for each other; at its own place, so that a path means the same to all


def task_command(
    scan: ProjectScan,
    places: TaskPlaces,
    entrypoint: tuple[str, str, str],
    step_id: str,
    names: tuple[str, str],
    *,
    elsewhere: bool,
) -> str:
    """One line for a shell. Without bubblewrap the task can do what its user can: `doctor` and the docs say so.

    `elsewhere`: on a machine that may lack what this one has; what was reviewed as contained does not run there.
    """
    fenced = containment().kind == "bubblewrap"
    step, workspace = ("/step", "/plan/workspace") if fenced else (str(places.step), str(places.workspace))
    source_root, module, symbol = entrypoint
    inputs, answer = names
    python = project_python(scan)
    words = [python, "-m", "labwright.workflow.perform", f"{workspace}/{source_root}", module, symbol, step_id]
    words += [f"{step}/{inputs}", f"{step}/{answer}"]
    if not fenced:
        limited = within(_LIMITS) + words
        return f"cd {shlex.quote(str(places.files))} && {_in(_environment(str(places.package)), limited)}"
    fence = Fence(
        read_only={
            str(places.workspace): workspace,
            str(places.package): "/plan/package",
            **interpreter_folders(python),
        },
        writable={str(places.step): step, str(places.files): str(places.files)},
        workdir=str(places.files),
    )
    _bwrap, *rest = bubblewrap_command(words, fence, _LIMITS)
    line = _in(_environment("/plan/package"), [shutil.which("bwrap") or "bwrap", *rest])
    return only_where_it_works(line) if elsewhere else line


def _environment(package: str) -> dict[str, str]:
    """Nothing of the server's: neither keys nor the run's own token."""
    return {
        "PATH": _PATH,
        "HOME": SCRATCH,
        "PYTHONPATH": package,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _in(environment: Mapping[str, str], words: list[str]) -> str:
    return shlex.join(["exec", "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *words])
