"""Which code a script gets to, told from names alone: what it calls, what it imports, what registers itself.

Too much is better than too little here, except for one thing: flags of another script's parser in a module that this
one merely imports. So functions count only once somebody names them.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.planning.scan.blocks import Block
from labwright.planning.scan.literals import dotted
from labwright.planning.scan.modules import Definition, Module, Modules

_MOST_BLOCKS = 600
_MOST_MODULES = 60


@dataclass(slots=True)
class Reach:
    """The blocks that an entry point gets to, its own first."""

    entry: Module
    modules: Modules
    blocks: list[Block] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[Block, ast.Call]]:
        for block in self.blocks:
            for call in block.calls():
                yield block, call

    def files(self) -> list[Module]:
        return list({block.module.path: block.module for block in self.blocks}.values())

    def imports(self, *packages: str) -> bool:
        """Whether any of the code names one of these packages."""
        return any(
            source.split(".")[0] in packages for module in self.files() for source, _name in module.imports.values()
        )


def reach(entry: Module, modules: Modules, start: str = "") -> Reach:
    """From the script's top level and main guard; with `start`, from that function (a console script)."""
    found = Reach(entry, modules)
    seen: set[int] = set()
    seen_modules = {entry.path}
    waiting: deque[tuple[Module, Definition | None]] = deque([(entry, None)])
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


def _named_in(block: Block, modules: Modules) -> Iterator[tuple[Module, Definition]]:
    """Definitions that the block names, and at a module's top level those that a decorator registers."""
    module = block.module
    bases = {dotted(base) for base in block.owner.bases} - {""} if isinstance(block.owner, ast.ClassDef) else set()
    for name in sorted(block.named | bases):
        found = modules.find(module, name) or modules.find(module, name.split(".")[0])
        if found:
            yield found
    if block.owner is None:
        yield from ((module, node) for node in module.definitions.values() if node.decorator_list)
