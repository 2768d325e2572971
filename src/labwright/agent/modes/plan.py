"""Plan mode: from a goal to a validated, reviewed workspace. It stops at the handoff and runs no experiment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labwright.agent import AgentSession
from labwright.domain.cluster import Cluster, ClusterType
from labwright.llm import Model
from labwright.planning.nodes import ModelPolicy, Planning
from labwright.planning.nodes.pipeline import OnEvent, approve, reject, run_pipeline
from labwright.planning.record.earlier import History
from labwright.planning.record.state import PlanState, read_state
from labwright.planning.rules import offline_model
from labwright.planning.scan import scan_project
from labwright.workspace import PlanWorkspaceHandle

__all__ = ["GatePolicy", "ModeResult", "PlanMode", "PlanWorkspaceHandle"]
GatePolicy = Callable[[PlanState], bool]  # whether to approve without a person; it is recorded as automatic


@dataclass(frozen=True, slots=True)
class ModeResult:
    mode_state: dict[str, Any]


class PlanMode:
    """By default the project is the folder that contains the workspace, and a person reviews."""

    def __init__(
        self,
        workspace_handle: PlanWorkspaceHandle,
        *,
        provider: Model | None = None,
        model_policy: ModelPolicy | None = None,
        gate_policy: GatePolicy | None = None,
        project: str | os.PathLike[str] | None = None,
        cluster: Cluster | None = None,
        history: History | None = None,
        plan: str = "",
        report: str = "",
    ) -> None:
        self.handle = workspace_handle
        self._model = provider or offline_model()
        self._policy = model_policy or {}
        self._gate = gate_policy
        self._history, self._plan, self._report = history, plan, report
        self._project = Path(project) if project else workspace_handle.paths.dir.resolve().parents[2]
        self._cluster = cluster or Cluster(type=ClusterType.CPU_ONLY, cpu_count=os.cpu_count() or 1)

    async def run(
        self,
        *,
        session: AgentSession,
        user_input: str,
        harness: object = None,  # noqa: ARG002 - a runner passes it to every mode; planning does not need it
        on_event: OnEvent | None = None,
    ) -> ModeResult:
        """Plan, or answer the questions of the last call. Without input, continue unfinished work."""
        if user_input.strip():
            session.said.append(user_input)
        words = "\n\n".join(reversed(session.said))  # newest first, because rules take the first of two
        return await asyncio.to_thread(self._run, words, on_event)

    def _run(self, goal: str, on_event: OnEvent | None) -> ModeResult:
        planning = Planning(
            handle=self.handle,
            scan=scan_project(self._project),
            cluster=self._cluster,
            model=self._model,
            goal=goal,
            plan=self._plan,
            wishes=goal if self._plan else "",
            report=self._report,
            history=self._history,
            model_policy=self._policy,
        )
        state = run_pipeline(planning, on_event)
        if state.status == "waiting_for_review" and self._gate is not None and self._gate(state):
            approve(self.handle, planning.scan, state.validated_digest, "gate policy", automatic=True)
            state = run_pipeline(planning, on_event)
        return ModeResult({"plan": state.view()})

    def approve(self, digest: str, by: str) -> None:
        approve(self.handle, scan_project(self._project), digest, by)

    def reject(self, reason: str, node: str) -> None:
        reject(self.handle, reason, node)

    @property
    def state(self) -> PlanState:
        return read_state(self.handle)
