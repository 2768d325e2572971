"""The keys of a dictionary that code builds, as far as the source says: literals, `**rest`, item by item, returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.scan.blocks import Block
from labwright.planning.scan.literals import UNKNOWN, dotted, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.names import Names, names_in

_DEEPEST = 4
_LONGEST_SUM = 40


def keys_of(node: ast.expr | None, block: Block, names: Names, modules: Modules, depth: int = 0) -> list[str]:
    if depth > _DEEPEST:
        return []
    if isinstance(node, ast.Dict):
        return list(_of_literal(node, block, names, modules, depth))
    if isinstance(node, ast.Name):
        return _of_name(node.id, block, names, modules, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (keys_of(side, block, names, modules, depth + 1) for side in (node.left, node.right))
        return [key for side in sides for key in side]
    if isinstance(node, ast.Call):
        return _of_call(node, block, modules, depth)
    return [text_of(node.key, names)] if isinstance(node, ast.DictComp) and not isinstance(node.key, ast.Name) else []


def _of_literal(node: ast.Dict, block: Block, names: Names, modules: Modules, depth: int) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from keys_of(value, block, names, modules, depth + 1)
        elif not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            yield text_of(key, names)  # a constant text is not a number


def _of_name(name: str, block: Block, names: Names, modules: Modules, depth: int) -> list[str]:
    value = names.get(name)
    found = [] if isinstance(value, ast.Name) and value.id == name else keys_of(value, block, names, modules, depth + 1)
    for node in block.walk():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if dotted(target.value) == name and isinstance(target.slice, ast.Constant | ast.JoinedStr):
                found.append(text_of(target.slice, names))
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{name}.update" and node.args:
            found += keys_of(node.args[0], block, names, modules, depth + 1)
    return found


def _of_call(node: ast.Call, block: Block, modules: Modules, depth: int) -> list[str]:
    if last_name(node.func) == "dict":
        return [item.arg for item in node.keywords if item.arg]
    found = modules.find(block.module, dotted(node.func))
    return returned_keys(modules.block(*found), modules, depth) if found else []


def returned_keys(function: Block, modules: Modules, depth: int = 0) -> list[str]:
    names = names_in(function, modules)
    returns = (node for node in function.walk() if isinstance(node, ast.Return))
    return [key for node in returns for key in keys_of(node.value, function, names, modules, depth + 1)]


def text_of(node: ast.expr, names: Names, depth: int = 0) -> str:
    """A text with `*` for each part that only a run knows."""
    if depth > _LONGEST_SUM:
        return "*"
    if isinstance(node, ast.JoinedStr):
        return "".join(
            text_of(part.value if isinstance(part, ast.FormattedValue) else part, names) for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left, names, depth + 1) + text_of(node.right, names, depth + 1)
    value = value_of(node, names)
    return "*" if value is UNKNOWN or not isinstance(value, str | int) else str(value)
