"""Metrics that a script logs, returns or prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from labwright.domain.metrics.direction import PRINTED_NAME, as_printed, direction_of, is_progress
from labwright.planning.scan.facts import LoggedMetric
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, last_name, value_of
from labwright.planning.scan.modules import CodeBlock, Modules
from labwright.planning.scan.reach import Names, Reach, names_in, rounds_of_loops

_DEEPEST = 4
_LONGEST_SUM = 40


def keys_of(node: ast.expr | None, block: CodeBlock, names: Names, modules: Modules, depth: int = 0) -> list[str]:
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


def _of_literal(node: ast.Dict, block: CodeBlock, names: Names, modules: Modules, depth: int) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from keys_of(value, block, names, modules, depth + 1)
        elif not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
            yield text_of(key, names)  # a constant text is not a number


def _of_name(name: str, block: CodeBlock, names: Names, modules: Modules, depth: int) -> list[str]:
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


def _of_call(node: ast.Call, block: CodeBlock, modules: Modules, depth: int) -> list[str]:
    if last_name(node.func) == "dict":
        return [item.arg for item in node.keywords if item.arg]
    found = modules.find(block.module, dotted(node.func))
    return returned_keys(modules.block(*found), modules, depth) if found else []


def returned_keys(function: CodeBlock, modules: Modules, depth: int = 0) -> list[str]:
    names = names_in(function, modules)
    returns = (node for node in function.walk() if isinstance(node, ast.Return))
    return [key for node in returns for key in keys_of(node.value, function, names, modules, depth + 1)]


def text_of(node: ast.expr, names: Names, depth: int = 0) -> str:
    """Return a text with `*` for each part that is known only at run time."""
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
_HOLE = "\x01{}\x02"
_SEEN = re.compile(rf"(\x02(?=_))?({PRINTED_NAME})[)\]]?\s*([=:]|\bis\b)?\s*\x01([^\x02]*)\x02", re.IGNORECASE)
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d*]*(?:\.(\d+|\*))?([sdifgeEGr])")
_BRACES = re.compile(r"\{[^{}:!]*(?:![rsa])?(?::([^{}]*))?\}")
_FLOAT = re.compile(r"(?:\.\d+)?[fgeGE%]$|\.\d+$")


def printed_names(call: ast.Call, names: Names) -> Iterator[str]:
    """Yield names in front of printed numbers: known kinds of metrics, or numbers with decimals."""
    parts = [_template(item, names) for item in call.args]
    if last_name(call.func) in ("info", "debug", "warning") and len(parts) > 1:
        parts = [_holes_of_percent(parts[0])]
    for begun, name, mark, spec in _SEEN.findall(" ".join(parts)):
        is_cut = name.endswith("_")  # the rest of the name follows, not a value: loss_{split}
        if not is_cut and (direction_of(name) or (mark in ("=", ":") and _FLOAT.search(spec))):
            yield f"*{as_printed(name)}" if begun else as_printed(name)


def _template(node: ast.expr, names: Names, depth: int = 0) -> str:
    """Return the text with a mark for each inserted value."""
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


_MOST = 100
_OF_ONE_NAME = {"add_scalar", "log_metric", "logkv", "record", "log_value", "track", "report_scalar"}
_OF_A_DICT = {"log", "log_metrics", "log_dict", "add_scalars", "log_history", "set_postfix", "write_scalars", "report"}


def read_metrics(reach: Reach, flags: set[str]) -> list[LoggedMetric]:
    """Return the metrics in source order. A name that is also a flag is a printed setting, not a metric."""
    found: dict[str, LoggedMetric] = {}
    for block, call, names in _with_names(reach):
        for how, name in _logged_by(call, block, names, reach):
            if _is_metric(name) and name not in flags and name not in found and len(found) < _MOST:
                found[name] = LoggedMetric(
                    name=name, direction=direction_of(name), how=how, where=block.module.at(call)
                )
    return list(found.values())


def _is_metric(name: str) -> bool:
    return bool(name.strip("*/_ ")) and len(name) < 100 and not is_progress(name)


def _with_names(reach: Reach) -> Iterator[tuple[CodeBlock, ast.Call, Names]]:
    """Yield every call with the values of its names; inside a loop over literals, once per round."""
    for block in reach.blocks:
        names = names_in(block, reach.modules)
        rounds = rounds_of_loops(block, names)
        for call in block.calls():
            for bound in rounds.get(id(call), [{}]):
                yield block, call, {**names, **bound} if bound else names


def _logged_by(call: ast.Call, block: CodeBlock, names: Names, reach: Reach) -> Iterator[tuple[str, str]]:
    name, function = last_name(call.func), dotted(call.func)
    first = call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and name in _OF_A_DICT:
        yield from ((function or name, key) for key in _logged_keys(call, block, names, reach))
    elif isinstance(call.func, ast.Attribute) and name in _OF_ONE_NAME and first is not None:
        yield function or name, text_of(first, names)
    elif name == "compile" and keyword(call, "metrics"):
        yield from (("keras", key) for key in _keras(call))
    elif name.endswith("Trainer") and keyword(call, "compute_metrics") is not None:
        yield from (("trainer", key) for key in _trainer(call, block, reach))
    if name in PRINTERS:
        yield from _json_keys(call, block, names, reach)
        yield from (("print", key) for key in printed_names(call, names))


def _logged_keys(call: ast.Call, block: CodeBlock, names: Names, reach: Reach) -> list[str]:
    if last_name(call.func) == "set_postfix":
        named = [item.arg for item in call.keywords if item.arg and item.arg != "refresh"]
        return [*named, *(key for item in call.args[:1] for key in keys_of(item, block, names, reach.modules))]
    arguments = call.args[:3] if last_name(call.func) in ("add_scalars", "log_metrics") else call.args[:1]
    found = [key for item in arguments for key in keys_of(item, block, names, reach.modules)]
    if last_name(call.func) == "log" and dotted(call.func).startswith(
        ("self.", "accelerator.", "fabric.", "pl_module.")
    ):
        single = text_of(call.args[0], names) if call.args and len(call.args) + len(call.keywords) > 1 else "*"
        found += [single] if not found and single != "*" else []
    return found


def _json_keys(call: ast.Call, block: CodeBlock, names: Names, reach: Reach) -> Iterator[tuple[str, str]]:
    for node in (inner for item in call.args for inner in ast.walk(item)):
        if isinstance(node, ast.Call) and last_name(node.func) == "dumps" and node.args:
            yield from (("json", key) for key in keys_of(node.args[0], block, names, reach.modules))
    if len(call.args) == 1 and isinstance(call.args[0], ast.Dict):
        yield from (("print", key) for key in keys_of(call.args[0], block, names, reach.modules) if direction_of(key))


def _keras(call: ast.Call) -> Iterator[str]:
    node = keyword(call, "metrics")
    named = [value_of(item) for item in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
    for name in ["loss", *(name for name in named if isinstance(name, str))]:
        yield from (name, f"val_{name}")


def _trainer(call: ast.Call, block: CodeBlock, reach: Reach) -> Iterator[str]:
    """Yield the keys of compute_metrics with the prefix `eval_` that Hugging Face adds."""
    yield "eval_loss"
    node = keyword(call, "compute_metrics")
    choices = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    for choice in choices:
        function = _local_function(dotted(choice), block) or reach.modules.find(block.module, dotted(choice))
        if isinstance(function, tuple):
            function = reach.modules.block(*function)
        if function:
            yield from (
                f"eval_{key.removeprefix('eval_')}" for key in returned_keys(function, reach.modules) if key != "*"
            )
    for _block, other in reach.calls():
        named = (
            value_of(other.args[0]) if other.args and dotted(other.func) in ("evaluate.load", "load_metric") else None
        )
        if isinstance(named, str):
            yield f"eval_{named}" if named != "glue" else "eval_accuracy"


def _local_function(name: str, block: CodeBlock) -> CodeBlock | None:
    """Find compute_metrics inside main, as in run_glue.py."""
    for node in block.walk():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return CodeBlock(block.module, node.body, node)
    return None
