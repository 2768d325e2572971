"""All that the nodes share, and how they write into the workspace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from labwright.domain.cluster import Cluster
from labwright.llm import Model, Request
from labwright.llm.model import Value
from labwright.planning.drafts import ExperimentDraft
from labwright.planning.scan import ProjectScan
from labwright.planning.state import read_state
from labwright.workspace import PlanWorkspaceHandle

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

    def ask(self, node: str, wanted: type[Value], **given: Any) -> Value:
        feedback = read_state(self.handle).feedback.get(node, "")
        facts = {"scan": self.scan, "plan": self.plan, **given}
        return self.model.answer(Request(node=node, wanted=wanted, given=facts, feedback=feedback)).value

    def keep(self, path: str, text: str) -> str:
        """Write a file of the workspace; the hash of it."""
        self.handle.write(path, text.encode())
        return hash_of(text)

    def keep_draft(self, draft: ExperimentDraft) -> None:
        self.keep(_DRAFT, as_yaml(draft.model_dump(mode="json")))

    def draft(self) -> ExperimentDraft:
        return ExperimentDraft(**yaml.safe_load(self.handle.read(_DRAFT)))


Node = Callable[[Planning], str]


def hash_of(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def as_yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
