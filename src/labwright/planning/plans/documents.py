"""Plans as documents: create, edit, archive, delete and read them.

The database commits first; the plan's folder follows, from files staged before the commit. `settle_folders` repairs a
kill between the two at the next start. A kill before the commit leaves only staged files that nobody reads.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.ids import PLAN, new_id
from labwright.domain.plan import Plan, PlanStatus, PlanVersion
from labwright.domain.plan_document.document import PlanDocument
from labwright.store import plans
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, recall, remember
from labwright.workspace import PlanWorkspaceHandle, Workspace
from labwright.workspace.manifest import CHANGING
from labwright.workspace.plan_workspace import Staged

log = logging.getLogger(__name__)
View = dict[str, Any]
_NOT_ARCHIVED = tuple(status for status in PlanStatus if status is not PlanStatus.ARCHIVED)
_TEXTS = ("title", "goal", "raw_markdown")


class _Saving:
    """One change: its transaction, and the files to publish after the commit."""

    def __init__(self, lab: Lab, tx: Transaction, held: contextlib.ExitStack) -> None:
        self.tx = tx
        self._lab = lab
        self._held = held
        self._staged: list[Staged] = []

    def stage(self, plan: Plan, saved: PlanVersion) -> None:
        self._held.enter_context(CHANGING)
        self._staged.append(folder_of(self._lab, plan.id).stage(plan, saved))

    def publish(self) -> None:
        for staged in self._staged:
            staged.publish()


@contextlib.contextmanager
def _saving(lab: Lab) -> Iterator[_Saving]:
    # Without the lock, an older manifest could replace a newer one.
    with lab.plan_lock, contextlib.ExitStack() as held:
        with lab.db.transaction() as tx:
            saving = _Saving(lab, tx, held)
            yield saving
        saving.publish()


def create_document(
    lab: Lab,
    *,
    title: str,
    goal: str,
    raw_markdown: str,
    session_id: str | None,
    actor: Actor,
    key: IdempotencyKey | None = None,
) -> View:
    """Save a new plan, even if its format is invalid; the view lists the format errors."""
    at = now()
    first = PlanVersion(
        version=1, title=title, goal=goal, raw_markdown=raw_markdown, created_at=at, created_by=str(actor)
    )
    plan = Plan(
        id=new_id(PLAN),
        title=title,
        goal=goal,
        session_id=session_id,
        valid=_parse(raw_markdown).valid,
        created_at=at,
        created_by=str(actor),
        updated_at=at,
    )
    with _saving(lab) as saving:
        if answer := recall(saving.tx, key):
            recalled = json.loads(answer)
            return document_view(Plan.from_dict(recalled["plan"]), PlanVersion.from_dict(recalled["version"]))
        plans.insert(saving.tx, plan, first, str(actor))
        remember(saving.tx, key, {"plan": plan.to_dict(), "version": first.to_dict()})
        saving.stage(plan, first)
    return document_view(plan, first)


def update_document(
    lab: Lab,
    plan_id: str,
    changes: dict[str, Any],
    actor: Actor,
    *,
    based_on: int | None = None,
    while_compiling: bool = False,
) -> View:
    """Save a changed text, title or goal as a new version; approvals do not carry over.

    `based_on` is the version that was edited. While the plan compiles, only the compilation may write the text
    (`while_compiling`).
    """
    valid = _parse(changes["raw_markdown"]).valid if "raw_markdown" in changes else None
    with _saving(lab) as saving:
        before = plans.get(saving.tx.connection, plan_id)
        if based_on is not None and based_on != before.version:
            raise Conflict(
                f"Plan {before.id} is already at version {before.version}; version {based_on} was edited.",
                hint="Read the newest version and make your change there.",
            )
        old = plans.version(saving.tx.connection, plan_id, before.version)
        session_id = changes.get("session_id")
        same_session = session_id in (None, before.session_id)
        after, saved = before if same_session else before.of_session(str(session_id), at=now()), old
        changed = [name for name in _TEXTS if name in changes and changes[name] != getattr(old, name)]
        if changed:
            if not while_compiling:
                before.check_free()
            texts = {name: changes[name] for name in changed}
            saved = replace(old, **texts, version=old.version + 1, created_at=now(), created_by=str(actor))
            after = after.edited(saved, valid=before.valid if valid is None else valid)
            plans.edit(saving.tx, before, after, saved, changed, str(actor))
        elif after != before:
            plans.change(saving.tx, before, after, str(actor))
        else:
            return document_view(before, old)
        saving.stage(after, saved)
    return document_view(after, saved)


def change(lab: Lab, plan_id: str, make: Callable[[Plan], Plan], actor: Actor) -> View:
    """Apply `make` to the current plan and save the result: a new status, or facts beside the text."""
    with _saving(lab) as saving:
        before = plans.get(saving.tx.connection, plan_id)
        saved = plans.version(saving.tx.connection, plan_id, before.version)
        after = make(before)
        if after != before:
            plans.change(saving.tx, before, after, str(actor))
            saving.stage(after, saved)
    return document_view(after, saved)


def archive(lab: Lab, plan_id: str, actor: Actor) -> View:
    def archived(plan: Plan) -> Plan:
        plan.check_free()
        return plan.move(PlanStatus.ARCHIVED, at=now())

    return change(lab, plan_id, archived, actor)


def delete(lab: Lab, plan_id: str, actor: Actor) -> None:
    with lab.plan_lock:
        with lab.db.transaction() as tx:
            plan = plans.get(tx.connection, plan_id)
            if plan.status is PlanStatus.EXECUTING:
                raise Conflict(f"Plan {plan_id} is executing.", hint="Stop it or wait until it ends, then delete it.")
            plan.check_free()
            lab.journal.note_deleted(tx, plan_id)
            plans.delete(tx, plan, str(actor))
        folder_of(lab, plan_id).remove()


def get_document(lab: Lab, plan_id: str) -> View:
    plan = plans.get(lab.db.reader(), plan_id)
    return document_view(plan, plans.version(lab.db.reader(), plan_id, plan.version))


def versions(lab: Lab, plan_id: str, limit: int, before: int | None) -> tuple[list[PlanVersion], int | None]:
    plans.get(lab.db.reader(), plan_id)
    return plans.versions(lab.db.reader(), plan_id, limit, before)


def page(
    lab: Lab, statuses: tuple[PlanStatus, ...], session_id: str | None, limit: int, before: int | None
) -> tuple[list[Plan], int | None]:
    """Return one page of plans; without statuses, all but the archived ones."""
    return plans.page(lab.db.reader(), statuses or _NOT_ARCHIVED, session_id, limit, before)


def document_view(plan: Plan, saved: PlanVersion) -> View:
    """Return the plan with its text, its sections and its format errors."""
    document = _parse(saved.raw_markdown)
    return {
        **plan.to_dict(),
        "raw_markdown": saved.raw_markdown,
        "format": {"valid": document.valid, "errors": document.faults},
        "sections": document.sections,
    }


def check_format(raw_markdown: str) -> dict[str, Any]:
    """Return the format errors of a text that is not saved yet."""
    document = _parse(raw_markdown)
    return {"valid": document.valid, "errors": document.faults}


def folder_of(lab: Lab, plan_id: str) -> PlanWorkspaceHandle:
    return Workspace(lab.paths.state).plan(plan_id)


def settle_folders(lab: Lab) -> None:
    """At start: bring every plan folder up to date with the database, in case of a kill after a commit."""
    for plan in plans.every(lab.db.reader()):
        folder = folder_of(lab, plan.id)
        try:
            on_disk = folder.plan()
        except Invalid as error:
            log.warning("%s", error)
            continue
        if on_disk is None or on_disk.updated_at < plan.updated_at:
            _write_folder(lab, plan, folder)
        elif on_disk != plan:
            log.warning("%s is newer than the database; run `labwright db rebuild` to import it", folder.paths.manifest)


def _write_folder(lab: Lab, plan: Plan, folder: PlanWorkspaceHandle) -> None:
    folder.stage(plan, plans.version(lab.db.reader(), plan.id, plan.version)).publish()
    for number in range(1, plan.version):
        if not folder.paths.version(number).exists():
            folder.keep_version(plans.version(lab.db.reader(), plan.id, number))


def _parse(text: str) -> PlanDocument:
    # The grammar is large, and most servers read no plan.
    from labwright.domain.plan_document.reader import read

    return read(text)
