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
    goal = "\n".join(part for part in (planning.request, feedback) if part)
    draft = planning.ask("DraftImplementationPlan", ExperimentDraft, goal=goal, cluster=planning.cluster)
    draft = (planning.history or History()).cited(draft)
    planning.keep_draft(draft)
    sections = sections_of(draft, planning.scan, planning.cluster)
    return planning.keep("plan/implementation_plan.md", compose(sections))
