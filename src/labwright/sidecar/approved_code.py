"""Check that a project's code is the code with which its plan was approved. Called when a run starts.

For the environment, only names and versions of packages are compared: reading all its bytes would take too long.

A command reads its code shortly after the check, so a second check finds files that changed in between. Files that
change later count as loaded already. So a module that a script imports late may differ from the approved one.
"""

from __future__ import annotations

import os
from typing import Any

from labwright.domain.approved_code import CODE_CHANGED, package_folders, project_code
from labwright.files import read_json
from labwright.hashes import content_of, packages_of

_NAMED = 3
LOADING_SECONDS = 10.0  # a busy machine takes its time to start a command


def refusal_of(listing: str, project: str) -> dict[str, Any] | None:
    """Return why the run must not start, or None."""
    try:
        changed = _changed(listing, project)
    except FileNotFoundError:
        return _failure("The run did not start: the record of the approved code no longer exists.")
    if not changed:
        return None
    return _failure(f"The run did not start: {_named(changed)} changed since the plan was approved.")


def doubt_of(listing: str, project: str, began: float) -> dict[str, Any] | None:
    """Return why it is not certain which code an ended run has used, or None."""
    if not os.path.exists(listing):  # its plan was deleted meanwhile, so the run does not count
        return None
    changed = [path for path in _changed(listing, project) if _changed_at(project, path) < began + LOADING_SECONDS]
    if not changed:
        return None
    return _failure(f"{_named(changed)} changed while the run started: it may not have used the approved code.")


def _changed(listing: str, project: str) -> list[str]:
    facts = read_json(listing)["facts"]
    code, packages = project_code(facts), package_folders(facts)
    changed = [path for path, value in code.items() if content_of(os.path.join(project, path)) != value]
    return sorted([*changed, *(folder for folder, value in packages.items() if packages_of(folder) != value)])


def _changed_at(project: str, path: str) -> float:
    """Return when a file changed; for a deleted file, when its folder last changed."""
    place = os.path.join(project, path)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return os.stat(place).st_ctime


def _named(changed: list[str]) -> str:
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"{', '.join(changed[:_NAMED])}{more}"


def _failure(message: str) -> dict[str, Any]:
    return {"status": "failed", "reason": CODE_CHANGED, "error": message}
