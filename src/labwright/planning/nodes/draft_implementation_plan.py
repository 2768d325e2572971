"""DraftImplementationPlan: the experiment that is meant, and the plan document that says it to people."""

from __future__ import annotations

from labwright.domain.plan_document import compose
from labwright.planning.document import sections_of
from labwright.planning.drafts import ExperimentDraft
from labwright.planning.history import History
from labwright.planning.nodes.planning import Planning
from labwright.planning.state import read_state


def draft_implementation_plan(planning: Planning) -> str:
    feedback = read_state(planning.handle).feedback.get("DraftReportDigest", "")
    goal = "\n".join(part for part in (feedback, planning.request) if part)
    draft = planning.ask("DraftImplementationPlan", ExperimentDraft, goal=goal, cluster=planning.cluster)
    draft = (planning.history or History()).cited(draft)
    planning.keep_draft(draft)
    return planning.keep("plan/implementation_plan.md", _document(planning, draft))


def _document(planning: Planning, draft: ExperimentDraft) -> str:
    """A text that somebody wrote stays as it is, until they ask for another: what it says is checked, not mended."""
    feedback = read_state(planning.handle).feedback
    if planning.plan and not feedback.keys() & {"DraftReportDigest", "DraftImplementationPlan"}:
        return planning.plan
    return compose(sections_of(draft, planning.scan, planning.cluster))
