"""The folder that holds plans. A project's server has `.labwright`; a script may have any other."""

from __future__ import annotations

import os
from pathlib import Path

from labwright.workspace.names import safe_id
from labwright.workspace.plan_workspace import PlanWorkspaceHandle


class Workspace:
    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self.plans = self.root / "plans"

    def plan(self, plan_id: str) -> PlanWorkspaceHandle:
        """Whether or not it is there."""
        return PlanWorkspaceHandle(self.plans / safe_id(plan_id))

    def plan_ids(self) -> list[str]:
        """Of the folders that have a manifest, in the order of their names."""
        return sorted(path.parent.name for path in self.plans.glob("*/manifest.yaml"))
