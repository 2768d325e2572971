"""DraftReportDigest: what is asked for, what is assumed, and what has to be asked before going on."""

from __future__ import annotations

from labwright.planning.drafts import ReportDigest
from labwright.planning.nodes.planning import Planning, as_yaml
from labwright.planning.state import change_state
from labwright.workflow import Suspended


def draft_report_digest(planning: Planning) -> str:
    digest = planning.ask("DraftReportDigest", ReportDigest, goal=planning.goal)
    change_state(planning.handle, questions=digest.missing, model=planning.model.name)
    if digest.missing:
        raise Suspended("; ".join(question.text for question in digest.missing))
    return planning.keep("report/digest.yaml", as_yaml(digest.model_dump(mode="json")))
