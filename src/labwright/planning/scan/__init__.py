"""Reading a project without running it. `project.py` has the whole of it in one function."""

from labwright.planning.scan.command_line import Place, run_command, words_for
from labwright.planning.scan.facts import (
    EntryPoint,
    Environment,
    Flag,
    Interpreter,
    Kind,
    Launch,
    Metric,
    ProjectScan,
    Role,
    SetBy,
)
from labwright.planning.scan.project import scan_project
from labwright.planning.scan.roles import rehearsal_flags
from labwright.planning.scan.walk import Limits

__all__ = [
    "EntryPoint", "Environment", "Flag", "Interpreter", "Kind", "Launch", "Limits", "Metric", "Place", "ProjectScan",
    "Role", "SetBy", "rehearsal_flags", "run_command", "scan_project", "words_for",
]  # fmt: skip
