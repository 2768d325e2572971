"""Plans: list, show, write, make from a goal, compile, check and execute. Only a person approves one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from labwright.agent.tools.tool import (
    PLAN_REFERENCE,
    Compiling,
    EndsTurn,
    Json,
    Tool,
    ToolContext,
    several,
    text,
    whole,
    yes_or_no,
)
from labwright.domain.errors import Conflict, Forbidden, Invalid
from labwright.domain.plan import PlanStatus
from labwright.domain.run import name_from
from labwright.domain.session import EndReason
from labwright.planning import plans
from labwright.services import ownership
from labwright.store import events
from labwright.store import plans as stored
from labwright.store.idempotency import recall, remember

MOST_QUESTIONS = 3
_CONTINUE = "Continue with what is known, and say in the plan what you assume."
_BRIEF = ("id", "title", "goal", "status", "version", "valid", "updated_at")
_FACTS = ("id", "title", "status", "status_reason", "version")
_OF_PLANNING = ("status", "validated", "error")
_CITED = 8000
_LONGEST = 200_000  # characters of a plan


def list_plans(context: ToolContext, status: list[str] | None = None, limit: int = 20) -> Json:
    statuses = tuple(PlanStatus(one) for one in status or ())
    found, more = plans.page(context.lab, statuses, None, limit, None)
    return {"plans": [{name: getattr(plan, name) for name in _BRIEF} for plan in found], "more": more is not None}


def get_plan(context: ToolContext, plan_id: str) -> Json:
    found = plans.get(context.lab, context.plan_id(plan_id))
    shown = found["raw_markdown"]
    return {**_facts(found), **context.cite("text", what=found["id"], shown=shown[:_CITED]), "raw_markdown": shown}


def create_plan(
    context: ToolContext,
    goal: str,
    title: str | None = None,
    raw_markdown: str = "",
    compile: bool = True,
    rehearsal: bool = True,
) -> Json:
    """Save a plan, or have the planner write one for the goal. A text with the wrong format is not compiled."""
    texts = {"title": title or name_from(goal), "goal": goal, "raw_markdown": raw_markdown}
    if not raw_markdown.strip() and not compile:
        raise Invalid("The plan has no text.", hint="Pass raw_markdown, or let the planner write it: compile true.")
    form = plans.check_format(raw_markdown) if raw_markdown.strip() else None
    since, once = events.last_seq(context.lab.db.reader()), context.once("save_plan")
    if form and (not compile or not form["valid"]):
        made = plans.create_document(context.lab, **texts, session_id=context.session_id, actor=context.actor, key=once)
        return _not_compiled(context, made["id"])
    wanted = plans.CompileOptions(rehearsal=rehearsal)
    made = plans.create(context.lab, texts, context.session_id, wanted, context.actor, once)
    return _outcome(context, made["id"], since)


def change_plan(
    context: ToolContext,
    plan_id: str,
    raw_markdown: str | None = None,
    title: str | None = None,
    goal: str | None = None,
    compile: bool = True,
    rehearsal: bool = True,
) -> Json:
    plan = context.plan_id(plan_id)
    found = stored.get(context.lab.db.reader(), plan)
    if context.session is not None and not context.is_own(found.created_by, found.session_id):
        raise Forbidden(f"Plan {plan} belongs to another conversation.", hint="Save yours as a new plan.")
    given = {"raw_markdown": raw_markdown, "title": title, "goal": goal}
    changes = {name: value for name, value in given.items() if value is not None}
    text = raw_markdown if raw_markdown is not None else plans.get_document(context.lab, plan)["raw_markdown"]
    if not compile or not plans.check_format(text)["valid"]:
        plans.edit(context.lab, plan, changes, context.actor, None)
        return _not_compiled(context, plan)

    def start() -> None:
        plans.edit(context.lab, plan, changes, context.actor, None)
        plans.compile_plan(context.lab, plan, plans.CompileOptions(rehearsal=rehearsal), context.actor)

    return _compiled(context, plan, start)


def compile_plan(
    context: ToolContext, plan_id: str, answers: list[str] | None = None, rehearsal: bool | None = None
) -> Json:
    plan = context.plan_id(plan_id)
    wanted = plans.CompileOptions(answers=tuple(answers or ()), rehearsal=rehearsal)
    return _compiled(context, plan, lambda: plans.compile_plan(context.lab, plan, wanted, context.actor))


def validate_plan(context: ToolContext, plan_id: str, rehearsal: bool | None = None) -> Json:
    plan = context.plan_id(plan_id)
    return _compiled(context, plan, lambda: plans.validate(context.lab, plan, context.actor, rehearsal))


def execute_plan(context: ToolContext, plan_id: str) -> Json:
    plan = context.plan_id(plan_id)
    return _facts(plans.execute(context.lab, plan, context.actor))


def stop_plan(context: ToolContext, plan_id: str) -> Json:
    plan = context.plan_id(plan_id)
    found = stored.get(context.lab.db.reader(), plan)
    working = found.compiling_by or found.executed_by or found.created_by
    if context.session is None:
        ownership.check_plan(context.lab, plan, context.actor)
    elif not context.is_own(working, None):
        context.needs_approval(f"Stop the plan {plan} ({found.title!r}, started by {working})?", plan_id=plan)
    return _facts(plans.stop(context.lab, plan, context.actor))


def _compiled(context: ToolContext, plan: str, start: Callable[[], object]) -> Json:
    """Start the work once. The same call, repeated after a kill or at the end of the work, only reads the outcome."""
    since, key = events.last_seq(context.lab.db.reader()), context.once("compile_plan")
    if key is None:
        start()
        return _outcome(context, plan, since)
    with context.lab.db.transaction() as tx:
        started = recall(tx, key) is not None
    if not started and not stored.get(context.lab.db.reader(), plan).compiling_by:
        start()
        with context.lab.db.transaction() as tx:
            remember(tx, key, {"plan_id": plan})
    return _outcome(context, plan, since)


def _not_compiled(context: ToolContext, plan: str) -> Json:
    found = _facts(plans.get(context.lab, plan))
    why = "" if found["format"]["valid"] else "its format is wrong: fix the text and save it with change_plan"
    return {**found, "compiled": False, **({"why": why} if why else {})}


def _outcome(context: ToolContext, plan: str, since: int) -> Json:
    """Return what became of the plan. In a conversation, wait until its compilation has ended."""
    found = plans.get(context.lab, plan)
    if found["compiling_by"]:
        if context.session is not None:
            raise Compiling(plan, since)
        return {**_facts(found), "next": "wait_for_plan returns what became of it"}
    rehearsal = plans.rehearsal_view(context.lab, plan) or {}
    facts = {**_facts(found), "rehearsal": {name: rehearsal.get(name, "") for name in ("outcome", "reason")}}
    if not found["raw_markdown"].strip():
        return facts
    evidence = context.cite("text", what=plan, shown=found["raw_markdown"][:_CITED])
    review = f"a person reviews it: labwright plan review {plan}"
    return {**facts, "plan_saved": plan, "raw_markdown": found["raw_markdown"], **evidence, "next": review}


def _facts(found: Json) -> Json:
    planning, form = found["planning"], found["format"]
    errors = [asdict(error) for error in form["errors"]]
    facts = {**{name: found[name] for name in _FACTS}, "format": {"valid": form["valid"], "errors": errors}}
    if planning is None:
        return {**facts, "planning": None}
    shown = {name: planning[name] for name in _OF_PLANNING}
    return {**facts, "planning": {**shown, "questions": [_question(one) for one in planning["questions"]]}}


def _question(question: Json) -> str:
    suggestions = ", ".join(question["suggestions"])
    return f"{question['text']} (for example: {suggestions})" if suggestions else str(question["text"])


def wait_for_plan(context: ToolContext, plan_id: str) -> Json:
    """In a conversation: wait for the compilation. Outside, `outside.py` waits until nobody works on the plan."""
    return _outcome(context, context.plan_id(plan_id), events.last_seq(context.lab.db.reader()))


def ask_user(context: ToolContext, questions: list[str]) -> Json:
    asked = [question.strip() for question in questions if question.strip()]
    if not asked:
        raise Invalid("There is no question.", hint="Write each as one sentence.")
    if context.questions_left <= 0:
        raise Conflict(f"{MOST_QUESTIONS} questions were asked already; no more are allowed.", hint=_CONTINUE)
    if len(asked) > context.questions_left:
        hint = f"Leave out what you can find out or assume. {_CONTINUE}"
        raise Conflict(f"{context.questions_left} of {MOST_QUESTIONS} questions are left, not {len(asked)}.", hint=hint)
    raise EndsTurn(
        EndReason.QUESTIONS, {"asked": asked, "note": "the user's next message answers them"}, questions=asked
    )


ASK_USER = Tool(
    name="ask_user",
    description=(
        f"Ask the user what you cannot find out and must not assume; it ends the turn. At most {MOST_QUESTIONS} "
        "questions are allowed before there is a plan, so ask all of them at once. The server counts."
    ),
    do=ask_user,
    takes={"questions": several("one sentence each, with values to choose from if that helps")},
    needs=("questions",),
    chat_only=True,
    operation="",
)
_PLAN = {"plan_id": text(PLAN_REFERENCE)}
_TEXT = text("the whole plan and nothing else; it starts with `## 📋 Plan:`", maxLength=_LONGEST)
_COMPILE = yes_or_no("compile and check it; default true")
_REHEARSAL = yes_or_no("false: do not try the experiment on a small scale before the review")
TOOLS = (
    Tool(
        name="list_plans",
        description="List plans, newest first, without their texts. Archived ones only on request.",
        do=list_plans,
        takes={
            "status": several("only these", type="string", enum=[str(status) for status in PlanStatus]),
            "limit": whole("how many to return", 1, 100),
        },
    ),
    Tool(
        name="get_plan",
        description="Get one plan with its text, what is wrong with its format, and how far its compilation is.",
        do=get_plan,
        takes=_PLAN,
        needs=("plan_id",),
    ),
    Tool(
        name="create_plan",
        description=(
            "Save a plan that you wrote, or let the planner write one: leave raw_markdown out for simple goals (which "
            "values of which parameters of a script to try, by which metric). The plan is compiled, checked and tried. "
            "The result says what is wrong with its format, or what the checks found. A person reviews it."
        ),
        do=create_plan,
        takes={
            "goal": text("everything the user wants, with the answers to your questions", maxLength=100_000),
            "title": text("short", maxLength=200),
            "raw_markdown": _TEXT,
            "compile": _COMPILE,
            "rehearsal": _REHEARSAL,
        },
        needs=("goal",),
        writes=True,
        plans=True,
    ),
    Tool(
        name="change_plan",
        description="Save another version of a plan, and compile it. An approval of the earlier version is void then.",
        do=change_plan,
        takes={
            **_PLAN,
            "raw_markdown": _TEXT,
            "title": text("short", maxLength=200),
            "goal": text("the text of its Objective", maxLength=100_000),
            "compile": _COMPILE,
            "rehearsal": _REHEARSAL,
        },
        needs=("plan_id",),
        writes=True,
        destroys=True,
        plans=True,
    ),
    Tool(
        name="compile_plan",
        description="Compile and check a saved plan, optionally with answers to the questions that it has.",
        do=compile_plan,
        takes={**_PLAN, "answers": several("one for each question, in order"), "rehearsal": _REHEARSAL},
        needs=("plan_id",),
        writes=True,
        plans=True,
    ),
    Tool(
        name="validate_plan",
        description="Run every check of a compiled plan again, on its files as they are now.",
        do=validate_plan,
        takes={**_PLAN, "rehearsal": _REHEARSAL},
        needs=("plan_id",),
        writes=True,
        plans=True,
    ),
    Tool(
        name="execute_plan",
        description=(
            "Execute a plan that a person has approved. If it was executed before, only what failed or did not finish "
            "is done again."
        ),
        do=execute_plan,
        takes=_PLAN,
        needs=("plan_id",),
        writes=True,
    ),
    Tool(
        name="stop_plan",
        description="Stop the compilation or the execution of a plan.",
        do=stop_plan,
        takes=_PLAN,
        needs=("plan_id",),
        writes=True,
        destroys=True,
    ),
)
