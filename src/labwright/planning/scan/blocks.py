"""Statements of one function, or of a module's top level, in the order of the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from labwright.planning.scan.literals import dotted

if TYPE_CHECKING:
    from labwright.planning.scan.modules import Definition, Module


@dataclass(frozen=True)
class Block:
    module: Module
    body: list[ast.stmt]
    owner: Definition | None = None

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return [node for statement in [*self.decorators(), *self.body] for node in _in_order(statement)]

    @cached_property
    def _calls(self) -> list[ast.Call]:
        return [node for node in self._nodes if isinstance(node, ast.Call)]

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """Names that it gives a value, each with the last one."""
        found: dict[str, ast.expr] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
                found[node.target.id] = node.value
        return found

    @cached_property
    def named(self) -> frozenset[str]:
        """Everything that it names, with its dots."""
        return frozenset(dotted(node) for node in self._nodes if isinstance(node, ast.Name | ast.Attribute)) - {""}

    def walk(self) -> list[ast.AST]:
        """Every node; unlike with ast.walk the first flag of the source stays the first."""
        return self._nodes

    def calls(self) -> list[ast.Call]:
        return self._calls

    def decorators(self) -> list[ast.expr]:
        return self.owner.decorator_list if self.owner else []

    def loops(self) -> Iterator[ast.For]:
        return (node for node in self._nodes if isinstance(node, ast.For))


def _in_order(root: ast.AST) -> Iterator[ast.AST]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
