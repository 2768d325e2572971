"""Plans: read, written, made from a goal, and compiled into a workspace that is checked. A person approves."""

from __future__ import annotations

from collections.abc import Callable

from labwright.agent.tools.tool import Compiling, Deed, Json, Tool, several, text, whole, yes_or_no
from labwright.domain.errors import Forbidden
from labwright.domain.run import name_from
from labwright.planning import plans
from labwright.store import events
from labwright.store import plans as stored
from labwright.store.idempotency import recall, remember

_SHOWN = ("id", "title", "goal", "status", "version", "valid", "updated_at")
_CITED = 8000
_LONGEST = 200_000  # characters of a plan


def list_plans(deed: Deed, limit: int = 20) -> Json:
    found, more = plans.page(deed.lab, (), None, limit, None)
    return {"plans": [{name: getattr(plan, name) for name in _SHOWN} for plan in found], "more": more is not None}


def show_plan(deed: Deed, plan: str) -> Json:
    found = plans.get_document(deed.lab, plan.removeprefix("@"))
    shown = found["raw_markdown"]
    evidence = deed.cite("text", what=found["id"], shown=shown[:_CITED])
    return {**{name: found[name] for name in _SHOWN}, "raw_markdown": shown, "evidence": evidence}


def plan_goal(deed: Deed, goal: str, rehearsal: bool = True) -> Json:
    """The planner writes the document, from the goal and the project."""
    return _made(deed, {"title": name_from(goal), "goal": goal, "raw_markdown": ""}, rehearsal)


def save_plan(
    deed: Deed, title: str, goal: str, raw_markdown: str, plan: str | None = None, rehearsal: bool = True
) -> Json:
    """What has not the exact form is kept, but not compiled."""
    texts = {"title": title, "goal": goal, "raw_markdown": raw_markdown}
    form = plans.check_format(raw_markdown)
    if plan is not None:
        own = _own(deed, plan.removeprefix("@"))
        return _changed(deed, own, texts, rehearsal if form["valid"] else None)
    if form["valid"]:
        return _made(deed, texts, rehearsal)
    made = plans.create_document(
        deed.lab, **texts, session_id=deed.session.id, actor=deed.actor, key=deed.once("save_plan")
    )
    return _malformed(made)


def _made(deed: Deed, texts: dict[str, str], rehearsal: bool) -> Json:
    since, wanted = events.last_seq(deed.lab.db.reader()), plans.CompileOptions(rehearsal=rehearsal)
    made = plans.create(deed.lab, texts, deed.session.id, wanted, deed.actor, deed.once("save_plan"))
    return _standing(deed, made["id"], since)


def _changed(deed: Deed, plan: str, texts: dict[str, str], rehearsal: bool | None) -> Json:
    if rehearsal is None:
        return _malformed(plans.edit(deed.lab, plan, texts, deed.actor, None))

    def begin() -> None:
        plans.edit(deed.lab, plan, texts, deed.actor, None)
        plans.compile_plan(deed.lab, plan, plans.CompileOptions(rehearsal=rehearsal), deed.actor)

    return _compiled(deed, plan, begin)


def compile_plan(deed: Deed, plan: str, answers: list[str] | None = None, rehearsal: bool | None = None) -> Json:
    wanted, plan_id = plans.CompileOptions(answers=tuple(answers or ()), rehearsal=rehearsal), plan.removeprefix("@")
    return _compiled(deed, plan_id, lambda: plans.compile_plan(deed.lab, plan_id, wanted, deed.actor))


def _compiled(deed: Deed, plan: str, begin: Callable[[], object]) -> Json:
    """Begun once: carried out again after a kill, or after its end, the call only looks."""
    since, key = events.last_seq(deed.lab.db.reader()), deed.once("compile_plan")
    with deed.lab.db.transaction() as tx:
        begun = recall(tx, key) is not None
    if not begun and not stored.get(deed.lab.db.reader(), plan).compiling_by:
        begin()
        with deed.lab.db.transaction() as tx:
            remember(tx, key, {"plan_id": plan})
    return _standing(deed, plan, since)


def _own(deed: Deed, plan: str) -> str:
    found = stored.get(deed.lab.db.reader(), plan)
    if not deed.is_own(found.created_by, found.session_id):
        raise Forbidden(f"Plan {plan} is of another conversation.", hint="Save yours as a new plan.")
    return plan


def _malformed(made: Json) -> Json:
    words = "it has not the exact form, so it was not compiled; save it again with `plan` and the mended text"
    return {"id": made["id"], "format": made["format"], "compiled": False, "why": words}


def _standing(deed: Deed, plan_id: str, since: int) -> Json:
    """What became of it, once nobody is at work on it."""
    found = plans.get(deed.lab, plan_id)
    if found["compiling_by"]:
        raise Compiling(plan_id, since)
    planning = found["planning"]
    told = {
        "id": plan_id,
        "title": found["title"],
        "status": planning["status"],
        "questions": [_in_words(question) for question in planning["questions"]],
        "validated": planning["validated"],
        "error": planning["error"],
        "rehearsal": _tried_out(deed, plan_id),
    }
    if not found["raw_markdown"].strip():
        return told
    evidence = deed.cite("text", what=plan_id, shown=found["raw_markdown"][:_CITED])
    review = f"a person reviews it: labwright plan review {plan_id}"
    return {**told, "plan_saved": plan_id, "raw_markdown": found["raw_markdown"], "evidence": evidence, "next": review}


def _tried_out(deed: Deed, plan_id: str) -> Json:
    """Checks alone do not prove that a plan runs: whether it was tried small, and if not, why."""
    found = plans.rehearsal_view(deed.lab, plan_id) or {}
    return {name: found.get(name, "") for name in ("outcome", "reason")}


def _in_words(question: Json) -> str:
    suggestions = ", ".join(question["suggestions"])
    return f"{question['text']} (for example: {suggestions})" if suggestions else str(question["text"])


_PLAN = text("its id")
_REHEARSAL = yes_or_no("false: do not try the experiment small before the review")
TOOLS = (
    Tool(name="list_plans", description="Plans, newest first.", do=list_plans, takes={"limit": whole("", 1, 100)}),
    Tool(name="show_plan", description="One plan with its text.", do=show_plan, takes={"plan": _PLAN}, needs=("plan",)),
    Tool(
        name="save_plan",
        description=(
            "Save a plan that you wrote, and have it compiled, checked and tried; `raw_markdown` begins at "
            "`## 📋 Plan:`. The answer says what is wrong with its form, or what the checks found."
        ),
        do=save_plan,
        takes={
            "title": text("concise"),
            "goal": text("the text of its Objective"),
            "raw_markdown": text("the whole plan and nothing else", maxLength=_LONGEST),
            "plan": text("the id of a plan of this conversation, to save another version of it"),
            "rehearsal": _REHEARSAL,
        },
        needs=("title", "goal", "raw_markdown"),
        writes=True,
        plans=True,
    ),
    Tool(
        name="plan_goal",
        description=(
            "Have the planner write, save and check a plan for a goal in plain words. For simple goals: which values "
            "of which parameters of a script to try, by which metric."
        ),
        do=plan_goal,
        takes={"goal": text("all that the user wants, with the answers to your questions"), "rehearsal": _REHEARSAL},
        needs=("goal",),
        writes=True,
        plans=True,
    ),
    Tool(
        name="compile_plan",
        description="Have a saved plan compiled and checked, perhaps with answers to the questions that it has.",
        do=compile_plan,
        takes={"plan": _PLAN, "answers": several("one for each question, in order"), "rehearsal": _REHEARSAL},
        needs=("plan",),
        writes=True,
        plans=True,
    ),
)
