"""Generated code does not reach through an object for what runs it: frames, globals, loaders, hidden attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.names import full_name, imported_names
from labwright.planning.checks.subject import Found, Module, Subject

_HINT = "Use the values that the task is given."
_ATTRIBUTES = {
    "__subclasses__", "__globals__", "__builtins__", "__code__", "__closure__", "__bases__", "__base__", "__mro__",
    "mro", "__dict__", "__import__", "__loader__", "__spec__", "__traceback__", "tb_frame", "tb_next", "f_back",
    "f_locals", "f_globals", "f_builtins", "f_code", "gi_frame", "cr_frame", "ag_frame", "__getattribute__",
    "__reduce__", "__reduce_ex__", "__wrapped__", "__self__", "__func__", "__context__", "__cause__",
    "__init_subclass__", "__set_name__", "__del__",
}  # fmt: skip
_NAMES = {"__builtins__", "__loader__", "__spec__", "__import__"}


def check_reflection(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        for node, what in _reaching(module):
            words = f"{module.path} reaches for {what}."
            yield Found(code="reflection", place=module.at(node), message=words, hint=_HINT)


def _reaching(module: Module) -> Iterator[tuple[ast.AST, str]]:
    imported = imported_names(module.tree)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            yield node, node.attr
        elif isinstance(node, ast.Name) and node.id in _NAMES:
            yield node, node.id
        elif isinstance(node, ast.FunctionDef) and node.name in _ATTRIBUTES:
            yield node, node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "/proc/" in node.value:
            yield node, node.value[:80]
        elif isinstance(node, ast.Call) and full_name(node.func, imported) in ("getattr", "operator.attrgetter"):
            yield from _by_text(node, imported)


def _by_text(call: ast.Call, imported: dict[str, str]) -> Iterator[tuple[ast.AST, str]]:
    """An attribute by its text: of a plain value by a name that is written there, and of nothing else."""
    names = call.args[1:2] if isinstance(call.func, ast.Name) and call.func.id == "getattr" else call.args
    texts = [name.value if isinstance(name, ast.Constant) else None for name in names]
    target = call.args[0] if call.args else call
    if any(not isinstance(text, str) or text.startswith("_") or text in _ATTRIBUTES for text in texts):
        yield call, "an attribute by a name that is not written there"
    elif isinstance(target, ast.Name) and target.id in imported:
        yield call, f"{target.id} by text"
