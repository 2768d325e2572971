"""Metrics that an entry point logs or prints, with where they were seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.domain.metrics.direction import direction_of, is_progress
from labwright.planning.scan.blocks import Block
from labwright.planning.scan.dict_keys import keys_of, returned_keys, text_of
from labwright.planning.scan.facts import Metric
from labwright.planning.scan.literals import dotted, keyword, last_name, value_of
from labwright.planning.scan.names import Names, names_in, rounds_of_loops
from labwright.planning.scan.printed_metrics import PRINTERS, printed_names
from labwright.planning.scan.reach import Reach

_MOST = 100
_OF_ONE_NAME = {"add_scalar", "log_metric", "logkv", "record", "log_value", "track", "report_scalar"}
_OF_A_DICT = {"log", "log_metrics", "log_dict", "add_scalars", "log_history", "set_postfix", "write_scalars", "report"}


def read_metrics(reach: Reach, flags: set[str]) -> list[Metric]:
    """In the order in which they are seen. A name that is also a flag is a setting that is printed."""
    found: dict[str, Metric] = {}
    for block, call, names in _with_names(reach):
        for how, name in _of_call(call, block, names, reach):
            if _is_metric(name) and name not in flags and name not in found and len(found) < _MOST:
                found[name] = Metric(name=name, direction=direction_of(name), how=how, where=block.module.at(call))
    return list(found.values())


def _is_metric(name: str) -> bool:
    return bool(name.strip("*/_ ")) and len(name) < 100 and not is_progress(name)


def _with_names(reach: Reach) -> Iterator[tuple[Block, ast.Call, Names]]:
    """Every call with what its names stand for; inside a loop over literals, once a round."""
    for block in reach.blocks:
        names = names_in(block, reach.modules)
        rounds = rounds_of_loops(block, names)
        for call in block.calls():
            for bound in rounds.get(id(call), [{}]):
                yield block, call, {**names, **bound} if bound else names


def _of_call(call: ast.Call, block: Block, names: Names, reach: Reach) -> Iterator[tuple[str, str]]:
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


def _logged_keys(call: ast.Call, block: Block, names: Names, reach: Reach) -> list[str]:
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


def _json_keys(call: ast.Call, block: Block, names: Names, reach: Reach) -> Iterator[tuple[str, str]]:
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


def _trainer(call: ast.Call, block: Block, reach: Reach) -> Iterator[str]:
    """Hugging Face puts `eval_` in front of what compute_metrics returns."""
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


def _local_function(name: str, block: Block) -> Block | None:
    """run_glue.py and its like define compute_metrics inside main."""
    for node in block.walk():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Block(block.module, node.body, node)
    return None
