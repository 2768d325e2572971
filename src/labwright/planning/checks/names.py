"""Which names of a module lead where: `o._exit` after `import os as o` is `os._exit`."""

from __future__ import annotations

import ast


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for, wherever in the module it is imported."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def imported_modules(node: ast.AST) -> list[str]:
    """The dotted names that an import statement may load: `from os import path` may load `os.path`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def full_name(node: ast.AST, imported: dict[str, str]) -> str:
    """Of a name or a chain of attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        before = full_name(node.value, imported)
        return f"{before}.{node.attr}" if before else ""
    return ""


def root_name(node: ast.AST) -> str:
    """`os` of `os.environ["X"]`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
