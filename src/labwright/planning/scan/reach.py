"""Find the code that a script can reach, judged by names, and the values of names.

It is better to include too much than too little, except for the flags of another script's parser.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.planning.scan.literals import dotted, last_name
from labwright.planning.scan.modules import CodeBlock, Definition, Modules, SourceModule

_MOST_BLOCKS = 600
_MOST_MODULES = 60


@dataclass(slots=True)
class Reach:
    """The blocks that an entry point can reach, its own first."""

    entry: SourceModule
    modules: Modules
    blocks: list[CodeBlock] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[CodeBlock, ast.Call]]:
        for block in self.blocks:
            for call in block.calls():
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
    found = Reach(entry, modules)
    seen: set[int] = set()
    seen_modules = {entry.path}
    waiting: deque[tuple[SourceModule, Definition | None]] = deque([(entry, None)])
    first = entry.definitions.get(start)
    if first:
        waiting.append((entry, first))
    while waiting and len(found.blocks) < _MOST_BLOCKS:
        module, definition = waiting.popleft()
        if id(definition or module) in seen:
            continue
        seen.add(id(definition or module))
        block = modules.block(module, definition, is_script=module is entry and not start)
        found.blocks.append(block)
        waiting.extend(_named_in(block, modules))
        if definition is None and len(seen_modules) < _MOST_MODULES:
            for other in modules.imported(module):
                seen_modules.add(other.path)
                waiting.append((other, None))
    return found


def _named_in(block: CodeBlock, modules: Modules) -> Iterator[tuple[SourceModule, Definition]]:
    """Yield definitions that the block names; at the top level also those that a decorator registers."""
    module = block.module
    bases = {dotted(base) for base in block.owner.bases} - {""} if isinstance(block.owner, ast.ClassDef) else set()
    for name in sorted(block.named | bases):
        found = modules.find(module, name) or modules.find(module, name.split(".")[0])
        if found:
            yield found
    if block.owner is None:
        yield from ((module, node) for node in module.definitions.values() if node.decorator_list)


Names = dict[str, ast.expr]


def names_in(block: CodeBlock, modules: Modules) -> Names:
    """Return the constants of the module and the values that the block assigns."""
    return {**modules.constants_of(block.module), **block.assigned}


def rounds_of_loops(block: CodeBlock, names: Names) -> dict[int, list[Names]]:
    """Return for each call inside `for name in (literals)` the values of the loop's names in each round."""
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
