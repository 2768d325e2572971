"""Decide whether a body is a stub: it is empty, raises `NotImplementedError`, or always returns the same constant.

The source is read by rules and not run. A body without source is not judged.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Container, Iterator
from typing import Any, Union

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]  # noqa: UP007 - evaluated, also by Python 3.8
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Load, ast.Call, ast.keyword)
_ARITHMETIC = (ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator)
_MAKERS = frozenset({"bool", "dict", "float", "frozenset", "int", "list", "round", "set", "str", "tuple"})


def why_stub(body: Any) -> str:
    """Return why the body is a stub; empty if it is not, or if its source is not available."""
    function = _source_of(body)
    return "" if function is None else why_stub_text(function)


def why_stub_text(function: _Function) -> str:
    """Return the same for a function that was parsed and not loaded."""
    statements = _reached(_without_docstring(function.body))
    if all(_does_nothing(statement) for statement in statements):
        return "its body is empty"
    if any(_raises_not_implemented(statement) for statement in statements):
        return "it raises NotImplementedError"
    return _constant_result(statements)


def _source_of(body: Any) -> _Function | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(body))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found = tree.body[0] if tree.body else None
    return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _without_docstring(statements: list[ast.stmt]) -> list[ast.stmt]:
    first = statements[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return statements[1:] if is_text else statements


def _reached(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements up to the first return or raise."""
    ends = [index for index, statement in enumerate(statements) if isinstance(statement, (ast.Return, ast.Raise))]
    return statements[: ends[0] + 1] if ends else statements


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _raises_not_implemented(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Raise) or statement.exc is None:
        return False
    named = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(named, ast.Name) and named.id == "NotImplementedError"


def _constant_result(statements: list[ast.stmt]) -> str:
    """Return a reason if every `return` returns the same literal, or a name that only ever held one."""
    nodes = list(_own_nodes(statements))
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returned or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return ""
    constants = _constant_names(nodes, returned)
    texts = {_resolved(value, constants) for value in returned}
    text = texts.pop()
    returns_none = isinstance(returned[0], ast.Constant) and returned[0].value is None
    if texts or text is None or returns_none:
        return ""
    return "it returns the same constant for every input"


def _own_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes, without the inside of nested functions and classes."""
    todo: list[ast.AST] = list(statements)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(node))


def _constant_names(nodes: list[ast.AST], returned: list[ast.expr]) -> dict[str, str]:
    """Return names that are bound once, to a literal, and used only in a return."""
    counted = {id(part) for value in returned for part in ast.walk(value)}
    bound: dict[str, str] = {}
    spoiled: set[str] = set()
    for node in nodes:
        name = _simple_target(node)
        if name and isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_literal(node.value):
            counted.update(id(target) for target in ast.walk(node))
            spoiled.update({name} if name in bound else ())
            bound[name] = ast.dump(node.value) if node.value is not None else ""
    spoiled.update(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in counted)
    return {name: text for name, text in bound.items() if name not in spoiled}


def _simple_target(node: ast.AST) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    first = targets[0] if len(targets) == 1 else None
    return first.id if isinstance(first, ast.Name) else ""


def _is_literal(value: ast.expr | None) -> bool:
    return value is not None and all(_is_plain(node, ()) for node in ast.walk(value))


def _is_plain(node: ast.AST, names: Container[str]) -> bool:
    """Return whether this part of an expression is constant, as in `{"acc": float("0.9")}`."""
    if isinstance(node, ast.Name):
        return node.id in names or node.id in _MAKERS
    return isinstance(node, (*_LITERALS, *_ARITHMETIC))


def _resolved(value: ast.expr, constants: dict[str, str]) -> str | None:
    """Return the text of an expression and the values of its names; None if it depends on anything else."""
    if not all(_is_plain(node, constants) for node in ast.walk(value)):
        return None
    held = [constants[node.id] for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in constants]
    return "".join([ast.dump(value), *held])
