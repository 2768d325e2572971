"""How far the nodes are, read from the log that the workflow keeps of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from labwright.planning.nodes import NODES
from labwright.planning.nodes.pipeline import progress_store
from labwright.workflow import Store
from labwright.workspace import PlanWorkspaceHandle

# a fact of the engine: the word for it here and in events
STATUSES = {
    "started": "started",
    "finished": "finished",
    "failed": "failed",
    "suspended": "suspended",
    "retrying": "retried",
}


STEP_STATUSES = {**STATUSES, "launched": "launched", "paused": "paused", "resumed": "resumed", "skipped": "skipped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    node: str
    status: str = "pending"  # pending, started, finished, failed, suspended, retried
    seconds: float | None = None
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(handle: PlanWorkspaceHandle) -> list[NodeProgress]:
    """Every node, in order, whether or not it was reached."""
    found = {name: NodeProgress(node=name) for name in NODES}
    for fact in progress_store(handle).facts():
        node = fact.get("step")
        if node in found:
            found[node] = _after(found[node], fact)
    return list(found.values())


def steps_of(handle: PlanWorkspaceHandle) -> list[dict[str, Any]]:
    """Of an execution, each step that was reached, in the order they were."""
    found: dict[str, dict[str, Any]] = {}
    for fact in Store(handle.paths.execution).facts():
        status = "finished" if fact["fact"] == "reused" else STEP_STATUSES.get(fact["fact"])
        if status is None or "step" not in fact:
            continue
        message = fact.get("error") or fact.get("reason") or ""
        found[fact["step"]] = {
            "step": fact["step"],
            "status": status,
            "seconds": fact.get("seconds"),
            "message": message,
        }
    return list(found.values())


def _after(node: NodeProgress, fact: dict[str, Any]) -> NodeProgress:
    kind = fact["fact"]
    if kind in ("forgotten", "waiting", "skipped"):
        return NodeProgress(node=node.node)
    if kind == "reused":
        return replace(node, status="finished", message="")
    if kind not in STATUSES:
        return node
    return NodeProgress(
        node=node.node, status=STATUSES[kind], seconds=fact.get("seconds"), message=fact.get("error", "")
    )
