"""What was asked for, kept in the plan's folder, so that a compilation that a kill cut short goes on with the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from labwright.planning.ir.drafts import Strict
from labwright.planning.record.state import change_state, read_state
from labwright.workspace import PlanWorkspaceHandle

_KEY = "request"  # our part of the manifest
DRAFTS = ("DraftReportDigest", "DraftImplementationPlan")  # who reads what is said of the experiment
BETWEEN_ANSWERS = "\n\n"
_REPORT, _DOCUMENT = "report/given.md", "report/source.md"


class CompileRequest(Strict):
    answers: tuple[str, ...] = ()  # to questions; read like more words of the goal
    document: str = ""  # hash of the saved text that is the source; none where the goal is
    before_document: int = 0  # how many of the answers are older than it
    drafted: str = ""  # hash of the text that planning left in its place
    has_report: bool = False
    rehearsal: bool = True
    auto_approve: str = ""  # the person who wanted no review

    def words(self, goal: str) -> str:
        """All that was said: the newest first, since rules take the first of two."""
        return BETWEEN_ANSWERS.join(part for part in (*reversed(self.answers), goal) if part.strip())

    def wishes(self) -> str:
        """What was said of the saved text since it became the source: it goes before what stands there."""
        return BETWEEN_ANSWERS.join(reversed(self.answers[self.before_document :])) if self.document else ""

    def report(self, handle: PlanWorkspaceHandle) -> str:
        return handle.read(_REPORT).decode() if self.has_report else ""

    def source(self, handle: PlanWorkspaceHandle) -> str:
        """The saved document, as it was when it became the source."""
        return handle.read(_DOCUMENT).decode() if self.document else ""


def read_request(handle: PlanWorkspaceHandle) -> CompileRequest | None:
    """None if nobody asked yet."""
    found: dict[str, Any] | None = handle.manifest().get(_KEY)
    return None if found is None else CompileRequest(**found)


def write_request(handle: PlanWorkspaceHandle, request: CompileRequest) -> None:
    handle.update_manifest(**{_KEY: request.model_dump(mode="json")})


def ask(
    handle: PlanWorkspaceHandle,
    text: str,
    *,
    answers: Sequence[str] = (),
    report: str | None = None,
    rehearsal: bool | None = None,
    auto_approve: str = "",
) -> None:
    """`text` is the saved document: the source, if somebody else than planning wrote it."""
    before = read_request(handle) or CompileRequest()
    if report is not None:
        handle.write(_REPORT, report.encode())
    document, older, reasons = before.document, before.before_document, _reasons(handle) if answers else ()
    if text.strip() and hash_of(text) not in (before.document, before.drafted):
        handle.write(_DOCUMENT, text.encode())
        document, older, reasons = hash_of(text), len(before.answers), ()
        change_state(handle, feedback={})  # it was about an older text
    wanted = CompileRequest(
        answers=(*before.answers, *reasons, *answers),
        document=document,
        before_document=older,
        drafted=before.drafted,
        has_report=before.has_report or report is not None,
        rehearsal=before.rehearsal if rehearsal is None else rehearsal,
        auto_approve=auto_approve,
    )
    write_request(handle, wanted)


def _reasons(handle: PlanWorkspaceHandle) -> tuple[str, ...]:
    """Those of rejections so far, as feedback no more: what is said now goes before them."""
    feedback = read_state(handle).feedback
    change_state(handle, feedback={node: words for node, words in feedback.items() if node not in DRAFTS})
    return tuple(feedback[node] for node in DRAFTS if node in feedback)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
