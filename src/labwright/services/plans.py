"""The verbs of plans as documents: create, edit, archive, delete, and what can be read of them.

The database commits first; the plan's folder follows, from files that lay ready before. A kill between the two is
mended by `settle` at the next start; a kill before the commit leaves nothing that anybody reads.
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
_USUAL = tuple(status for status in PlanStatus if status is not PlanStatus.ARCHIVED)
_TEXTS = ("title", "goal", "raw_markdown")


class _Saving:
    """One change: its transaction, and the files that are put in place once that is committed."""

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
    # Else an older manifest could be put in place after a newer one.
    with lab.plan_lock, contextlib.ExitStack() as held:
        with lab.db.transaction() as tx:
            saving = _Saving(lab, tx, held)
            yield saving
        saving.publish()


def create(
    lab: Lab,
    *,
    title: str,
    goal: str,
    raw_markdown: str,
    session_id: str | None,
    actor: Actor,
    key: IdempotencyKey | None = None,
) -> View:
    """Kept whatever its form; the answer says what is wrong with it."""
    at = now()
    first = PlanVersion(
        version=1, title=title, goal=goal, raw_markdown=raw_markdown, created_at=at, created_by=str(actor)
    )
    plan = Plan(
        id=new_id(PLAN),
        title=title,
        goal=goal,
        session_id=session_id,
        valid=_read(raw_markdown).valid,
        created_at=at,
        created_by=str(actor),
        updated_at=at,
    )
    with _saving(lab) as saving:
        if answer := recall(saving.tx, key):
            return _view_of_answer(json.loads(answer))
        plans.insert(saving.tx, plan, first, str(actor))
        remember(saving.tx, key, {"plan": plan.to_dict(), "version": first.to_dict()})
        saving.stage(plan, first)
    return view(plan, first)


def _view_of_answer(remembered: dict[str, Any]) -> View:
    return view(Plan.from_dict(remembered["plan"]), PlanVersion.from_dict(remembered["version"]))


def update(
    lab: Lab,
    plan_id: str,
    changes: dict[str, Any],
    actor: Actor,
    *,
    based_on: int | None = None,
    while_compiling: bool = False,
) -> View:
    """Another text, title or goal is a new version; an approval is not for that. `based_on`: the version edited.

    While it is compiled, only whoever compiles it may write the text.
    """
    valid = _read(changes["raw_markdown"]).valid if "raw_markdown" in changes else None
    with _saving(lab) as saving:
        before = plans.get(saving.tx.connection, plan_id)
        old = plans.version(saving.tx.connection, plan_id, before.version)
        _check_base(before, based_on)
        after, saved = _in_session(before, changes), old
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
            return view(before, old)
        saving.stage(after, saved)
    return view(after, saved)


def _check_base(plan: Plan, based_on: int | None) -> None:
    if based_on is not None and based_on != plan.version:
        raise Conflict(
            f"Plan {plan.id} is at version {plan.version} by now; version {based_on} was edited.",
            hint="Look at the newest version and make your change there.",
        )


def _in_session(plan: Plan, changes: dict[str, Any]) -> Plan:
    wanted = changes.get("session_id")
    return plan if wanted in (None, plan.session_id) else plan.of_session(str(wanted), at=now())


def change(lab: Lab, plan_id: str, make: Callable[[Plan], Plan], actor: Actor) -> View:
    """Another status, or facts beside the text: what `make` makes of the plan as it now is."""
    with _saving(lab) as saving:
        before = plans.get(saving.tx.connection, plan_id)
        saved = plans.version(saving.tx.connection, plan_id, before.version)
        after = make(before)
        if after != before:
            plans.change(saving.tx, before, after, str(actor))
            saving.stage(after, saved)
    return view(after, saved)


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
                raise Conflict(f"Plan {plan_id} is executing.", hint="Wait until it has ended, then delete it.")
            plan.check_free()
            lab.journal.note_deleted(tx, plan_id)
            plans.delete(tx, plan, str(actor))
        folder_of(lab, plan_id).remove()


def get(lab: Lab, plan_id: str) -> View:
    plan = plans.get(lab.db.reader(), plan_id)
    return view(plan, plans.version(lab.db.reader(), plan_id, plan.version))


def versions(lab: Lab, plan_id: str, limit: int, before: int | None) -> tuple[list[PlanVersion], int | None]:
    plans.get(lab.db.reader(), plan_id)
    return plans.versions(lab.db.reader(), plan_id, limit, before)


def page(
    lab: Lab, statuses: tuple[PlanStatus, ...], session_id: str | None, limit: int, before: int | None
) -> tuple[list[Plan], int | None]:
    """Without a status: all but the archived ones."""
    return plans.page(lab.db.reader(), statuses or _USUAL, session_id, limit, before)


def view(plan: Plan, saved: PlanVersion) -> View:
    """The plan with its text, what that says, and where it departs from the form."""
    document = _read(saved.raw_markdown)
    return {
        **plan.to_dict(),
        "raw_markdown": saved.raw_markdown,
        "format": _format(document),
        "sections": document.sections,
    }


def folder_of(lab: Lab, plan_id: str) -> PlanWorkspaceHandle:
    return Workspace(lab.paths.state).plan(plan_id)


def settle(lab: Lab) -> None:
    """At start: a kill after a commit may have left a folder behind its database."""
    for plan in plans.every(lab.db.reader()):
        folder = folder_of(lab, plan.id)
        try:
            on_disk = folder.plan()
        except Invalid as error:
            log.warning("%s", error)
            continue
        if on_disk is None or on_disk.updated_at < plan.updated_at:
            _write_out(lab, plan, folder)
        elif on_disk != plan:
            log.warning("%s is newer than the database; `labwright db rebuild` takes it in", folder.paths.manifest)


def _write_out(lab: Lab, plan: Plan, folder: PlanWorkspaceHandle) -> None:
    folder.stage(plan, plans.version(lab.db.reader(), plan.id, plan.version)).publish()
    for number in range(1, plan.version):
        if not folder.paths.version(number).exists():
            folder.keep_version(plans.version(lab.db.reader(), plan.id, number))


def check_format(raw_markdown: str) -> dict[str, Any]:
    """What is wrong with the form of a text that is not saved yet."""
    return _format(_read(raw_markdown))


def _format(document: PlanDocument) -> dict[str, Any]:
    return {"valid": document.valid, "errors": document.faults}


def _read(text: str) -> PlanDocument:
    from labwright.domain.plan_document.reader import (
        read,  # here, as its grammar is large and most servers read no plan
    )

    return read(text)
