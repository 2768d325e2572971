"""What follows from the IR alone is what the IR makes of it: wiring, records and the declared runs.

The text is compared as syntax, so comments and layout are free. No code is run for it, so no code can talk its way out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from labwright.planning import templates
from labwright.planning.checks.subject import TASKS, Found, Module, Subject

_HINT = "Change the IR and generate the code again, or put the code back."


def check_skeleton(subject: Subject) -> Iterator[Found]:
    for path, text in _made(subject).items():
        module = subject.modules.get(path)
        if module is not None and _lines(module.text) != _lines(text):
            words = f"{path} is not what the IR says: {_first_difference(module, text)}."
            yield Found(code="code_ir_mismatch", place=path, message=words, hint=_HINT)


def _made(subject: Subject) -> dict[str, str]:
    task = subject.ir.workflow.grid.task
    made = {path: text for path, text in templates.skeleton(subject.ir).items() if path.startswith("src/")}
    return {**made, f"{TASKS}/{task}.py": templates.task_module(subject.ir, task)}


def _lines(text: str) -> list[str]:
    """Without docstrings of the module and its functions, which are words for people."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree).splitlines()


def _first_difference(module: Module, text: str) -> str:
    have, want = _lines(module.text), _lines(text)
    for kind, i, j, k, m in SequenceMatcher(None, have, want, autojunk=False).get_opcodes():
        if kind != "equal":
            return f"it has `{_short(have[i:j])}`, the IR makes it `{_short(want[k:m])}`"
    return "it differs"


def _short(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)[:200] or "nothing"
