"""Plan mode without a model: the goal goes to the planner, and its questions go to the user."""

from __future__ import annotations

from labwright.agent.offline.reply import Ask, Json, Reply, Results

NEEDS_INPUT = "needs_input"


def planning_of(plan: Json) -> Json:
    """Return the plan's progress. Results of earlier versions have these fields beside the others."""
    found: Json = plan.get("planning") or plan
    return found


def planned(text: str, before: Json | None, results: Results) -> Reply:
    """Plan a goal, or answer the questions of the plan `before`, which waits for input."""
    if results and "questions" in planning_of(results[-1]):
        return _report(results[-1])
    if before is None:
        return [Ask("create_plan", {"goal": text})]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    answers = lines if len(lines) == len(planning_of(before)["questions"]) else [text]
    return [Ask("compile_plan", {"plan_id": before["id"], "answers": answers})]


def _report(plan: Json) -> Reply:
    planning = planning_of(plan)
    if planning["status"] == NEEDS_INPUT:
        return [Ask("ask_user", {"questions": planning["questions"]})]
    if "plan_saved" not in plan:
        return f"The plan could not be made: {planning['error'] or planning['status']}"
    name, review = f"`{plan['title']}` [{plan['evidence']}]", f"`labwright plan review {plan['id']}`"
    if not planning["validated"]:
        return f"{name} did not pass the checks: {planning['error'] or 'see its review'}\nReview it: {review}"
    rehearsal = plan["rehearsal"]
    if rehearsal["outcome"] == "passed":
        tried = "Its rehearsal passed."
    else:
        tried = f"It was not rehearsed: `{rehearsal['reason']}`" if rehearsal["reason"] else "It was not rehearsed."
    return f"{name} is compiled and passed the checks. {tried}\nReview it: {review}"


def still_missing(results: Results) -> str | None:
    """Return the questions that are left after the user answered as many as a plan may ask."""
    plan = next((found for found in results if planning_of(found).get("status") == NEEDS_INPUT), None)
    if plan is None:
        return None
    questions = [f"- {question.replace('?', '')}" for question in planning_of(plan)["questions"]]
    return "\n".join(["The goal is still not clear. Repeat it with what is missing:", *questions])
