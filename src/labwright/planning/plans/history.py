"""Earlier compilations of a plan, kept so that a reviewer can compare their code and tests.

A compilation is identified by its digest; its files are among the plan's read-only copies.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labwright.compute.lab import Lab
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.planning.plans.documents import View, folder_of
from labwright.planning.record.state import Compilation, change_state, read_state
from labwright.store import plans as stored
from labwright.workspace import Digest, PlanWorkspaceHandle, what_changed

if TYPE_CHECKING:
    from labwright.planning.scan import ProjectScan

MOST_KEPT = 20
_LONGEST_DIFF = 200_000  # characters of one file


def record_compilation(handle: PlanWorkspaceHandle, scan: ProjectScan, by: str) -> None:
    """Record a compilation that reached its checks, unless it changed nothing."""
    from labwright.planning.project.digest import current_digest

    state, digest = read_state(handle), current_digest(handle, scan)
    if digest.value != state.validated_digest or (state.compilations and state.compilations[-1].digest == digest.value):
        return
    handle.keep_copy(digest)
    number = state.compilations[-1].number + 1 if state.compilations else 1
    made = Compilation(number=number, digest=digest.value, at=now(), by=by, passed=state.validated)
    kept = (*state.compilations, made)[-MOST_KEPT:]
    change_state(handle, compilations=kept)
    approved = {state.approval.digest} if state.approval else set()  # its copy is what runs
    for old in {one.digest for one in state.compilations} - {one.digest for one in kept} - approved:
        handle.remove_copy(old)


def compilations_view(lab: Lab, plan_id: str) -> list[View]:
    """Return the kept compilations, newest first."""
    stored.get(lab.db.reader(), plan_id)
    state = read_state(folder_of(lab, plan_id))
    return [one.model_dump(mode="json") for one in reversed(state.compilations)]


def changes_view(lab: Lab, plan_id: str, before: int, after: int | None) -> View:
    """Return what changed from one compilation to another, or to the current files."""
    from labwright.planning.project.digest import current_digest
    from labwright.planning.scan import scan_project

    stored.get(lab.db.reader(), plan_id)
    handle = folder_of(lab, plan_id)
    old_digest, old = _of_compilation(handle, before)
    if after is None:
        new_digest, new = current_digest(handle, scan_project(lab.paths.project)), handle.paths.dir
    else:
        new_digest, new = _of_compilation(handle, after)
    paths = sorted(old_digest.files.keys() | new_digest.files.keys())
    changed = [path for path in paths if old_digest.files.get(path) != new_digest.files.get(path)]
    return {
        "plan_id": plan_id,
        "before": old_digest.value,
        "after": new_digest.value,
        "files": [_file_view(path, old, new) for path in changed],
        "beside": what_changed(Digest({}, old_digest.facts), Digest({}, new_digest.facts)),
    }


def _of_compilation(handle: PlanWorkspaceHandle, number: int) -> tuple[Digest, Path]:
    for one in read_state(handle).compilations:
        if one.number == number:
            return handle.listing(one.digest), handle.open_copy(one.digest)
    raise NotFound(
        f"Plan {handle.id} has no compilation {number}, or it is no longer kept.",
        hint=f"GET /plans/{handle.id}/compilations lists them; the last {MOST_KEPT} are kept.",
    )


def _file_view(path: str, old: Path, new: Path) -> View:
    import difflib

    before, after = _lines(old / path), _lines(new / path)
    kind = "added" if before is None else "removed" if after is None else "changed"
    text = "\n".join(difflib.unified_diff(before or [], after or [], lineterm=""))
    diff = text.partition("\n")[2].partition("\n")[2]  # without the two lines of file names
    if len(diff) > _LONGEST_DIFF:
        diff = f"{diff[:_LONGEST_DIFF]}\n… {len(diff) - _LONGEST_DIFF} characters more"
    return {"path": path, "kind": kind, "diff": diff}


def _lines(file: Path) -> list[str] | None:
    try:
        return file.read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None
