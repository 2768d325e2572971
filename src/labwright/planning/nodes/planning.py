"""All that the nodes share, and how they write into the workspace."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from labwright.domain.cluster import Cluster
from labwright.llm import Model, ModelAnswer, Request, Tier
from labwright.llm.model import RequestCancelled, Value
from labwright.planning.ir.drafts import ExperimentDraft
from labwright.planning.record.earlier import History
from labwright.planning.record.state import NodeUsage, change_state, read_state
from labwright.planning.rehearsal import Rehearse
from labwright.planning.scan import ProjectScan
from labwright.workflow import Suspended
from labwright.workspace import PlanWorkspaceHandle

ModelPolicy = Mapping[str, Tier | str | Model]  # a node: how able a model it needs, or which
_DRAFT = "report/draft.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """What a plan is made from and with."""

    handle: PlanWorkspaceHandle
    scan: ProjectScan
    cluster: Cluster
    model: Model
    goal: str
    plan: str = ""  # the text of a saved plan to start from
    wishes: str = ""  # what was said of that text; it is in the goal, too, beside older words
    report: str = ""  # the text of a report that the goal is about
    rehearse: Rehearse | None = None  # it takes a server
    history: History | None = None  # None: nobody can tell, as without a server
    model_policy: ModelPolicy = field(default_factory=dict)  # by node; others ask the default tier of `model`
    stopping: threading.Event = field(default_factory=threading.Event)  # set: a model's answer is not waited for

    @property
    def request(self) -> str:
        """What is asked for, in words. A report speaks for itself only where there is no goal."""
        return self.goal if self.goal.strip() or self.plan else self.report

    def ask(self, node: str, wanted: type[Value], **given: Any) -> Value:
        return self.note(node, self.answer(node, wanted, **given))

    def answer(self, node: str, wanted: type[Value], **given: Any) -> ModelAnswer[Value]:
        """Changes nothing, so several may be asked for at once; whoever has it notes it."""
        feedback = read_state(self.handle).feedback.get(node, "")
        texts = {"plan": self.plan, "wishes": self.wishes, "report": self.report}
        facts = {"scan": self.scan, **texts, "history": self.history, **given}
        found = self._answered(node, Request(node=node, value_type=wanted, given=facts, feedback=feedback))
        if not isinstance(found.value, wanted):
            raise TypeError(f"{found.model} answered {node} with {type(found.value).__name__}, not {wanted.__name__}")
        return found

    def _answered(self, node: str, request: Request[Value]) -> ModelAnswer[Value]:
        model, tier = self._chosen(node)
        try:
            return model.answer(replace(request, tier=tier, cancelled=self.stopping))
        except RequestCancelled:
            raise Suspended("it was told to stop, and goes on when it is compiled again") from None

    def note(self, node: str, answer: ModelAnswer[Value]) -> Value:
        """Tokens and cost stand in the manifest as soon as the answer is there."""
        usage = read_state(self.handle).usage
        spent = usage.get(node, NodeUsage()).with_answer(answer.model, answer.usage)
        change_state(self.handle, usage={**usage, node: spent})
        return answer.value

    def _chosen(self, node: str) -> tuple[Model, Tier]:
        choice = self.model_policy.get(node, Tier.DEFAULT)
        return (self.model, Tier(choice)) if isinstance(choice, str) else (choice, Tier.DEFAULT)

    def keep(self, path: str, text: str) -> str:
        """Write a file of the workspace; the hash of it."""
        self.handle.write(path, text.encode())
        return hash_of(text)

    def keep_generated(self, texts: Mapping[str, str]) -> list[str]:
        """The same of texts that a model wrote, by path: what a person makes of them later can be told from it."""
        state = read_state(self.handle)
        hashes = {path: hash_of(text) for path, text in texts.items()}
        before = {path: state.generated[path] for path in texts if path in state.generated}
        change_state(self.handle, generated={**state.generated, **hashes}, replaced={**state.replaced, **before})
        return [self.keep(path, text) for path, text in texts.items()]

    def keep_draft(self, draft: ExperimentDraft) -> None:
        self.keep(_DRAFT, as_yaml(draft.model_dump(mode="json")))

    def draft(self) -> ExperimentDraft:
        return ExperimentDraft(**yaml.safe_load(self.handle.read(_DRAFT)))


Node = Callable[[Planning], str]


def hash_of(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def as_yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
