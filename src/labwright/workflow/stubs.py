"""Decide whether a body is a stub: it is empty, raises `NotImplementedError`, or always returns the same constant.

The source is read by rules and not run. A body without source is not judged.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Container
from typing import Any, Union

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]  # noqa: UP007 - evaluated, also by Python 3.8
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Load, ast.Call, ast.keyword)
_ARITHMETIC = (ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator)
_MAKERS = frozenset({"bool", "dict", "float", "frozenset", "int", "list", "round", "set", "str", "tuple"})


def why_stub(body: Any) -> str:
    """Return why the body is a stub; empty if it is not, or if its source is not available."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(body))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    function = tree.body[0] if tree.body else None
    return why_stub_text(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""


def why_stub_text(function: _Function) -> str:
    """Return the same for a function that was parsed and not loaded."""
    statements: list[ast.stmt] = []  # those that are reached and do something
    for statement in function.body:
        is_bare_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_bare_constant and not isinstance(statement, ast.Pass):
            statements.append(statement)
        if isinstance(statement, (ast.Return, ast.Raise)):
            break
    if not statements:
        return "its body is empty"
    last = statements[-1]
    if isinstance(last, ast.Raise) and last.exc is not None:
        raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
        if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
            return "it raises NotImplementedError"
    return _constant_result(statements)


def _constant_result(statements: list[ast.stmt]) -> str:
    """Return a reason if every `return` returns the same literal, or a name that only ever held one."""
    nodes: list[ast.AST] = []  # without the inside of nested functions and classes
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returned or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return ""
    constants = _constant_names(nodes, returned)
    texts: set[str] = set()
    for value in returned:
        parts = list(ast.walk(value))
        if not all(_is_plain(part, constants) for part in parts):
            return ""
        held = [constants[part.id] for part in parts if isinstance(part, ast.Name) and part.id in constants]
        texts.add("".join([ast.dump(value), *held]))
    returns_none = isinstance(returned[0], ast.Constant) and returned[0].value is None
    return "" if len(texts) > 1 or returns_none else "it returns the same constant for every input"


def _constant_names(nodes: list[ast.AST], returned: list[ast.expr]) -> dict[str, str]:
    """Return names that are bound once, to a literal, and used only in a return."""
    counted = {id(part) for value in returned for part in ast.walk(value)}
    bound: dict[str, str] = {}
    spoiled: set[str] = set()
    for node in nodes:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        target = targets[0] if len(targets) == 1 else None
        if isinstance(target, ast.Name) and all(_is_plain(part, ()) for part in ast.walk(node.value)):
            counted.update(id(part) for part in ast.walk(node))
            spoiled.update({target.id} if target.id in bound else ())
            bound[target.id] = ast.dump(node.value)
    spoiled.update(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in counted)
    return {name: text for name, text in bound.items() if name not in spoiled}


def _is_plain(node: ast.AST, names: Container[str]) -> bool:
    """Return whether this part of an expression is constant, as in `{"acc": float("0.9")}`."""
    if isinstance(node, ast.Name):
        return node.id in names or node.id in _MAKERS
    return isinstance(node, (*_LITERALS, *_ARITHMETIC))
