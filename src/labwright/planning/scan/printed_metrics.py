"""Metrics in printed text: f-strings, `%`, `.format`, several arguments, logger calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from labwright.domain.metrics.direction import PRINTED_NAME, as_printed, direction_of
from labwright.planning.scan.literals import last_name, value_of
from labwright.planning.scan.names import Names

PRINTERS = {
    "print",
    "info",
    "debug",
    "warning",
    "write",
    "echo",
    "rprint",
    "secho",
    "log_info",
    "print_rank_0",
    "print0",
}
_LONGEST_SUM = 40
_HOLE = "\x01{}\x02"
_SEEN = re.compile(rf"(\x02(?=_))?({PRINTED_NAME})[)\]]?\s*([=:]|\bis\b)?\s*\x01([^\x02]*)\x02", re.IGNORECASE)
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d*]*(?:\.(\d+|\*))?([sdifgeEGr])")
_BRACES = re.compile(r"\{[^{}:!]*(?:![rsa])?(?::([^{}]*))?\}")
_FLOAT = re.compile(r"(?:\.\d+)?[fgeGE%]$|\.\d+$")


def printed_names(call: ast.Call, names: Names) -> Iterator[str]:
    """Words that stand before a number. A known kind of metric, or a number with decimals: else it is any text."""
    parts = [_template(item, names) for item in call.args]
    if last_name(call.func) in ("info", "debug", "warning") and len(parts) > 1:
        parts = [_holes_of_percent(parts[0])]
    for begun, name, mark, spec in _SEEN.findall(" ".join(parts)):
        is_cut = name.endswith("_")  # what follows is no value but the rest of the name: loss_{split}
        if not is_cut and (direction_of(name) or (mark in ("=", ":") and _FLOAT.search(spec))):
            yield f"*{as_printed(name)}" if begun else as_printed(name)


def _template(node: ast.expr, names: Names, depth: int = 0) -> str:
    """The text with a mark for each value that is put in."""
    if depth > _LONGEST_SUM:
        return ""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part, names) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _holes_of_percent(_template(node.left, names, depth + 1))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left, names, depth + 1) + _template(node.right, names, depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _BRACES.sub(
            lambda found: _HOLE.format(found.group(1) or ""), _template(node.func.value, names, depth + 1)
        )
    return _HOLE.format("")


def _part(node: ast.expr, names: Names) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        spec = node.format_spec
        known = value_of(node.value, names) if spec is None else None
        if isinstance(known, str):
            return known
        parts = (
            [part.value for part in spec.values if isinstance(part, ast.Constant)]
            if isinstance(spec, ast.JoinedStr)
            else []
        )
        return _HOLE.format("".join(str(part) for part in parts))
    return ""


def _holes_of_percent(text: str) -> str:
    return _PERCENT.sub(
        lambda found: _HOLE.format(f".{found.group(1)}{found.group(2)}" if found.group(1) else found.group(2)), text
    )
