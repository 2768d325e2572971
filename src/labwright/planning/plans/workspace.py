"""The files of a plan's workspace: list them, read one, and edit those that a reviewer may change."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.errors import Conflict, Invalid, NotFound, TooLarge
from labwright.domain.plan import Plan, PlanStatus
from labwright.planning.plans.documents import folder_of
from labwright.planning.plans.edits import edit, withdraw_approval
from labwright.planning.plans.views import View, planning_view
from labwright.planning.record.request import hash_of
from labwright.planning.record.state import read_state
from labwright.store import plans as stored
from labwright.workspace import Digest, PlanWorkspaceHandle, what_changed
from labwright.workspace.names import inside

LONGEST_FILE = 1 << 20
DOCUMENT = "plan/implementation_plan.md"
_SHOWN = ("plan", "report", "ir", "src", "tests", "validation", "results")
# Files that a reviewer may edit. Only the server writes reports, validation and results.
_EDITABLE = re.compile(r"ir/(?:tasks/)?\w+\.yaml|src/experiment/(?:\w+/)*\w+\.py|tests/\w+\.py")
_CACHES = {"__pycache__", ".pytest_cache"}


def workspace_view(lab: Lab, plan_id: str) -> View:
    """Return everything there is to review, with the digest of the current files."""
    from labwright.planning.project.digest import current_digest
    from labwright.planning.scan import scan_project

    plan = stored.get(lab.db.reader(), plan_id)
    handle = folder_of(lab, plan_id)
    state = read_state(handle)
    digest = current_digest(handle, scan_project(lab.paths.project))
    agreed = state.approval.digest if state.approval else ""
    earlier = (made.digest for made in reversed(state.compilations) if made.digest != digest.value)
    return {
        "plan_id": plan_id,
        "digest": digest.value,
        "changed_since_approval": what_changed(handle.listing(agreed), digest) if agreed else [],
        "changed_since_validation": _changed_since(handle, state.validated_digest, digest),
        "changed_since_compilation": _changed_since(handle, next(earlier, ""), digest),
        "planning": planning_view(handle, plan.compiling_by),
        "manifest": handle.manifest(),
        "files": _entries(handle, _files(handle.paths.dir), digest.files),
        "validation": _yaml_of(handle, "validation/report.yaml"),
        "rehearsal": rehearsal_view(lab, plan_id),
    }


def rehearsal_view(lab: Lab, plan_id: str) -> View | None:
    """Return the result of the rehearsal, or None before it."""
    return _yaml_of(folder_of(lab, plan_id), "validation/rehearsal.yaml")


def _changed_since(handle: PlanWorkspaceHandle, before: str, digest: Digest) -> list[str]:
    if before in ("", digest.value):
        return []
    try:
        return what_changed(handle.listing(before), digest)
    except NotFound:  # the compilation was stopped before its copy was kept
        return ["the files changed"]


def _files(folder: Path) -> list[str]:
    found = []
    for top in _SHOWN:
        for path, folders, names in os.walk(folder / top):
            folders[:] = sorted(name for name in folders if name not in _CACHES)
            found += [str(Path(path, name).relative_to(folder)) for name in sorted(names)]
    return found


def _entries(handle: PlanWorkspaceHandle, paths: list[str], covered: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        try:
            size = os.lstat(handle.paths.dir / path).st_size
        except FileNotFoundError:  # a temporary file that was renamed
            continue
        found.append({"path": path, "size": size, "sha256": covered.get(path, ""), "editable": is_editable(path)})
    return found


def is_editable(path: str) -> bool:
    return path == DOCUMENT or _EDITABLE.fullmatch(path) is not None


def _yaml_of(handle: PlanWorkspaceHandle, path: str) -> dict[str, Any] | None:
    import yaml  # loaded only when it is needed, like the planner

    try:
        found = yaml.safe_load(handle.read(path))
    except FileNotFoundError:
        return None
    except (yaml.YAMLError, ValueError) as error:
        raise Conflict(f"{path} cannot be read: {error}.", hint="Validate the plan again.") from error
    return found if isinstance(found, dict) else None


def read_file(lab: Lab, plan_id: str, path: str) -> View:
    stored.get(lab.db.reader(), plan_id)
    text = _text_of(folder_of(lab, plan_id), path)
    return {"path": path, "content": text, "sha256": hash_of(text), "editable": is_editable(path)}


def _text_of(handle: PlanWorkspaceHandle, path: str) -> str:
    if path.split("/")[0] not in _SHOWN:
        raise NotFound(f"There is no file {path[:200]!r}.", hint="GET /plans/{plan_id}/workspace lists the files.")
    file = inside(handle.paths.dir, path)
    try:
        if file.stat().st_size > LONGEST_FILE:
            raise TooLarge(f"{path} is larger than {LONGEST_FILE >> 20} MB.", hint="Open it in the plan's folder.")
        return file.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFound(f"There is no file {path}.", hint="GET /plans/{plan_id}/workspace lists the files.") from error
    except UnicodeDecodeError as error:
        raise Conflict(f"{path} is not text.", hint="Open it in the plan's folder.") from error


def write_file(lab: Lab, plan_id: str, path: str, content: str, based_on: str | None, actor: Actor) -> View:
    """Save a reviewer's edit. It withdraws the approval, and the plan must be validated again.

    `based_on` is the hash of the content that was edited.
    """
    if not is_editable(path):
        raise Invalid(
            f"{path[:200]!r} is not a file that can be edited.",
            hint=f"You can edit {DOCUMENT}, ir/*.yaml, src/experiment/**.py and tests/*.py.",
        )
    if len(content.encode()) > LONGEST_FILE:
        raise TooLarge(f"A file may have {LONGEST_FILE >> 20} MB at most.", hint="Make it smaller.")
    with lab.plan_lock:
        plan = stored.get(lab.db.reader(), plan_id)
        plan.check_editable()
        plan.check_free()
        handle = folder_of(lab, plan_id)
        file = inside(handle.paths.dir, path)
        if based_on is not None and (not file.exists() or hash_of(file.read_bytes().decode()) != based_on):
            raise Conflict(f"{path} was changed in the meantime.", hint="Read it again and make your change there.")
        if path == DOCUMENT:
            edit(lab, plan_id, {"raw_markdown": content}, actor, None)
        else:
            withdraw_approval(lab, plan_id, f"{path} was edited", actor)
            handle.write(path, content.encode())
            with lab.db.transaction() as tx:
                stored.file_changed(tx, plan, path, str(actor))
    return read_file(lab, plan_id, path)


def _until_report(plan: Plan) -> str:
    if plan.status is PlanStatus.EXECUTING:
        return f"Watch it: labwright plan show {plan.id}"
    if plan.executions and plan.status is PlanStatus.FAILED:
        return f"It is written after the last run ends. If no run is active: labwright plan execute {plan.id}"
    return f"First: labwright plan execute {plan.id}"


def results_view(lab: Lab, plan_id: str) -> View:
    """Return the report of an execution, its files, and what happened since it was written."""
    from labwright.planning.results.since import since_written
    from labwright.planning.results.write import REPORT

    plan = stored.get(lab.db.reader(), plan_id)
    handle = folder_of(lab, plan_id)
    try:
        text = _text_of(handle, REPORT)
    except NotFound as error:
        raise NotFound(f"Plan {plan_id} is {plan.status} and has no report yet.", hint=_until_report(plan)) from error
    beside = [path for path in _files(handle.paths.dir) if path.startswith("results/")]
    files = _entries(handle, beside, {})
    return {"plan_id": plan_id, "markdown": text, "files": files, "since": since_written(lab, handle, plan)}
