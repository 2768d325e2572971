"""What the names in a piece of code stand for, as far as the source says."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.scan.blocks import Block
from labwright.planning.scan.literals import last_name
from labwright.planning.scan.modules import Modules

Names = dict[str, ast.expr]


def names_in(block: Block, modules: Modules) -> Names:
    """Constants of the module, and what the block itself assigns."""
    return {**modules.constants_of(block.module), **block.assigned}


def rounds_of_loops(block: Block, names: Names) -> dict[int, list[Names]]:
    """For each call inside `for name in (literals)`: what the loop's names are in each round."""
    found: dict[int, list[Names]] = {}
    for loop in block.loops():
        rounds = list(_rounds(loop, names))
        if rounds:
            inner = (node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.Call))
            found.update({id(call): rounds for call in inner})
    return found


def _rounds(loop: ast.For, names: Names) -> Iterator[Names]:
    iterated, pairs = loop.iter, False
    if (
        isinstance(iterated, ast.Call)
        and last_name(iterated.func) == "items"
        and isinstance(iterated.func, ast.Attribute)
    ):
        iterated, pairs = iterated.func.value, True
    if isinstance(iterated, ast.Name):
        iterated = names.get(iterated.id, iterated)
    if isinstance(iterated, ast.Dict):
        keyed = ((key, value) for key, value in zip(iterated.keys, iterated.values, strict=True) if key)
        for key, value in keyed:
            yield _bound(loop.target, ast.Tuple([key, value], ast.Load()) if pairs else key)
    elif isinstance(iterated, ast.Tuple | ast.List):
        for item in iterated.elts:
            yield _bound(loop.target, item)


def _bound(target: ast.expr, value: ast.expr) -> Names:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple | ast.List):
        pairs = zip(target.elts, value.elts, strict=False)
        return {name.id: item for name, item in pairs if isinstance(name, ast.Name)}
    return {}
