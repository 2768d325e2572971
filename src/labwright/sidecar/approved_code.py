"""Whether a project's code is what its plan was approved with, looked at when a run begins, however late that is.

Of the environment the names and versions of its packages: its bytes would take too long to read for every run.

A command reads its code a moment after that look, so a second one tells of files that were changed in this moment.
What is changed later is taken to be loaded already: a module that a script imports in the middle may be another one.
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
    """Why the run ends here; None if it may begin."""
    try:
        changed = _changed(listing, project)
    except FileNotFoundError:
        return _failure("It did not begin: what was approved is not kept any more.")
    if not changed:
        return None
    return _failure(f"It did not begin: {_named(changed)} changed since the plan was approved.")


def doubt_of(listing: str, project: str, began: float) -> dict[str, Any] | None:
    """For a run that has ended: why nobody can tell which code it was that ran."""
    if not os.path.exists(listing):  # its plan was deleted meanwhile, so nobody counts it
        return None
    changed = [path for path in _changed(listing, project) if _changed_at(project, path) < began + LOADING_SECONDS]
    if not changed:
        return None
    return _failure(f"{_named(changed)} changed just when it began: it may not be what was approved.")


def _changed(listing: str, project: str) -> list[str]:
    facts = read_json(listing)["facts"]
    code, packages = project_code(facts), package_folders(facts)
    changed = [path for path, value in code.items() if content_of(os.path.join(project, path)) != value]
    return sorted([*changed, *(folder for folder, value in packages.items() if packages_of(folder) != value)])


def _changed_at(project: str, path: str) -> float:
    """Of a file that is gone, when something last came or went in the folder where it was."""
    place = os.path.join(project, path)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    return os.stat(place).st_ctime


def _named(changed: list[str]) -> str:
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"{', '.join(changed[:_NAMED])}{more}"


def _failure(words: str) -> dict[str, Any]:
    return {"status": "failed", "reason": CODE_CHANGED, "error": words}
