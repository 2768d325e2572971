"""Values that the source alone determines. Nothing is executed; everything else is UNKNOWN."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

_DEEPEST = 40
_MOST_STEPS = 2_000  # names that double at each step would take forever
_LONGEST = 10_000
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
_WRAPPERS = {"int", "float", "str", "bool", "Path", "PurePath", "list", "tuple", "sorted", "set", "frozenset"}


class Unknown:
    """A value that only running the code would show."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()


class _Reading:
    """The evaluation of one expression: the values of names, and the steps that are left."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names
        self._left = _MOST_STEPS
        self._depth = 0

    def value(self, node: ast.expr | None) -> Any:
        read = _READERS.get(type(node)) if node is not None else None
        if read is None or self._left <= 0 or self._depth > _DEEPEST:
            return UNKNOWN
        self._left -= 1
        self._depth += 1
        try:
            return read(node, self)
        finally:
            self._depth -= 1


def value_of(node: ast.expr | None, names: Mapping[str, ast.expr] | None = None) -> Any:
    """Return the value of an expression made of constants and `names`, or UNKNOWN."""
    if isinstance(node, ast.Constant):
        return _constant(node)
    return _Reading(names or {}).value(node)


def _constant(node: ast.Constant, _reading: _Reading | None = None) -> Any:
    return node.value if isinstance(node.value, str | int | float | bool | None) else UNKNOWN


def _name(node: ast.Name, reading: _Reading) -> Any:
    return reading.value(reading.names.get(node.id))


def _sequence(node: ast.List | ast.Tuple | ast.Set, reading: _Reading) -> Any:
    if len(node.elts) > _LONGEST:
        return UNKNOWN
    items = [reading.value(item) for item in node.elts]
    return UNKNOWN if any(item is UNKNOWN for item in items) else items


def _mapping(node: ast.Dict, reading: _Reading) -> Any:
    """Return a dictionary even if some values are unknown: its keys are often the choices of a flag."""
    keys = [reading.value(key) for key in node.keys]
    if any(not isinstance(key, str | int | float) for key in keys) or len(keys) > _LONGEST:
        return UNKNOWN
    return {key: reading.value(value) for key, value in zip(keys, node.values, strict=True)}


def _unary(node: ast.UnaryOp, reading: _Reading) -> Any:
    value = reading.value(node.operand)
    if isinstance(node.op, ast.Not) and isinstance(value, bool):
        return not value
    if isinstance(node.op, ast.USub) and isinstance(value, int | float):
        return -value
    return UNKNOWN


def _binary(node: ast.BinOp, reading: _Reading) -> Any:
    left, right = reading.value(node.left), reading.value(node.right)
    compute = _ARITHMETIC.get(type(node.op))
    both_text = isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add)
    if both_text and len(left) + len(right) < _LONGEST:
        return left + right
    if (
        compute is None
        or not _is_small(left)
        or not _is_small(right)
        or (isinstance(node.op, ast.Pow) and abs(right) > 64)
    ):
        return UNKNOWN
    try:
        return compute(left, right)
    except (ArithmeticError, ValueError, TypeError):
        return UNKNOWN


def _is_small(value: Any) -> bool:
    """Return whether the numbers are small enough; arithmetic on huge ones could stall the scan."""
    return isinstance(value, int | float) and abs(value) < 1e18


def _call(node: ast.Call, reading: _Reading) -> Any:
    name = dotted(node.func)
    if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
        return reading.value(node.args[1]) if len(node.args) > 1 else None
    if name.endswith((".keys", ".copy")) and isinstance(node.func, ast.Attribute):
        return reading.value(node.func.value)
    if name == "range":
        return _range([reading.value(item) for item in node.args])
    if name in ("os.path.join", "osp.join"):
        parts = [reading.value(item) for item in node.args]
        return "/".join(parts) if all(isinstance(part, str) for part in parts) else UNKNOWN
    if name.rpartition(".")[2] in _WRAPPERS and len(node.args) == 1 and not node.keywords:
        return _wrapped(name.rpartition(".")[2], reading.value(node.args[0]))
    return UNKNOWN


def _range(bounds: list[Any]) -> Any:
    if not bounds or not all(isinstance(item, int) and _is_small(item) for item in bounds) or 0 in bounds[2:]:
        return UNKNOWN
    numbers = range(*bounds[:3])
    return list(numbers) if len(numbers) <= 256 else UNKNOWN


def _wrapped(name: str, value: Any) -> Any:
    if value is UNKNOWN or value is None:
        return value
    if name in ("list", "tuple", "sorted", "set", "frozenset"):
        return list(value) if isinstance(value, list | dict) else UNKNOWN
    if name in ("int", "float", "bool"):
        return _number(name, value)
    return value if isinstance(value, str) else str(value)


def _number(name: str, value: Any) -> Any:
    if name == "bool":
        return bool(value)
    try:
        return int(value) if name == "int" else float(value)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def _joined(node: ast.JoinedStr, reading: _Reading) -> Any:
    parts = [reading.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
    return UNKNOWN if any(part is UNKNOWN for part in parts) else "".join(str(part) for part in parts)[:_LONGEST]


_READERS: dict[type[ast.expr], Callable[[Any, _Reading], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _mapping,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.JoinedStr: _joined,
}


def dotted(node: ast.AST | None) -> str:
    """Return `a.b.c` for a chain of names, or ""."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def last_name(node: ast.AST | None) -> str:
    """Return `c` for `a().b.c`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


def known(value: Any, otherwise: Any = None) -> Any:
    """Return the value if JSON can hold it, else `otherwise`."""
    if isinstance(value, dict):
        return {str(key): known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [known(item) for item in value]
    return otherwise if value is UNKNOWN else value


def help_text(node: ast.expr | None, names: dict[str, ast.expr] | None = None) -> str:
    """Return the help text of a flag in one line, or an empty text."""
    text = value_of(node, names) if names is not None else value_of(node)
    return " ".join(text.split())[:300] if isinstance(text, str) else ""
