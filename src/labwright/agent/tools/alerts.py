"""Alerts: what wants attention, and answering it."""

from __future__ import annotations

from labwright.agent.tools.tool import Deed, Json, Tool, text, whole
from labwright.services import alerts
from labwright.services.sweeps.verbs import RAISE
from labwright.store import alerts as stored

_COSTS_OR_DESTROYS = (RAISE, "stop", "rerun")  # a rerun stops what still goes


def list_alerts(deed: Deed, limit: int = 20) -> Json:
    found, more = alerts.page(deed.lab, "pending", None, None, limit, None)
    shown = [{**one.to_dict(), "evidence": deed.cite("text", what=one.id, shown=one.message)} for one in found]
    return {"alerts": shown, "more": more is not None}


def answer_alert(deed: Deed, alert: str, choice: str) -> Json:
    asked = stored.get(deed.lab.db.reader(), alert)
    asked.check_answer(choice)
    if choice in _COSTS_OR_DESTROYS:
        deed.needs_approval(f"Answer {choice!r} to the alert {alert}: {asked.message[:300]}")
    return alerts.respond(deed.lab, alert, choice, deed.actor).to_dict()


TOOLS = (
    Tool(
        name="list_alerts",
        description="Open alerts with their choices.",
        do=list_alerts,
        takes={"limit": whole("how many to show", 1, 100)},
    ),
    Tool(
        name="answer_alert",
        description="Answer an alert with one of its choices. To raise, stop or rerun needs a person's approval.",
        do=answer_alert,
        takes={"alert": text("its id"), "choice": text("one of its choices")},
        needs=("alert", "choice"),
        writes=True,
    ),
)
