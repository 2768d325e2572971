"""What is worth knowing in later conversations."""

from __future__ import annotations

from labwright.agent import memories
from labwright.agent.tools.tool import Deed, Json, Tool, text

_SHOWN = 30


def remember(deed: Deed, note: str) -> Json:
    made = memories.add(deed.lab, note, deed.actor, session_id=deed.session.id, key=deed.once("remember"))
    return {"id": made.id, "note": "proposed; other conversations are told it once a person has accepted it"}


def recall(deed: Deed, q: str | None = None) -> Json:
    found, _ = memories.page(deed.lab, True, q, _SHOWN, None)
    return {"memories": [{"id": memory.id, "text": memory.text, "by": memory.created_by} for memory in found]}


TOOLS = (
    Tool(
        name="remember",
        description="Propose something to be remembered in later conversations; a person accepts it.",
        do=remember,
        takes={"note": text("one fact, in a sentence")},
        needs=("note",),
        writes=True,
    ),
    Tool(
        name="recall",
        description="What is remembered, newest first.",
        do=recall,
        takes={"q": text("only what contains this")},
    ),
)
