"""What generated code imports is in the project's environment, also where the import stands inside of a function."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from labwright.planning.checks.names import imported_modules
from labwright.planning.checks.subject import Found, Subject
from labwright.planning.scan import ProjectScan
from labwright.planning.scan.interpreters import installed

_OURS = {"labwright", "experiment", "__future__"}


def check_packages(subject: Subject) -> Iterator[Found]:
    there = _importable(subject.scan)
    if there is None:
        return
    for module in subject.modules.values():
        for node in ast.walk(module.tree):
            for name in {name.split(".")[0] for name in imported_modules(node)} - there:
                words = f"{module.path} imports {name}, which the project's environment does not have."
                hint = f"Install {name} there and plan again, or do without it."
                yield Found(code="missing_package", place=module.at(node), message=words, hint=hint)


def _importable(scan: ProjectScan) -> set[str] | None:
    """None where nobody can tell: no environment is chosen yet, or it sees the system's packages."""
    chosen = scan.environment.chosen
    if chosen is None or "*" in (found := installed(chosen)):
        return None
    return {*found, *sys.stdlib_module_names, *_OURS}
