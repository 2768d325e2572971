"""What an approval covers beside the workspace: the project's code, its environment, the command that is to run."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path

from labwright.compute.snapshot.git import tracked_files
from labwright.domain.approved_code import fact_of, is_code, packages_fact
from labwright.hashes import content_of, packages_of
from labwright.planning.ir.model import BadIR, read_ir
from labwright.planning.project.made_environment import distributions_hash, installed_hash, made_by
from labwright.planning.scan import ProjectScan, ScanLimits
from labwright.planning.scan.interpreters import package_folders
from labwright.planning.scan.walk import walk
from labwright.workspace import Digest, PlanWorkspaceHandle

_UNHURRIED = ScanLimits(seconds=math.inf)  # the same files on a busy machine as on an idle one
# Settings, prompts and small data that a script may read. Runs write such files, too: those that git tracks count.
_TEXT = (
    ".json", ".jsonc", ".json5", ".jsonl", ".txt", ".csv", ".tsv", ".xml", ".gin", ".conf", ".properties", ".env",
    ".jinja", ".j2", ".tmpl", ".prompt",
)  # fmt: skip
_MOST_BYTES = 1 << 20  # of such a file; larger ones are data


def current_digest(handle: PlanWorkspaceHandle, scan: ProjectScan) -> Digest:
    facts = {**_project_files(scan, handle), **_packages(scan)}
    return handle.digest({**facts, "environment": _environment(scan), "command": _command(handle)})


def _project_files(scan: ProjectScan, handle: PlanWorkspaceHandle) -> dict[str, str]:
    """Without the plans, which may lie inside of the project."""
    plans = handle.paths.dir.resolve().parent
    tree = walk(scan.folder, _UNHURRIED)
    tracked = set(tracked_files(scan.folder))
    counted = [path for path in tree.files if is_code(path) or (path in tracked and _is_text(scan.folder, path))]
    counted += [path for link in tree.linked for path in _code_behind(scan.folder, link)]
    files = {path: Path(scan.folder, path) for path in counted}
    return {fact_of(path): content_of(file) for path, file in files.items() if not file.is_relative_to(plans)}


def _is_text(project: str, path: str) -> bool:
    try:
        return path.endswith(_TEXT) and os.path.getsize(os.path.join(project, path)) <= _MOST_BYTES
    except FileNotFoundError:  # gone since it was listed
        return False


def _code_behind(project: str, link: str) -> list[str]:
    """The Python behind a link to a folder, such as a library that projects share; other links lead to data."""
    folder = os.path.realpath(os.path.join(project, link))
    try:
        names = os.listdir(folder)
    except OSError:  # nothing can be imported from there
        return []
    if not any(name.endswith(".py") for name in names):
        return []
    return [f"{link}/{path}" for path in walk(folder, _UNHURRIED).files if path.endswith(".py")]


def _environment(scan: ProjectScan) -> str:
    """One that a plan makes is known by the command, from before it is made until somebody changes it."""
    chosen, activation = scan.environment.chosen, scan.environment.activation
    command = scan.environment.create if chosen is None else made_by(chosen)
    facts: list[str] = [activation, command]
    if chosen and not command:
        is_system = chosen.kind == "system"
        installed = distributions_hash(chosen) if is_system else installed_hash(Path(chosen.path))
        facts = [activation, chosen.python, chosen.version, installed]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _packages(scan: ProjectScan) -> dict[str, str]:
    """What is installed, in a form that every run can look at when it begins. The machine's own Python is not ours."""
    chosen = scan.environment.chosen
    if chosen is None or chosen.kind == "system" or made_by(chosen):
        return {}
    folders = {folder.resolve() for folder in package_folders(chosen)}  # lib64 is a link to lib
    return {packages_fact(str(folder)): packages_of(folder) for folder in folders}


def _command(handle: PlanWorkspaceHandle) -> str:
    try:
        return read_ir(handle).experiment.command
    except BadIR:  # the checks say what is wrong with it
        return ""
