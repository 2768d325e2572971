"""Whether an assertion could fail at all, and fails for more than a wrong type. Read from the text, by rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_CATCHES_ALL = {"AssertionError", "Exception", "BaseException"}
_NO_MORE_THAN_A_TYPE = {"isinstance", "issubclass", "callable", "hasattr"}
_NEVER_NEGATIVE = {"len", "abs"}


def weakness(test: ast.FunctionDef) -> str:
    """Why its assertions do not count: "" if one of them does, or what the best of them is."""
    reached = [node for node in _reached(test.body, _empty_names(test)) if isinstance(node, ast.Assert)]
    possible = [node for node in reached if _can_fail(node.test)]
    if any(_tells_something(node.test) for node in possible):
        return ""
    return f"`{ast.unparse(possible[0].test)}` holds for almost anything" if possible else "it asserts nothing"


def _reached(body: list[ast.stmt], empty: set[str]) -> Iterator[ast.AST]:
    """Without functions inside, what follows a return, branches that a constant shuts, loops over nothing, and
    assertions whose failure is caught."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return
        if isinstance(statement, _FUNCTIONS):
            continue
        yield statement
        for part in _open_parts(statement, empty):
            yield from _reached(part, empty)


def _open_parts(statement: ast.stmt, empty: set[str]) -> Iterator[list[ast.stmt]]:
    shut = (
        (isinstance(statement, ast.If | ast.While) and _is_false(statement.test))
        or (isinstance(statement, ast.For) and _is_empty(statement.iter, empty))
        or (isinstance(statement, ast.Try) and any(_catches(handler) for handler in statement.handlers))
        or (isinstance(statement, ast.With) and any(_suppresses(item.context_expr) for item in statement.items))
    )
    if not shut:
        yield getattr(statement, "body", [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    yield getattr(statement, "orelse", [])
    yield getattr(statement, "finalbody", [])


def _is_false(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and not test.value


def _is_empty(items: ast.expr, empty: set[str]) -> bool:
    if isinstance(items, ast.Name):
        return items.id in empty
    if isinstance(items, ast.Call):
        return ast.unparse(items) in ("range(0)", "list()", "tuple()", "dict()", "set()")
    return isinstance(items, ast.List | ast.Tuple | ast.Set | ast.Dict) and not ast.unparse(items).strip("[](){}")


def _empty_names(test: ast.FunctionDef) -> set[str]:
    """Names that are bound to an empty literal, and never used but to loop over them."""
    bound = {
        node.targets[0].id
        for node in ast.walk(test)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_empty(node.value, set())
    }
    looped = {id(node.iter) for node in ast.walk(test) if isinstance(node, ast.For)}
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    stored = [node.id for node in ast.walk(test) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    used = {node.id for node in names if id(node) not in looped}
    return {name for name in bound - used if stored.count(name) == 1}


def _catches(handler: ast.ExceptHandler) -> bool:
    """A failed assertion ends there, and nobody hears of it."""
    if any(isinstance(node, ast.Raise | ast.Assert) for node in ast.walk(handler)):
        return False
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(name is None or ast.unparse(name).split(".")[-1] in _CATCHES_ALL for name in caught)


def _suppresses(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call) or ast.unparse(context.func).split(".")[-1] not in ("suppress", "raises"):
        return False
    return any(ast.unparse(given).split(".")[-1] in _CATCHES_ALL for given in context.args)


def _can_fail(expression: ast.expr) -> bool:
    if isinstance(expression, ast.Tuple):
        return False  # a tuple with anything in it is true
    if isinstance(expression, ast.BoolOp):
        parts = [_can_fail(value) for value in expression.values]
        return all(parts) if isinstance(expression.op, ast.Or) else any(parts)
    if isinstance(expression, ast.Compare) and len(expression.comparators) == 1:
        left, right = expression.left, expression.comparators[0]
        if ast.dump(left) == ast.dump(right) or _is_never_below(left, expression.ops[0], right):
            return False
    return any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(expression))


def _is_never_below(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
    """`len(x) >= 0` and its like: true whatever comes."""
    if isinstance(operator, ast.LtE | ast.Lt):
        turned: ast.cmpop = ast.GtE() if isinstance(operator, ast.LtE) else ast.Gt()
        return _is_never_below(right, turned, left)
    if not isinstance(left, ast.Call) or ast.unparse(left.func) not in _NEVER_NEGATIVE:
        return False
    try:
        least = ast.literal_eval(right)
    except ValueError:
        return False
    if not isinstance(least, int | float):
        return False
    return (isinstance(operator, ast.GtE) and least <= 0) or (isinstance(operator, ast.Gt) and least < 0)


def _tells_something(expression: ast.expr) -> bool:
    """More than that there is a value, or of which type."""
    if isinstance(expression, ast.BoolOp):
        parts = [_tells_something(value) for value in expression.values]
        return all(parts) if isinstance(expression.op, ast.Or) else any(parts)
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.Not):
        return _tells_something(expression.operand)
    if isinstance(expression, ast.Call):
        return ast.unparse(expression.func) not in _NO_MORE_THAN_A_TYPE
    if isinstance(expression, ast.Compare) and len(expression.comparators) == 1:
        return not _is_about_type(expression.left, expression.ops[0], expression.comparators[0])
    return True


def _is_about_type(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
    if isinstance(operator, ast.IsNot | ast.NotEq) and isinstance(right, ast.Constant) and right.value is None:
        return True
    return any(isinstance(side, ast.Call) and ast.unparse(side.func) == "type" for side in (left, right))
