"""Find the code that a script can reach by following names, and the values of names.

The search includes too much rather than too little.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.planning.scan.literals import dotted
from labwright.planning.scan.modules import CodeBlock, Definition, Modules, SourceModule

_MAX_BLOCKS = 600
MAX_MODULES = 60


@dataclass(slots=True)
class Reach:
    """The blocks that an entry point can reach, its own first."""

    entry: SourceModule
    modules: Modules
    blocks: list[CodeBlock] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[CodeBlock, ast.Call]]:
        for block in self.blocks:
            for call in block.calls:
                yield block, call

    def files(self) -> list[SourceModule]:
        return list({block.module.path: block.module for block in self.blocks}.values())

    def imports(self, *packages: str) -> bool:
        """Return whether any reached code names one of these packages."""
        return any(
            source.split(".")[0] in packages for module in self.files() for source, _name in module.imports.values()
        )


def reach(entry: SourceModule, modules: Modules, start: str = "") -> Reach:
    """Follow names from the script's top level and main guard, or from the function `start` of a console script."""
    result = Reach(entry, modules)
    seen: set[int] = set()
    seen_modules = {entry.path}
    waiting: deque[tuple[SourceModule, Definition | None]] = deque([(entry, None)])
    first = entry.definitions.get(start)
    if first:
        waiting.append((entry, first))
    while waiting and len(result.blocks) < _MAX_BLOCKS:
        module, definition = waiting.popleft()
        if id(definition or module) in seen:
            continue
        seen.add(id(definition or module))
        block = modules.block(module, definition, is_script=module is entry and not start)
        result.blocks.append(block)
        bases = {dotted(base) for base in definition.bases} - {""} if isinstance(definition, ast.ClassDef) else set()
        for name in sorted(block.named | bases):
            target = modules.find(module, name) or modules.find(module, name.split(".")[0])
            if target:
                waiting.append(target)
        if definition is None:
            # A decorator may register a definition that nothing names.
            waiting.extend((module, node) for node in module.definitions.values() if node.decorator_list)
            for other in modules.imported(module) if len(seen_modules) < MAX_MODULES else ():
                seen_modules.add(other.path)
                waiting.append((other, None))
    return result


Names = dict[str, ast.expr]


def names_in(block: CodeBlock, modules: Modules) -> Names:
    """Return the constants of the module and the values that the block assigns."""
    return {**modules.constants_of(block.module), **block.assigned}


def rounds_of_loops(block: CodeBlock, names: Names) -> dict[int, list[Names]]:
    """Return, for each call inside `for name in (literals)`, the values of the loop's names in each round."""
    result: dict[int, list[Names]] = {}
    for loop in block.loops():
        iterated, is_items = loop.iter, False
        if (
            isinstance(iterated, ast.Call)
            and isinstance(iterated.func, ast.Attribute)
            and iterated.func.attr == "items"
        ):
            iterated, is_items = iterated.func.value, True
        if isinstance(iterated, ast.Name):
            iterated = names.get(iterated.id, iterated)
        values: list[ast.expr] = []
        if isinstance(iterated, ast.Dict):
            pairs = [(key, value) for key, value in zip(iterated.keys, iterated.values, strict=True) if key]
            values = [ast.Tuple([key, value], ast.Load()) if is_items else key for key, value in pairs]
        elif isinstance(iterated, ast.Tuple | ast.List):
            values = iterated.elts
        if values:
            rounds = [_bound(loop.target, value) for value in values]
            inner = (node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.Call))
            result.update({id(call): rounds for call in inner})
    return result


def calls_with_names(reach: Reach) -> Iterator[tuple[CodeBlock, ast.Call, Names]]:
    """Yield every call with the values of its names; inside a loop over literals, once per round."""
    for block in reach.blocks:
        names = names_in(block, reach.modules)
        rounds = rounds_of_loops(block, names)
        for call in block.calls:
            for bound in rounds.get(id(call), [{}]):
                yield block, call, {**names, **bound} if bound else names


def _bound(target: ast.expr, value: ast.expr) -> Names:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple | ast.List):
        pairs = zip(target.elts, value.elts, strict=False)
        return {name.id: item for name, item in pairs if isinstance(name, ast.Name)}
    return {}
