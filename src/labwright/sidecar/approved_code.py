"""Whether a project's code is still what its plan was approved with: looked at when a run begins, however late."""

from __future__ import annotations

import os
from typing import Any

from labwright.domain.approved_code import CODE_CHANGED, project_files
from labwright.files import read_json
from labwright.hashes import content_of

_NAMED = 3


def refusal_of(listing: str, project: str) -> dict[str, Any] | None:
    """Why the run ends here; None if it may begin."""
    try:
        approved = project_files(read_json(listing)["facts"])
    except FileNotFoundError:
        return _refusal("what was approved is not kept any more")
    changed = [path for path, value in approved.items() if content_of(os.path.join(project, path)) != value]
    if not changed:
        return None
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return _refusal(f"{', '.join(sorted(changed)[:_NAMED])}{more} changed since the plan was approved")


def _refusal(words: str) -> dict[str, Any]:
    return {"status": "failed", "reason": CODE_CHANGED, "error": f"It did not begin: {words}."}
