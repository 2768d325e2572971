"""What a check is given, and what it may find."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from labwright.planning.contained import Child
from labwright.planning.ir import PlanIR
from labwright.planning.scan import ProjectScan
from labwright.workspace import PlanWorkspaceHandle

SOURCE_ROOT, MODULE, SYMBOL = "src", "experiment.workflow", "create_workflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    code: str
    place: str
    message: str
    hint: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    handle: PlanWorkspaceHandle
    ir: PlanIR
    scan: ProjectScan
    child: Child

    def python_files(self, top: str) -> dict[str, str]:
        folder = self.handle.paths.dir / top
        return {str(Path(top, path.relative_to(folder))): path.read_text() for path in sorted(folder.rglob("*.py"))}
