"""What a check is given, and what it may find. A check reads the read-only copy, never the live workspace."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from labwright.planning.ir.model import PlanIR
from labwright.planning.ir.workflow import IRTypes
from labwright.planning.project.contained import Child
from labwright.planning.scan import ProjectScan

SOURCE_ROOT, MODULE, SYMBOL = "src", "experiment.workflow", "create_workflow"
TASKS = "src/experiment/tasks"
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    code: str
    place: str
    message: str
    hint: str = ""

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    path: str  # relative to the workspace
    text: str
    tree: ast.Module  # empty where it is no Python
    fault: str = ""  # why it is none

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 0)}"


@dataclass(frozen=True, kw_only=True)
class Subject:
    folder: Path  # of the copy
    ir: PlanIR
    scan: ProjectScan
    child: Child

    @cached_property
    def types(self) -> IRTypes:
        return IRTypes(self.ir.workflow)

    @cached_property
    def modules(self) -> dict[str, Module]:
        """Every Python file below `src` and `tests`, by path."""
        found = [path for top in ("src", "tests") for path in sorted((self.folder / top).rglob("*.py"))]
        read = [read_module(self.folder, path) for path in found if path.is_file()]
        return {module.path: module for module in read}

    def below(self, top: str) -> list[Module]:
        return [module for path, module in self.modules.items() if path.startswith(f"{top}/")]


Check = Callable[[Subject], Iterator[Found]]


def read_module(folder: Path, path: Path) -> Module:
    relative = path.relative_to(folder).as_posix()
    if path.stat().st_size > _LARGEST_FILE:
        return _no_python(relative, f"it is larger than {_LARGEST_FILE >> 20} MB")
    try:
        text = path.read_bytes().decode()
        with warnings.catch_warnings():  # what a compiler only warns of is no fault
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(text, relative, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _no_python(relative, " ".join(str(error).split()) or type(error).__name__)
    return Module(path=relative, text=text, tree=tree)


def _no_python(relative: str, fault: str) -> Module:
    return Module(path=relative, text="", tree=ast.Module(body=[], type_ignores=[]), fault=fault)
