"""Values that the source alone determines. Nothing is executed; everything else is UNKNOWN."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

_MAX_DEPTH = 40
_MAX_STEPS = 2_000  # names that double at each step would take forever
_MAX_LENGTH = 10_000
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
_CONVERSIONS = {"int", "float", "str", "bool", "Path", "PurePath", "list", "tuple", "sorted", "set", "frozenset"}


class Unknown:
    """A value that only running the code would show."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = Unknown()


class _Evaluation:
    """The evaluation of one expression: the values of names, and the number of steps left."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names
        self._steps_left = _MAX_STEPS
        self._depth = 0

    def value(self, node: ast.expr | None) -> Any:
        if node is None or self._steps_left <= 0 or self._depth > _MAX_DEPTH:
            return UNKNOWN
        self._steps_left -= 1
        self._depth += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return _constant(node)
            case ast.Name():
                return self.value(self._names.get(node.id))
            case ast.List() | ast.Tuple() | ast.Set() if len(node.elts) <= _MAX_LENGTH:
                items = [self.value(item) for item in node.elts]
                return UNKNOWN if any(item is UNKNOWN for item in items) else items
            case ast.Dict():
                keys = [self.value(key) for key in node.keys]
                if any(not isinstance(key, str | int | float) for key in keys) or len(keys) > _MAX_LENGTH:
                    return UNKNOWN
                # Some values may be unknown: often only the keys matter, as the choices of a flag.
                return {key: self.value(value) for key, value in zip(keys, node.values, strict=True)}
            case ast.UnaryOp():
                value = self.value(node.operand)
                if isinstance(node.op, ast.Not) and isinstance(value, bool):
                    return not value
                return -value if isinstance(node.op, ast.USub) and isinstance(value, int | float) else UNKNOWN
            case ast.BinOp():
                return self._compute(node)
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr():
                parts = [
                    self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values
                ]
                is_known = not any(part is UNKNOWN for part in parts)
                return "".join(str(part) for part in parts)[:_MAX_LENGTH] if is_known else UNKNOWN
        return UNKNOWN

    def _compute(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        both_text = isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add)
        if both_text and len(left) + len(right) < _MAX_LENGTH:
            return left + right
        operation = _ARITHMETIC.get(type(node.op))
        if operation is None or not _is_small(left) or not _is_small(right):
            return UNKNOWN
        if isinstance(node.op, ast.Pow) and abs(right) > 64:
            return UNKNOWN
        try:
            return operation(left, right)
        except (ArithmeticError, ValueError, TypeError):
            return UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        name = dotted(node.func)
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            return self.value(node.args[1]) if len(node.args) > 1 else None
        if name.endswith((".keys", ".copy")) and isinstance(node.func, ast.Attribute):
            return self.value(node.func.value)
        if name == "range":
            bounds = [self.value(item) for item in node.args]
            if not bounds or not all(isinstance(item, int) and _is_small(item) for item in bounds) or 0 in bounds[2:]:
                return UNKNOWN
            numbers = range(*bounds[:3])
            return list(numbers) if len(numbers) <= 256 else UNKNOWN
        if name in ("os.path.join", "osp.join"):
            parts = [self.value(item) for item in node.args]
            return "/".join(parts) if all(isinstance(part, str) for part in parts) else UNKNOWN
        type_name = name.rpartition(".")[2]
        if type_name in _CONVERSIONS and len(node.args) == 1 and not node.keywords:
            return _convert(type_name, self.value(node.args[0]))
        return UNKNOWN


def value_of(node: ast.expr | None, names: Mapping[str, ast.expr] | None = None) -> Any:
    """Return the value of an expression made of constants and `names`, or UNKNOWN."""
    return _constant(node) if isinstance(node, ast.Constant) else _Evaluation(names or {}).value(node)


def _constant(node: ast.Constant) -> Any:
    return node.value if isinstance(node.value, str | int | float | bool | None) else UNKNOWN


def _is_small(value: Any) -> bool:
    """Return whether a value is a number of moderate size. Arithmetic on huge ones could stall the scan."""
    return isinstance(value, int | float) and abs(value) < 1e18


def _convert(type_name: str, value: Any) -> Any:
    """Return the value of `float(value)`, `Path(value)`, `sorted(value)` and so on."""
    if value is UNKNOWN or value is None:
        return value
    if type_name in ("list", "tuple", "sorted", "set", "frozenset"):
        return list(value) if isinstance(value, list | dict) else UNKNOWN
    if type_name == "bool":
        return bool(value)
    if type_name in ("int", "float"):
        try:
            return int(value) if type_name == "int" else float(value)
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN
    return str(value)


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
