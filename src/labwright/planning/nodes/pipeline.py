"""From a goal to a workspace that may run: the nodes as one durable workflow, and the verbs of who reviews it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid
from labwright.llm import Tier
from labwright.planning.nodes import NODES, REDONE_BY, Node, Planning
from labwright.planning.project.digest import current_digest
from labwright.planning.record.input import check_request
from labwright.planning.record.request import BETWEEN_ANSWERS
from labwright.planning.record.state import Approval, NodeUsage, PlanState, Rejection, change_state, read_state
from labwright.planning.scan import ProjectScan
from labwright.workflow import Output, RunResult, Store, Task, Workflow, run
from labwright.workflow.tasks import Options
from labwright.workspace import PlanWorkspaceHandle, what_changed

_STORE = "progress"
MOST_REJECTIONS = 10  # a model that does not get it by then will not
_CHECKED_ANEW = ("ValidateWorkspace", "HumanReview", "FinalHandoffCheck")
OnEvent = Callable[[dict[str, Any]], None]


def run_pipeline(planning: Planning, on_event: OnEvent | None = None) -> PlanState:
    """Do what is not done. Calling it again goes on: after a kill, an answer, a review, an edit."""
    check_request(planning.goal, planning.report, planning.plan)
    _check_policy(planning)
    store = progress_store(planning.handle)
    _forget_what_may_have_changed(planning, store)
    heard = _with_cost(planning.handle, on_event) if on_event else None
    return _outcome(planning.handle, run(_workflow(planning), store, concurrency=1, on_event=heard))


def _check_policy(planning: Planning) -> None:
    unknown = [node for node in planning.model_policy if node not in NODES]
    if unknown:
        raise Invalid(f"There is no node {unknown[0]}.", hint=f"A model policy names: {', '.join(NODES)}.")
    for node, choice in planning.model_policy.items():
        if isinstance(choice, str) and choice not in list(Tier):
            raise Invalid(f"{node}: there is no tier {choice}.", hint=f"Choose: {', '.join(Tier)}.")


def _with_cost(handle: PlanWorkspaceHandle, on_event: OnEvent) -> OnEvent:
    """Facts of a node that ended say what its models took since it began."""
    before: dict[str, NodeUsage] = {}

    def heard(fact: dict[str, Any]) -> None:
        node = fact.get("task", "")
        spent = read_state(handle).usage.get(node, NodeUsage()) if node else NodeUsage()
        if fact["fact"] == "started":
            before[node] = spent
        elif node in before and fact["fact"] in ("finished", "failed", "suspended"):
            began = before[node]
            tokens = spent.tokens_in + spent.tokens_out - began.tokens_in - began.tokens_out
            fact = {**fact, "tokens": tokens, "cost": round(spent.cost_usd - began.cost_usd, 6)}
        on_event(fact)

    return heard


def _workflow(planning: Planning) -> Workflow:
    made = Workflow("plan")
    source: Any = "\n".join(part for part in (planning.goal, planning.plan, planning.report) if part)
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


def approve(
    handle: PlanWorkspaceHandle,
    scan: ProjectScan,
    digest: str,
    by: str,
    *,
    automatic: bool = False,
    reason: str = "",
) -> None:
    """Of these bytes and no others. Whether they may run, the final check says."""
    current = current_digest(handle, scan)
    if digest != current.value:
        raise Conflict("The workspace is not the one that was looked at.", hint=f"It is {current.value} now.")
    handle.keep_copy(current)
    approval = Approval(digest=digest, by=by, at=now(), automatic=automatic, reason=reason)
    change_state(handle, approval=approval)


def reject(handle: PlanWorkspaceHandle, reason: str, node: str) -> None:
    """The next run begins at the node, with the reason as feedback."""
    if not reason.strip():
        raise Invalid("A rejection says why.", hint="The reason is what the node is given to do better.")
    if node not in REDONE_BY:
        raise Invalid(f"{node} is no node that makes anything.", hint=f"Choose: {', '.join(REDONE_BY)}.")
    state = read_state(handle)
    if len(state.rejections) >= MOST_REJECTIONS:
        hint = "Edit its files yourself, or begin a new plan with a clearer goal."
        raise Conflict(f"The plan was sent back {MOST_REJECTIONS} times; no further attempt is made.", hint=hint)
    again_from(handle, node)
    sent_back = (*state.rejections, Rejection(node=node, reason=reason, at=now()))
    facts = {"approval": None, "ready_for_run": False, "handoff": None, "validated": False, "rejections": sent_back}
    earlier = state.feedback.get(node, "")  # still wanted, as far as the newer words leave it
    feedback = {**state.feedback, node: f"{reason}{BETWEEN_ANSWERS}{earlier}".strip()}
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
