"""Planning in a conversation without a model: a goal is given to the planner, its questions to the person."""

from __future__ import annotations

from collections.abc import Sequence

from labwright.agent.offline.reply import Ask, Json, Reply, Results

NEEDS_INPUT = "needs_input"


def planned(said: str, before: Json | None, results: Results) -> Reply:
    """`before`: the plan that waits for what is said now, if there is one."""
    if results and "questions" in results[-1]:
        return _told(results[-1])
    if before is None:
        return [Ask("plan_goal", {"goal": said})]
    return [Ask("compile_plan", {"plan": before["id"], "answers": _answers(said, before["questions"])})]


def _answers(said: str, questions: Sequence[str]) -> list[str]:
    """Line by line, where there are as many as questions."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines if len(lines) == len(questions) else [said]


def _told(plan: Json) -> Reply:
    if plan["status"] == NEEDS_INPUT:
        return [Ask("ask_user", {"questions": plan["questions"]})]
    if "plan_saved" not in plan:
        return f"No plan came of it: {plan['error'] or plan['status']}"
    name = f"`{plan['title']}` [{plan['evidence']}]"
    if not plan["validated"]:
        why = plan["error"] or "see its review"
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
    plan = next((found for found in results if found.get("status") == NEEDS_INPUT), None)
    if plan is None:
        return None
    return "\n".join(["It still cannot be planned. Say the goal again with what is missing:", *_listed(plan)])


def _listed(plan: Json) -> list[str]:
    return [f"- {question.replace('?', '')}" for question in plan["questions"]]
