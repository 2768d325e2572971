"""A task computes from what runs gave. It neither trains nor evaluates itself: that is what an experiment declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from labwright.planning.checks.names import imported_modules
from labwright.planning.checks.subject import TASKS, Found, Module, Subject
from labwright.planning.scan import ProjectScan

_HINT = "Declare the runs in the experiment, and compute from their metrics."
_METHODS = {"fit", "partial_fit", "fit_transform", "backward", "train", "train_on_batch", "train_step", "evaluate"}


def check_training(subject: Subject) -> Iterator[Found]:
    declares = f"{TASKS}/{subject.ir.workflow.grid.task}.py"
    scripts = {entry.path for entry in subject.scan.entry_points}
    modules = _project_modules(subject.scan)
    for module in [module for module in subject.below("src") if module.path != declares]:
        for node, what in _starting(module, scripts, modules):
            words = f"{module.path} {what}."
            yield Found(code="starts_training", place=module.at(node), message=words, hint=_HINT)


def _project_modules(scan: ProjectScan) -> set[str]:
    named = {entry.module for entry in scan.entry_points if entry.module}
    return named | {PurePosixPath(entry.path).stem for entry in scan.entry_points if "/" not in entry.path}


def _starting(module: Module, scripts: set[str], modules: set[str]) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(module.tree):
        for name in imported_modules(node)[:1]:
            if name in modules:
                yield node, f"imports {name}, a script of the project"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield node, f"calls {ast.unparse(node.func)[:80]}"
        if isinstance(node, ast.Constant) and node.value in scripts:
            yield node, f"names {node.value}, a script of the project"
