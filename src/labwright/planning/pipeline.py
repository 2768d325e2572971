"""From a goal to a workspace that may run: the nodes as one durable workflow, and the verbs of who reviews it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.planning.digest_facts import current_digest
from labwright.planning.nodes import NODES, Node, Planning
from labwright.planning.scan import ProjectScan
from labwright.planning.state import Approval, PlanState, change_state, read_state
from labwright.workflow import Output, RunResult, Store, Task, Workflow, run
from labwright.workflow.tasks import Options
from labwright.workspace import PlanWorkspaceHandle, what_changed

_STORE = "progress"
_CHECKED_ANEW = ("ValidateWorkspace", "HumanReview", "FinalHandoffCheck")
OnEvent = Callable[[dict[str, Any]], None]


def run_pipeline(planning: Planning, on_event: OnEvent | None = None) -> PlanState:
    """Do what is not done. Calling it again goes on: after a kill, an answer, a review, an edit."""
    if not planning.goal.strip() and not planning.plan.strip():
        raise Invalid("The goal is empty.", hint="Say what to vary, over which values, by which metric.")
    store = progress_store(planning.handle)
    _forget_what_may_have_changed(planning, store)
    return _outcome(planning.handle, run(_workflow(planning), store, concurrency=1, on_event=on_event))


def _workflow(planning: Planning) -> Workflow:
    made = Workflow("plan")
    source: Any = f"{planning.goal}\n{planning.plan}"
    for name, node in NODES.items():
        made.add(Task(_body(node, planning), name, Options()), inputs={"before": source})
        source = Output(name)
    made.result("handoff", source)
    return made


def _body(node: Node, planning: Planning) -> Callable[..., str]:
    def body(before: str) -> str:
        """With what came before in it: a node may write the same as ever, and those after it still have to look."""
        return hashlib.sha256(f"{before}\n{node(planning)}".encode()).hexdigest()

    # Outside of our package, the engine takes a node for its name: a new version of Labwright repeats no finished
    # node, and so overwrites nothing that a reviewer edited.
    body.__module__ = "planning_nodes"
    return body


def _forget_what_may_have_changed(planning: Planning, store: Store) -> None:
    state = read_state(planning.handle)
    current = current_digest(planning.handle, planning.scan).value
    if state.approval is not None and state.approval.digest != current:
        withdraw(planning.handle, planning.scan)
    for name in _CHECKED_ANEW if state.validated_digest != current else _CHECKED_ANEW[1:]:
        store.forget(name)


def _outcome(handle: PlanWorkspaceHandle, result: RunResult) -> PlanState:
    stopped = [(name, outcome) for name, outcome in result.steps.items() if outcome.status in ("failed", "suspended")]
    if not stopped:
        return change_state(handle, status="ready_for_run", node="", error="")
    node, outcome = stopped[0]
    if outcome.status == "failed":
        return change_state(handle, status="failed", node=node, error=outcome.reason, ready_for_run=False)
    status = "waiting_for_review" if node == "HumanReview" else "needs_input"
    return change_state(handle, status=status, node=node, error="")


def approve(handle: PlanWorkspaceHandle, scan: ProjectScan, digest: str, by: str, *, automatic: bool = False) -> None:
    """Of these bytes and no others. Whether they may run, the final check says."""
    current = current_digest(handle, scan)
    if digest != current.value:
        raise Conflict("The workspace is not the one that was looked at.", hint=f"It is {current.value} now.")
    handle.keep_copy(current)
    approval = Approval(digest=digest, by=by, at=now(), automatic=automatic)
    change_state(handle, approval=approval)


def reject(handle: PlanWorkspaceHandle, reason: str, node: str) -> None:
    """The next run begins at the node, with the reason as feedback."""
    again_from(handle, node)
    feedback = {**read_state(handle).feedback, node: reason}
    facts = {"approval": None, "ready_for_run": False, "handoff": None, "validated": False}
    change_state(handle, status="rejected", node=node, feedback=feedback, **facts)


def again_from(handle: PlanWorkspaceHandle, node: str) -> None:
    """The next run does this node anew, and all that come after it."""
    if node not in NODES:
        raise Invalid(f"There is no node {node}.", hint=f"Choose: {', '.join(NODES)}.")
    names = list(NODES)
    with progress_store(handle) as store:
        for name in names[names.index(node) :]:
            store.forget(name)


def progress_store(handle: PlanWorkspaceHandle) -> Store:
    return Store(handle.paths.dir / _STORE)


def withdraw(handle: PlanWorkspaceHandle, scan: ProjectScan) -> list[str]:
    """Void an approval whose bytes are not there any more; what changed, in words. Nothing if all is as it was."""
    approval = read_state(handle).approval
    if approval is None:
        return []
    changed = what_changed(handle.listing(approval.digest), current_digest(handle, scan))
    if changed:
        change_state(handle, approval=None, ready_for_run=False, handoff=None, error="; ".join(changed))
    return changed
