"""Bare globals: `LR = 0.1`, read from the environment, or overwritten by a configurator as in nanoGPT."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labwright.planning.scan.annotations import type_of
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, dotted, known, last_name, value_of
from labwright.planning.scan.modules import Module
from labwright.planning.scan.reach import Reach

_READS_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")


def read_environment(module: Module) -> list[Flag]:
    """`LR = float(os.environ.get("LR", "0.1"))`, wherever it stands."""
    found: dict[str, Flag] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for flag in _from_environment(node, node.value, module):
                found.setdefault(flag.name, flag)
    return list(found.values())


def _from_environment(node: ast.stmt, value: ast.expr, module: Module) -> Iterator[Flag]:
    for inner in ast.walk(value):
        variable = _variable(inner)
        if variable:
            default = value_of(value, module.constants)
            converted = last_name(value.func) if isinstance(value, ast.Call) else ""
            yield Flag(
                name=variable.lower(),
                option=f"{variable}=",
                set_by=SetBy.ENVIRONMENT,
                type=converted if converted in ("int", "float", "bool") else type_of(default),
                default=known(default),
                required=isinstance(inner, ast.Subscript),
                where=module.at(node),
            )


def _variable(node: ast.AST) -> str:
    """The name of the variable that an expression reads."""
    if isinstance(node, ast.Call) and dotted(node.func) in _READS_ENVIRONMENT and node.args:
        name = value_of(node.args[0])
    elif isinstance(node, ast.Subscript) and dotted(node.value) in ("os.environ", "environ"):
        name = value_of(node.slice)
    else:
        return ""
    return name if isinstance(name, str) else ""


def read_globals(module: Module, *, every_case: bool = False) -> list[Flag]:
    """Plain values at the top level; by convention those in capitals, for nanoGPT's way all of them."""
    found = []
    for name, node in module.constants.items():
        value = value_of(node, module.constants)
        spelled = name.isupper() or every_case
        if spelled and not name.startswith("_") and isinstance(value, bool | int | float | str) and not _is_read(node):
            found.append(
                Flag(
                    name=name,
                    option="",
                    set_by=SetBy.EDIT,
                    type=type_of(value),
                    default=known(value),
                    where=module.at(node),
                    note="a global: not settable from outside",
                )
            )
    return found


def _is_read(node: ast.expr) -> bool:
    return any(_variable(inner) for inner in ast.walk(node))


def _names_a_configurator(call: ast.Call) -> bool:
    texts = (node.value for node in ast.walk(call) if isinstance(node, ast.Constant))
    return any(isinstance(text, str) and "configurator" in text for text in texts)


def read_configurator(reach: Reach) -> list[Flag]:
    """nanoGPT: `exec(open("configurator.py").read())` lets `--name=value` overwrite every global above it."""
    if not any(dotted(call.func) == "exec" and _names_a_configurator(call) for _block, call in reach.calls()):
        return []
    plain = read_globals(reach.entry, every_case=True)
    return [
        Flag(
            name=flag.name,
            option=f"--{flag.name}=",
            set_by=SetBy.JOINED,
            type=flag.type,
            default=flag.default,
            where=flag.where,
        )
        for flag in plain
        if flag.default is not UNKNOWN
    ]
