"""What the manifest says of planning: approved, validated and ready for a run are three different things."""

from __future__ import annotations

from typing import Any

from labwright.llm import Usage
from labwright.planning.ir.drafts import AskedQuestion, Strict
from labwright.workspace import PlanWorkspaceHandle

_KEY = "planning"  # our part of the manifest


class Approval(Strict):
    digest: str
    by: str
    at: str
    automatic: bool = False  # by a gate policy, not by a person
    reason: str = ""


class PlanRunHandoff(Strict):
    """The only way into a run. Places are relative: resolved when it is loaded."""

    plan_id: str
    digest: str
    source_root: str
    module: str
    symbol: str
    validation: dict[str, Any]
    created_at: str


class NodeUsage(Strict):
    """What a node's questions to models came to, all attempts together."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    models: tuple[str, ...] = ()

    def with_answer(self, model: str, usage: Usage) -> NodeUsage:
        return NodeUsage(
            calls=self.calls + 1,
            tokens_in=self.tokens_in + usage.tokens_in,
            tokens_out=self.tokens_out + usage.tokens_out,
            cost_usd=self.cost_usd + usage.cost_usd,
            models=tuple(dict.fromkeys((*self.models, model))),
        )


class RepairDone(Strict):
    """One attempt at mending generated code, for whoever reviews it."""

    round: int
    task: str
    findings: tuple[str, ...]
    diagnosis: str
    changed: tuple[str, ...]


class Rejection(Strict):
    node: str
    reason: str
    at: str


class Compilation(Strict):
    """One that came as far as its checks; its files are kept under its digest."""

    number: int
    digest: str
    at: str
    by: str
    passed: bool


class PlanState(Strict):
    status: str = "new"  # new, needs_input, waiting_for_review, rejected, failed, ready_for_run
    node: str = ""
    model: str = ""
    questions: tuple[AskedQuestion, ...] = ()
    validated: bool = False
    validated_digest: str = ""
    rehearsal_failed: str = ""  # why, of those bytes
    approval: Approval | None = None
    ready_for_run: bool = False
    handoff: PlanRunHandoff | None = None
    feedback: dict[str, str] = {}  # by node
    rejections: tuple[Rejection, ...] = ()
    compilations: tuple[Compilation, ...] = ()  # the last ones, oldest first
    generated: dict[str, str] = {}  # files that a model wrote: their hash, to tell an edit by a person
    replaced: dict[str, str] = {}  # the hash that each of them had before; after a kill, that text may still lie there
    repairs: tuple[RepairDone, ...] = ()  # of the code that is there now
    usage: dict[str, NodeUsage] = {}  # by node
    error: str = ""

    @property
    def approved(self) -> bool:
        return self.approval is not None

    def view(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "approved": self.approved}


def read_state(handle: PlanWorkspaceHandle) -> PlanState:
    return PlanState(**handle.manifest().get(_KEY, {}))


def change_state(handle: PlanWorkspaceHandle, **facts: Any) -> PlanState:
    state = read_state(handle).model_copy(update=facts)
    handle.update_manifest(**{_KEY: state.model_dump(mode="json")})
    return state
