"""Metrics that a script logs, returns or prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from labwright.domain.metrics.direction import PRINTED_NAME, as_printed, direction_of, is_progress
from labwright.planning.scan.facts import LoggedMetric
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, last_name, value_of
from labwright.planning.scan.modules import CodeBlock, Modules
from labwright.planning.scan.reach import Names, Reach, calls_with_names, names_in

_MAX_DEPTH = 4
_MAX_SUM = 40


def keys_of(node: ast.expr | None, block: CodeBlock, names: Names, modules: Modules, depth: int = 0) -> list[str]:
    """Return the keys of a dictionary, with `*` for parts that are known only at run time."""
    if depth > _MAX_DEPTH:
        return []
    if isinstance(node, ast.Dict):
        keys: list[str] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                keys += keys_of(value, block, names, modules, depth + 1)
            elif not (isinstance(value, ast.Constant) and isinstance(value.value, str)):
                keys.append(text_of(key, names))  # a constant text would not be a metric
        return keys
    if isinstance(node, ast.Name):
        return _keys_of_name(node.id, block, names, modules, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left = keys_of(node.left, block, names, modules, depth + 1)
        return left + keys_of(node.right, block, names, modules, depth + 1)
    if isinstance(node, ast.Call) and last_name(node.func) == "dict":
        return [item.arg for item in node.keywords if item.arg]
    if isinstance(node, ast.Call):
        definition = modules.find(block.module, dotted(node.func))
        return returned_keys(modules.block(*definition), modules, depth) if definition else []
    return [text_of(node.key, names)] if isinstance(node, ast.DictComp) and not isinstance(node.key, ast.Name) else []


def _keys_of_name(name: str, block: CodeBlock, names: Names, modules: Modules, depth: int) -> list[str]:
    value = names.get(name)
    keys = [] if isinstance(value, ast.Name) and value.id == name else keys_of(value, block, names, modules, depth + 1)
    for node in block.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if dotted(target.value) == name and isinstance(target.slice, ast.Constant | ast.JoinedStr):
                keys.append(text_of(target.slice, names))
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{name}.update" and node.args:
            keys += keys_of(node.args[0], block, names, modules, depth + 1)
    return keys


def returned_keys(function: CodeBlock, modules: Modules, depth: int = 0) -> list[str]:
    names = names_in(function, modules)
    returns = (node for node in function.nodes if isinstance(node, ast.Return))
    return [key for node in returns for key in keys_of(node.value, function, names, modules, depth + 1)]


def text_of(node: ast.expr, names: Names, depth: int = 0) -> str:
    """Return a text with `*` for each part that is known only at run time."""
    if depth > _MAX_SUM:
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
    for continued, name, mark, spec in _SEEN.findall(" ".join(parts)):
        is_cut = name.endswith("_")  # the rest of the name follows, not a value: loss_{split}
        if not is_cut and (direction_of(name) or (mark in ("=", ":") and _FLOAT.search(spec))):
            yield f"*{as_printed(name)}" if continued else as_printed(name)


def _template(node: ast.expr, names: Names, depth: int = 0) -> str:
    """Return the text with a mark for each inserted value."""
    if depth > _MAX_SUM:
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
            lambda match: _HOLE.format(match.group(1) or ""), _template(node.func.value, names, depth + 1)
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
        lambda match: _HOLE.format(f".{match.group(1)}{match.group(2)}" if match.group(1) else match.group(2)), text
    )


_MAX_METRICS = 100
_OF_ONE_NAME = {"add_scalar", "log_metric", "logkv", "record", "log_value", "track", "report_scalar"}
_OF_A_DICT = {"log", "log_metrics", "log_dict", "add_scalars", "log_history", "set_postfix", "write_scalars", "report"}


def read_metrics(reach: Reach, flags: set[str]) -> list[LoggedMetric]:
    """Return the metrics in source order. A name that is also a flag is a printed setting, not a metric."""
    metrics: dict[str, LoggedMetric] = {}
    for block, call, names in calls_with_names(reach):
        for how, name in _logged_by(call, block, names, reach):
            is_metric = name.strip("*/_ ") and len(name) < 100 and not is_progress(name) and name not in flags
            if is_metric and name not in metrics and len(metrics) < _MAX_METRICS:
                where = block.module.at(call)
                metrics[name] = LoggedMetric(name=name, direction=direction_of(name), how=how, where=where)
    return list(metrics.values())


def _logged_by(call: ast.Call, block: CodeBlock, names: Names, reach: Reach) -> Iterator[tuple[str, str]]:
    """Yield how each metric of a call is logged, and its name."""
    name, function = last_name(call.func), dotted(call.func)
    if isinstance(call.func, ast.Attribute) and name in _OF_A_DICT:
        yield from ((function or name, key) for key in _logged_keys(call, block, names, reach))
    elif isinstance(call.func, ast.Attribute) and name in _OF_ONE_NAME and call.args:
        yield function or name, text_of(call.args[0], names)
    elif name == "compile" and keyword(call, "metrics"):
        node = keyword(call, "metrics")
        listed = [value_of(item) for item in node.elts] if isinstance(node, ast.List | ast.Tuple) else []
        for metric in ["loss", *(item for item in listed if isinstance(item, str))]:
            yield from (("keras", metric), ("keras", f"val_{metric}"))
    elif name.endswith("Trainer") and keyword(call, "compute_metrics") is not None:
        yield from (("trainer", key) for key in _trainer(call, block, reach))
    if name in PRINTERS:
        for inner in (inner for item in call.args for inner in ast.walk(item)):
            if isinstance(inner, ast.Call) and last_name(inner.func) == "dumps" and inner.args:
                yield from (("json", key) for key in keys_of(inner.args[0], block, names, reach.modules))
        if len(call.args) == 1 and isinstance(call.args[0], ast.Dict):
            printed = keys_of(call.args[0], block, names, reach.modules)
            yield from (("print", key) for key in printed if direction_of(key))
        yield from (("print", key) for key in printed_names(call, names))


def _logged_keys(call: ast.Call, block: CodeBlock, names: Names, reach: Reach) -> list[str]:
    name = last_name(call.func)
    arguments = call.args[:3] if name in ("add_scalars", "log_metrics") else call.args[:1]
    keys = [key for item in arguments for key in keys_of(item, block, names, reach.modules)]
    if name == "set_postfix":
        return [*(item.arg for item in call.keywords if item.arg and item.arg != "refresh"), *keys]
    takes_name = dotted(call.func).startswith(("self.", "accelerator.", "fabric.", "pl_module."))  # log(name, value)
    if name == "log" and takes_name and not keys and call.args and len(call.args) + len(call.keywords) > 1:
        single = text_of(call.args[0], names)
        return [single] if single != "*" else []
    return keys


def _trainer(call: ast.Call, block: CodeBlock, reach: Reach) -> Iterator[str]:
    """Yield the keys of compute_metrics with the prefix `eval_` that Hugging Face adds."""
    yield "eval_loss"
    node = keyword(call, "compute_metrics")
    inner = {item.name: item for item in reversed(block.nodes) if isinstance(item, ast.FunctionDef)}
    for name in map(dotted, [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]):
        if name in inner:  # a function inside main, as in run_glue.py
            function = CodeBlock(block.module, inner[name].body, inner[name])
        elif definition := reach.modules.find(block.module, name):
            function = reach.modules.block(*definition)
        else:
            continue
        keys = returned_keys(function, reach.modules)
        yield from (f"eval_{key.removeprefix('eval_')}" for key in keys if key != "*")
    for _block, load in reach.calls():
        if load.args and dotted(load.func) in ("evaluate.load", "load_metric"):
            metric = value_of(load.args[0])
            if isinstance(metric, str):
                yield f"eval_{metric}" if metric != "glue" else "eval_accuracy"
