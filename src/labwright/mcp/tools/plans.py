"""Plans: documents that a person reviews. Approving one is not an agent's to do."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labwright.client.lab import LabClient, part
from labwright.mcp.tools.briefly import Json, given

PlanId = Annotated[str, Field(description="the plan's id; @ before it is fine")]
Markdown = Annotated[str, Field(description="the whole plan in the exact form, beginning with `## 📋 Plan:`")]


def list_plans(
    lab: LabClient,
    status: Annotated[str | None, Field(description="comma-separated; by default all but archived ones")] = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> list[Json]:
    """List plans, newest first, without their texts."""
    return lab.plans(status, limit=limit)


def show_plan(lab: LabClient, plan_id: PlanId) -> Json:
    """Show a plan with its text, and what is wrong with its form."""
    return _told(lab.plan(plan_id.removeprefix("@")))


def save_plan(
    lab: LabClient,
    title: str,
    goal: Annotated[str, Field(description="the text of the plan's Objective")],
    raw_markdown: Markdown,
    session_id: str | None = None,
) -> Json:
    """Save a new plan for review. `format` tells, line by line, where its form is wrong: mend that with change_plan."""
    wanted = {"title": title, "goal": goal, "raw_markdown": raw_markdown, "session_id": session_id}
    return _told(lab.create_plan(wanted))


def change_plan(
    lab: LabClient,
    plan_id: PlanId,
    raw_markdown: Markdown | None = None,
    title: str | None = None,
    goal: str | None = None,
) -> Json:
    """Save another version of a plan; an approval of the former one is void then."""
    changes = given({"raw_markdown": raw_markdown, "title": title, "goal": goal})
    return _told(lab.change_plan(plan_id.removeprefix("@"), changes))


def compile_plan(
    lab: LabClient,
    plan_id: PlanId,
    answers: Annotated[list[str] | None, Field(description="to the questions in `planning`, in order")] = None,
    rehearsal: Annotated[bool | None, Field(description="false: do not try it small before the review")] = None,
) -> Json:
    """Begin to make a workspace of a plan, checked and rehearsed; then wait_for_plan tells what came of it."""
    wanted = given({"answers": answers, "rehearsal": rehearsal})
    return plan_briefly(lab.compile_plan(_plain(plan_id), wanted))


def validate_plan(
    lab: LabClient,
    plan_id: PlanId,
    rehearsal: Annotated[bool | None, Field(description="false: do not try it small")] = None,
) -> Json:
    """Begin every check of a compiled plan again, on its files as they are; then wait_for_plan."""
    return plan_briefly(lab.validate_plan(_plain(plan_id), rehearsal))


def execute_plan(lab: LabClient, plan_id: PlanId) -> Json:
    """Run a plan that a person has approved, as it was approved; anything else is refused, and says what is missing.

    Of one that ended, what failed or did not finish is made again, and nothing else.
    """
    return plan_briefly(lab.execute_plan(_plain(plan_id)))


def plan_briefly(plan: Json) -> Json:
    """Where it stands, without its text."""
    return {name: plan[name] for name in ("id", "title", "status", "status_reason", "version", "format", "planning")}


def _plain(plan_id: str) -> str:
    return part(plan_id.removeprefix("@"))


def _told(plan: Json) -> Json:
    """The text once: the sections say the same again."""
    return {name: value for name, value in plan.items() if name != "sections"}
