"""Read a project without running it. `scan_project` returns everything the scan finds."""

from labwright.planning.scan.commands import SwitchPlaceholder, run_command, words_for
from labwright.planning.scan.facts import (
    EntryPoint,
    Environment,
    Flag,
    Interpreter,
    Kind,
    LaunchCommand,
    LoggedMetric,
    ProjectScan,
    Role,
    SetBy,
    rehearsal_flags,
)
from labwright.planning.scan.project import scan_project
from labwright.planning.scan.walk import ScanLimits

__all__ = [
    "EntryPoint",
    "Environment",
    "Flag",
    "Interpreter",
    "Kind",
    "LaunchCommand",
    "LoggedMetric",
    "ProjectScan",
    "Role",
    "ScanLimits",
    "SetBy",
    "SwitchPlaceholder",
    "rehearsal_flags",
    "run_command",
    "scan_project",
    "words_for",
]  # fmt: skip
