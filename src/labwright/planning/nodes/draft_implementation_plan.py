"""DraftImplementationPlan: the experiment that is meant, and the plan document that says it to people."""

from __future__ import annotations

import re
from typing import Any

from labwright.domain.plan_document.document import PlanSections, compose
from labwright.domain.plan_document.reader import read
from labwright.planning.ir.document import sections_of
from labwright.planning.ir.drafts import ExperimentDraft
from labwright.planning.ir.values import write_value
from labwright.planning.nodes.planning import Planning
from labwright.planning.record.earlier import History
from labwright.planning.record.request import BETWEEN_ANSWERS, DRAFTS
from labwright.planning.record.state import read_state
from labwright.planning.scan import EntryPoint
from labwright.planning.scan.facts import Role


def draft_implementation_plan(planning: Planning) -> str:
    feedback = read_state(planning.handle).feedback.get("DraftReportDigest", "")
    goal, wishes = (f"{feedback}{BETWEEN_ANSWERS}{words}".strip("\n") for words in (planning.request, planning.wishes))
    draft = planning.ask("DraftImplementationPlan", ExperimentDraft, goal=goal, wishes=wishes, cluster=planning.cluster)
    entry = planning.scan.entry_point(draft.script)
    history = planning.history or History()
    draft = history.cited(_with_seeds_apart(draft, entry), entry.path if entry else draft.script)
    planning.keep_draft(draft)
    return planning.keep("plan/implementation_plan.md", _document(planning, draft))


def _with_seeds_apart(draft: ExperimentDraft, entry: EntryPoint | None) -> ExperimentDraft:
    """A row of seeds says how often each configuration runs; it makes no configurations of its own."""
    flags = {flag.name for flag in entry.flags_for(Role.SEED)} if entry else set()
    values = next((row.values for row in draft.parameters if row.flag in flags), ())
    others = tuple(row for row in draft.parameters if row.flag not in flags)
    if not (values and all(type(value) is int for value in values)):
        return draft
    if not others:
        return draft.model_copy(update={"seeds": (), "baseline": None})
    baseline = draft.baseline and {name: value for name, value in draft.baseline.items() if name not in flags}
    return draft.model_copy(update={"parameters": others, "seeds": values, "baseline": baseline})


def _document(planning: Planning, draft: ExperimentDraft) -> str:
    """A text that somebody wrote stays as it is, until they ask for another: what it says is checked, not mended."""
    feedback = read_state(planning.handle).feedback.keys() & set(DRAFTS)
    sections = sections_of(draft, planning.scan, planning.cluster)
    wished = bool(planning.wishes) and not _says(read(planning.plan).sections, sections, draft)
    return planning.plan if planning.plan and not feedback and not wished else compose(sections)


def _says(saved: PlanSections, meant: PlanSections, draft: ExperimentDraft) -> bool:
    """Whether a saved text is about the experiment that is meant."""
    words = "\n".join(f"{step.title} {step.description}" for step in saved.approach)
    fixed = all(_stands_in(words, name, write_value(value)) for name, value in draft.fixed.items())
    return fixed and draft.script in words and _experiment(saved) == _experiment(meant)


def _stands_in(words: str, name: str, value: str) -> bool:
    """`epochs=5`, `epochs: 5`, `5 epochs`."""
    name, value = re.escape(name), re.escape(value)
    return re.search(rf"\b(?:{name}\W{{1,4}}{value}|{value}\W{{1,4}}{name})\b", words) is not None


def _experiment(sections: PlanSections) -> tuple[Any, ...]:
    runs, primary = re.match(r"\d+", sections.estimated_effort.runs), sections.metrics.primary
    return {row.name: row.values for row in sections.parameters}, primary and primary.name, runs and runs[0]
