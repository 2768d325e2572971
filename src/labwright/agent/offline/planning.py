"""Planning in a conversation without a model: a goal is given to the planner, its questions to the person."""

from __future__ import annotations

from collections.abc import Sequence

from labwright.agent.offline.reply import Ask, Json, Reply, Results

NEEDS_INPUT = "needs_input"


def planning_of(plan: Json) -> Json:
    """Return how far the plan is. Results of earlier versions have these fields beside the others."""
    found: Json = plan.get("planning") or plan
    return found


def planned(said: str, before: Json | None, results: Results) -> Reply:
    """`before`: the plan that waits for what is said now, if there is one."""
    if results and "questions" in planning_of(results[-1]):
        return _told(results[-1])
    if before is None:
        return [Ask("create_plan", {"goal": said})]
    return [Ask("compile_plan", {"plan_id": before["id"], "answers": _answers(said, planning_of(before)["questions"])})]


def _answers(said: str, questions: Sequence[str]) -> list[str]:
    """Line by line, where there are as many as questions."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines if len(lines) == len(questions) else [said]


def _told(plan: Json) -> Reply:
    planning = planning_of(plan)
    if planning["status"] == NEEDS_INPUT:
        return [Ask("ask_user", {"questions": planning["questions"]})]
    if "plan_saved" not in plan:
        return f"No plan came of it: {planning['error'] or planning['status']}"
    name = f"`{plan['title']}` [{plan['evidence']}]"
    if not planning["validated"]:
        why = planning["error"] or "see its review"
        return f"{name} did not pass the checks: {why}\nLook at it: `labwright plan review {plan['id']}`"
    done = f"{name} is compiled and has passed the checks.{_tried_out(plan)}"
    return f"{done}\nReview it: `labwright plan review {plan['id']}`"


def _tried_out(plan: Json) -> str:
    rehearsal = plan["rehearsal"]
    if rehearsal["outcome"] == "passed":
        return " A rehearsal of it passed."
    return f" It was not tried out: `{rehearsal['reason']}`" if rehearsal["reason"] else " It was not tried out."


def still_missing(results: Results) -> str | None:
    """Where the planner asks on after all questions were asked."""
    plan = next((found for found in results if planning_of(found).get("status") == NEEDS_INPUT), None)
    if plan is None:
        return None
    return "\n".join(["It still cannot be planned. Say the goal again with what is missing:", *_listed(plan)])


def _listed(plan: Json) -> list[str]:
    return [f"- {question.replace('?', '')}" for question in planning_of(plan)["questions"]]
