"""What an approval covers beside the workspace: the project's code, its environment, the command that is to run."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from labwright.planning.ir import BadIR, read_ir
from labwright.planning.scan import Limits, ProjectScan
from labwright.planning.scan.walk import walk
from labwright.workspace import Digest, PlanWorkspaceHandle
from labwright.workspace.digest import hash_file

# Code and settings. Not JSON or text in general: those are what runs write.
_COUNTED = (".py", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh")


def current_digest(handle: PlanWorkspaceHandle, scan: ProjectScan) -> Digest:
    return handle.digest(
        {**_project_files(scan, handle), "environment": _environment(scan), "command": _command(handle)}
    )


def _project_files(scan: ProjectScan, handle: PlanWorkspaceHandle) -> dict[str, str]:
    """Without the plans, which may lie inside of the project."""
    plans = handle.paths.dir.resolve().parent
    counted = [
        path
        for path in walk(scan.folder, Limits()).files
        if path.endswith(_COUNTED) or Path(path).name.startswith("requirements")
    ]
    files = {path: Path(scan.folder, path) for path in counted}
    return {f"project's {path}": hash_file(file) for path, file in files.items() if not file.is_relative_to(plans)}


def _environment(scan: ProjectScan) -> str:
    chosen = scan.environment.chosen
    facts: list[object] = [
        scan.environment.activation,
        chosen.python if chosen else "",
        chosen.version if chosen else "",
    ]
    if chosen and chosen.kind != "system":
        facts.append(_installed(Path(chosen.path)))
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _installed(environment: Path) -> list[tuple[str, int, int]]:
    """What lies there, file by file, by size and time: to read it all would take minutes. Caches do not count."""
    found: list[tuple[str, int, int]] = []
    for root in (environment / "bin", *environment.glob("lib/python*/site-packages")):
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in (os.path.join(folder, name) for name in names):
                known = os.lstat(path)
                found.append((os.path.relpath(path, environment), known.st_size, known.st_mtime_ns))
    return sorted(found)


def _command(handle: PlanWorkspaceHandle) -> str:
    try:
        return read_ir(handle).experiment.command
    except BadIR:  # the checks say what is wrong with it
        return ""
