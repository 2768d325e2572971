"""DraftReportDigest: what is asked for, what is assumed, and what has to be asked before going on."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.ir.drafts import ReportDigest
from labwright.planning.nodes.planning import Planning, as_yaml, hash_of
from labwright.planning.record.state import change_state
from labwright.workflow import Suspended

_MOST_QUESTIONS = 3


def draft_report_digest(planning: Planning) -> str:
    digest = planning.ask("DraftReportDigest", ReportDigest, goal=planning.request)
    change_state(planning.handle, questions=digest.missing[:_MOST_QUESTIONS], model=planning.model.name)
    if digest.missing:
        raise Suspended("; ".join(question.text for question in digest.missing[:_MOST_QUESTIONS]))
    data = planning.keep("report/digest.yaml", as_yaml(digest.model_dump(mode="json")))
    return hash_of(data, planning.keep("report/digest.md", "\n".join(_lines(digest)) + "\n"))


def _lines(digest: ReportDigest) -> Iterator[str]:
    yield from ("# What was asked for", "", digest.summary, "", digest.goal)
    parts = {"Varied": digest.variables, "Expected": digest.expected_outputs, "Assumed": digest.assumptions}
    for title, items in parts.items():
        if items:
            yield from ("", f"## {title}", "", *(f"- {item}" for item in items))
