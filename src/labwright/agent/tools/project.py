"""The rest of a project: the machine or cluster, alerts, and what conversations remember."""

from __future__ import annotations

from labwright.agent.conversation import memories
from labwright.agent.tools.tool import Json, Tool, ToolContext, one_of, text, whole
from labwright.services import alerts, cluster, ownership
from labwright.services.sweeps.verbs import RAISE
from labwright.store import alerts as stored_alerts

_COSTS_OR_DESTROYS = (RAISE, "stop", "rerun")  # rerun stops the run first
_MEMORIES = 30
_GPU = ("index", "name", "memory_used_mb", "memory_total_mb", "lease")
_PARTITION = ("name", "state", "gpus")
_LONG = ("evidence", "partitions", "nodes", "gpus")


def get_cluster(context: ToolContext) -> Json:
    return _cluster(context, cluster.show(context.lab))


def detect_cluster(context: ToolContext) -> Json:
    return _cluster(context, cluster.detect(context.lab, None, context.actor))


def _cluster(context: ToolContext, shown: Json) -> Json:
    found = shown["cluster"]
    return {
        **{name: value for name, value in found.items() if name not in _LONG},
        "gpus": [{name: gpu[name] for name in _GPU} for gpu in found["gpus"]],
        "partitions": [{name: one[name] for name in _PARTITION} for one in found["partitions"]],
        **context.cite("cluster"),
    }


def list_alerts(context: ToolContext, status: str = "pending", limit: int = 20) -> Json:
    found, more = alerts.page(context.lab, None if status == "all" else status, None, None, limit, None)
    shown = [{**one.to_dict(), **context.cite("text", what=one.id, shown=one.message)} for one in found]
    return {"alerts": shown, "more": more is not None}


def respond_to_alert(context: ToolContext, alert_id: str, choice: str) -> Json:
    alert = stored_alerts.get(context.lab.db.reader(), alert_id)
    alert.check_answer(choice)
    if context.session is None:
        ownership.check_answer(context.lab, alert_id, choice, context.actor)
    elif choice in _COSTS_OR_DESTROYS:
        context.needs_approval(f"Answer {choice!r} to the alert {alert_id}: {alert.message[:300]}")
    return alerts.respond(context.lab, alert_id, choice, context.actor).to_dict()


def add_memory(context: ToolContext, text: str) -> Json:
    once = context.once("remember")
    made = memories.add(context.lab, text, context.actor, session_id=context.session_id, key=once)
    return {"id": made.id, "accepted": made.accepted, "note": "conversations see it once a person has accepted it"}


def list_memories(context: ToolContext, q: str | None = None) -> Json:
    found, _ = memories.page(context.lab, True, q, _MEMORIES, None)
    return {"memories": [{"id": memory.id, "text": memory.text, "by": memory.created_by} for memory in found]}


TOOLS = (
    Tool(
        name="get_cluster",
        description="Get the machine or cluster: its type, its GPUs and who uses them, what is recommended.",
        do=get_cluster,
    ),
    Tool(
        name="detect_cluster",
        description="Detect the machine or cluster again, after a change. What a person has configured stays.",
        do=detect_cluster,
    ),
    Tool(
        name="list_alerts",
        description="List alerts about runs and sweeps. Pending ones wait for one of their choices.",
        do=list_alerts,
        takes={
            "status": one_of("default pending", "pending", "resolved", "all"),
            "limit": whole("how many to return", 1, 100),
        },
    ),
    Tool(
        name="respond_to_alert",
        description=(
            "Answer an alert with one of its choices; an answer is final. In a conversation, raise, stop and rerun "
            "need a person's approval."
        ),
        do=respond_to_alert,
        takes={"alert_id": text("its id"), "choice": text("one of its choices")},
        needs=("alert_id", "choice"),
        writes=True,
        destroys=True,
    ),
    Tool(
        name="add_memory",
        description="Propose a fact that later conversations should know. A person must accept it.",
        do=add_memory,
        takes={"text": text("one fact, in a sentence")},
        needs=("text",),
        writes=True,
    ),
    Tool(
        name="list_memories",
        description="List what is remembered about this project, newest first.",
        do=list_memories,
        takes={"q": text("only entries with this text", maxLength=200)},
    ),
)
