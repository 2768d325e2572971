"""Plans as documents: read and saved. Approving one is a person's."""

from __future__ import annotations

from labwright.agent.tools.tool import Deed, Json, Tool, text, whole
from labwright.services import plans

_SHOWN = ("id", "title", "goal", "status", "version", "valid", "updated_at")


def list_plans(deed: Deed, limit: int = 20) -> Json:
    found, more = plans.page(deed.lab, (), None, limit, None)
    return {"plans": [{name: getattr(plan, name) for name in _SHOWN} for plan in found], "more": more is not None}


def show_plan(deed: Deed, plan: str) -> Json:
    found = plans.get(deed.lab, plan)
    shown = found["raw_markdown"]
    evidence = deed.cite("text", what=found["id"], shown=shown[:8000])
    return {**{name: found[name] for name in _SHOWN}, "raw_markdown": shown, "evidence": evidence}


def save_plan(deed: Deed, title: str, goal: str, raw_markdown: str) -> Json:
    made = plans.create(
        deed.lab,
        title=title,
        goal=goal,
        raw_markdown=raw_markdown,
        session_id=deed.session.id,
        actor=deed.actor,
        key=deed.once("save_plan"),
    )
    return {"id": made["id"], "format": made["format"], "say": f"✅ Plan saved — ID: @{made['id']}"}


TOOLS = (
    Tool(name="list_plans", description="Plans, newest first.", do=list_plans, takes={"limit": whole("", 1, 100)}),
    Tool(
        name="show_plan",
        description="One plan with its text.",
        do=show_plan,
        takes={"plan": text("its id")},
        needs=("plan",),
    ),
    Tool(
        name="save_plan",
        description="Save a plan; `raw_markdown` begins at `## 📋 Plan:`. The answer says what is wrong with its form.",
        do=save_plan,
        takes={
            "title": text("concise"),
            "goal": text("the text of its Objective"),
            "raw_markdown": text("the whole plan and nothing else"),
        },
        needs=("title", "goal", "raw_markdown"),
        writes=True,
    ),
)
