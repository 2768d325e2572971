"""Which subcommand an argparse parser belongs to, followed through names, groups, loops and helper functions."""

from __future__ import annotations

import ast
from collections import defaultdict

from labwright.planning.scan.blocks import Block
from labwright.planning.scan.literals import dotted, last_name, value_of
from labwright.planning.scan.reach import Reach

_GROUPS = {"add_argument_group", "add_mutually_exclusive_group"}


class Subparsers:
    """Commands of each parser's name, block by block; a helper that is given a subparser inherits its command."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._bound: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))  # block: name: commands
        self.commands: list[str] = []
        used = any("add_parser" in module.text for module in reach.files())
        for block in [*reach.blocks, *reach.blocks] if used else ():  # twice: a helper may stand before its caller
            self._read(block)

    def commands_of(self, call: ast.Call, block: Block) -> list[str]:
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        return sorted(self._of(receiver, block)) or [""]

    def _of(self, node: ast.expr | None, block: Block) -> set[str]:
        if isinstance(node, ast.Call):
            if last_name(node.func) == "add_parser" and node.args:
                name = value_of(node.args[0])
                return {name} if isinstance(name, str) else set()
            if last_name(node.func) in _GROUPS and isinstance(node.func, ast.Attribute):
                return self._of(node.func.value, block)
            return set()
        return self._bound[id(block.body)][dotted(node)]

    def _read(self, block: Block) -> None:
        bound = self._bound[id(block.body)]
        for node in block.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                bound[dotted(node.targets[0])] |= self._of(node.value, block)
            elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
                for item in node.iter.elts:
                    bound[dotted(node.target)] |= self._of(item, block)
            elif isinstance(node, ast.Call):
                self._read_call(node, block)

    def _read_call(self, call: ast.Call, block: Block) -> None:
        for name in self._of(call, block) if last_name(call.func) == "add_parser" else ():
            if name not in self.commands:
                self.commands.append(name)
        found = self._reach.modules.find(block.module, dotted(call.func))
        if not found or isinstance(found[1], ast.ClassDef):
            return
        for argument, parameter in zip(call.args, found[1].args.args, strict=False):
            self._bound[id(found[1].body)][parameter.arg] |= self._of(argument, block)
