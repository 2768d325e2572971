"""What each compilation of a plan made, kept to be compared: which code and tests a reviewer has not seen yet.

A compilation is known by its digest; its files lie among the plan's read-only copies.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.planning.digest_facts import current_digest
from labwright.planning.plan_views import View
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.state import Compilation, change_state, read_state
from labwright.services import plans
from labwright.store import plans as stored
from labwright.workspace import Digest, PlanWorkspaceHandle, what_changed

MOST_KEPT = 20
_LONGEST_DIFF = 200_000  # characters of one file


def note(handle: PlanWorkspaceHandle, scan: ProjectScan, by: str) -> None:
    """After a compilation that came as far as its checks. One that changed nothing is not another one."""
    state, digest = read_state(handle), current_digest(handle, scan)
    if digest.value != state.validated_digest or (state.compilations and state.compilations[-1].digest == digest.value):
        return
    handle.keep_copy(digest)
    number = state.compilations[-1].number + 1 if state.compilations else 1
    made = Compilation(number=number, digest=digest.value, at=now(), by=by, passed=state.validated)
    kept = (*state.compilations, made)[-MOST_KEPT:]
    change_state(handle, compilations=kept)
    _forget(handle, {one.digest for one in state.compilations} - {one.digest for one in kept})


def _forget(handle: PlanWorkspaceHandle, digests: set[str]) -> None:
    """Never the one that was approved: it is what runs."""
    approval = read_state(handle).approval
    for digest in digests - ({approval.digest} if approval else set()):
        handle.remove_copy(digest)


def compilations_view(lab: Lab, plan_id: str) -> list[View]:
    """The newest first."""
    stored.get(lab.db.reader(), plan_id)
    state = read_state(plans.folder_of(lab, plan_id))
    return [one.model_dump(mode="json") for one in reversed(state.compilations)]


def changes_view(lab: Lab, plan_id: str, before: int, after: int | None) -> View:
    """What changed from one compilation to another, or to the files as they now are."""
    stored.get(lab.db.reader(), plan_id)
    handle = plans.folder_of(lab, plan_id)
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
        "files": [_file(path, old, new) for path in changed],
        "beside": what_changed(Digest({}, old_digest.facts), Digest({}, new_digest.facts)),
    }


def _of_compilation(handle: PlanWorkspaceHandle, number: int) -> tuple[Digest, Path]:
    for one in read_state(handle).compilations:
        if one.number == number:
            return handle.listing(one.digest), handle.open_copy(one.digest)
    raise NotFound(
        f"Plan {handle.id} has no compilation {number} that is still kept.",
        hint=f"GET /plans/{handle.id}/compilations lists them; the last {MOST_KEPT} are kept.",
    )


def _file(path: str, old: Path, new: Path) -> View:
    before, after = _lines(old / path), _lines(new / path)
    kind = "added" if before is None else "removed" if after is None else "changed"
    text = "\n".join(difflib.unified_diff(before or [], after or [], lineterm=""))
    return {"path": path, "kind": kind, "diff": _cut(text.partition("\n")[2].partition("\n")[2])}


def _lines(file: Path) -> list[str] | None:
    try:
        return file.read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return None


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_DIFF:
        return text
    return f"{text[:_LONGEST_DIFF]}\n… {len(text) - _LONGEST_DIFF} characters more"
