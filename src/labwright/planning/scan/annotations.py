"""Types and choices from annotations: int, Optional[float], Literal["a", "b"], list[int], an Enum, Annotated."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from labwright.planning.scan.literals import UNKNOWN, last_name, value_of
from labwright.planning.scan.modules import Module, Modules

_PLAIN = {"int": "int", "float": "float", "str": "str", "bool": "bool", "Path": "path", "PathLike": "path"}
_LISTS = {"list", "List", "tuple", "Tuple", "Sequence", "set", "Set", "Iterable"}


@dataclass(frozen=True, slots=True)
class Annotated:
    type: str = "str"
    choices: tuple[Any, ...] = ()
    optional: bool = False
    extras: tuple[ast.expr, ...] = ()  # what stands beside the type in Annotated[...]


def read_annotation(node: ast.expr | None, module: Module, modules: Modules, depth: int = 0) -> Annotated:
    if node is None or depth > 8:
        return Annotated()
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _quoted(node.value, module, modules, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], module, modules, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(node, module, modules, depth)
    name = last_name(node)
    if name in _PLAIN:
        return Annotated(_PLAIN[name])
    if name in _LISTS:
        return Annotated("list[str]")
    return _enum(node, module, modules)


def _quoted(text: str, module: Module, modules: Modules, depth: int) -> Annotated:
    try:
        inner = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Annotated()
    return read_annotation(inner, module, modules, depth + 1)


def _union(sides: list[ast.expr], module: Module, modules: Modules, depth: int) -> Annotated:
    real = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
    first = read_annotation(real[0] if real else None, module, modules, depth + 1)
    return Annotated(first.type, first.choices, len(real) < len(sides) or first.optional, first.extras)


def _subscript(node: ast.Subscript, module: Module, modules: Modules, depth: int) -> Annotated:
    name = last_name(node.value)
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Literal":
        values = [value for item in items if (value := value_of(item)) is not UNKNOWN]
        return Annotated(type(values[0]).__name__ if values else "str", tuple(values))
    if name == "Optional":
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(inner.type, inner.choices, True, inner.extras)
    if name == "Union":
        return _union(items, module, modules, depth)
    if name == "Annotated":
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(inner.type, inner.choices, inner.optional, tuple(items[1:]))
    if name in _LISTS:
        inner = read_annotation(items[0], module, modules, depth + 1)
        return Annotated(f"list[{inner.type}]", inner.choices)
    return read_annotation(items[0], module, modules, depth + 1) if name in ("Final", "ClassVar") else Annotated()


def _enum(node: ast.expr, module: Module, modules: Modules) -> Annotated:
    found = modules.find(module, last_name(node))
    if not found or not isinstance(found[1], ast.ClassDef):
        return Annotated()
    if not any(last_name(base).endswith(("Enum", "Flag")) for base in found[1].bases):
        return Annotated("object")
    return Annotated("str", tuple(enum_values(found[1])))


def enum_values(definition: ast.ClassDef) -> list[Any]:
    values = [(target.id, value_of(node.value)) for node in definition.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name)]  # fmt: skip
    return [name if value is UNKNOWN else value for name, value in values]


def type_of(value: Any) -> str:
    """The type that a default suggests."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, list):
        return f"list[{type_of(value[0])}]" if value else "list[str]"
    return "str"
