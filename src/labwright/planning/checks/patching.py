"""Generated code changes nothing that it imported: neither our checks, nor the interpreter, nor another task."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.checks.names import full_name, imported_names, root_name
from labwright.planning.checks.subject import Found, Module, Subject

_HINT = "Return a new value; leave what is imported as it is."


def check_patching(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        for node, what in _patched(module):
            words = f"{module.path} changes {what}, which it imports."
            yield Found(code="patches", place=module.at(node), message=words, hint=_HINT)


def _patched(module: Module) -> Iterator[tuple[ast.AST, str]]:
    imported = imported_names(module.tree)
    for node in ast.walk(module.tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute | ast.Subscript) and root_name(target) in imported:
                yield node, ast.unparse(target)[:80]
        if isinstance(node, ast.Call) and full_name(node.func, imported) in ("setattr", "delattr"):
            yield node, ast.unparse(node)[:80]


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement binds or deletes, unpacked."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        found = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor | ast.NamedExpr):
        found = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        found = [node.optional_vars]
    return [part for target in found for part in ast.walk(target) if isinstance(part, ast.expr)]
