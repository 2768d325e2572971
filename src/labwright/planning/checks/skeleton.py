"""What follows from the IR alone is what the IR makes of it: wiring, records and the declared runs.

The text is compared as syntax, so comments and layout are free. No code is run for it, so no code can talk its way out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import commonprefix

from labwright.planning.checks.subject import TASKS, Found, Module, Subject
from labwright.planning.ir import templates

_HINT = "Change the IR and generate the code again, or put the code back."
_AROUND, _SHOWN = 30, 120


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
    have, want = (" ".join(line.strip() for line in _lines(source)) for source in (module.text, text))
    begin = max(0, len(commonprefix([have, want])) - _AROUND)
    return f"it has `… {have[begin : begin + _SHOWN]} …`, the IR makes it `… {want[begin : begin + _SHOWN]} …`"
