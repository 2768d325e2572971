"""Flags from click: options and arguments of every command that the script registers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from labwright.planning.scan.annotations import type_of
from labwright.planning.scan.blocks import Block
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, keyword, known, last_name, value_of
from labwright.planning.scan.names import Names, names_in
from labwright.planning.scan.reach import Reach

_TYPES = {"int": "int", "INT": "int", "IntRange": "int", "float": "float", "FLOAT": "float", "FloatRange": "float",
          "bool": "bool", "BOOL": "bool", "Path": "path", "File": "path", "str": "str", "STRING": "str"}  # fmt: skip


def read_click(reach: Reach) -> tuple[list[Flag], list[str]]:
    """The flags, and the subcommands if there are several commands."""
    commands = [block for block in reach.blocks if _command_name(block) is not None]
    groups = [block for block in reach.blocks if _is_group(block)]
    names = [_command_name(block) or "" for block in commands] if groups else []
    flags = [flag for block in groups for flag in _flags(block, "", reach)]
    for block in commands:
        flags += _flags(block, (_command_name(block) or "") if groups else "", reach)
    return flags, names


def _decorators(block: Block) -> list[ast.Call]:
    return [item for item in block.decorators() if isinstance(item, ast.Call)]


def _is_group(block: Block) -> bool:
    named = (item.func if isinstance(item, ast.Call) else item for item in block.decorators())
    return any(last_name(item) == "group" for item in named)


def _command_name(block: Block) -> str | None:
    """The name of the command that a function is decorated as, or None."""
    for item in block.decorators():
        call = item if isinstance(item, ast.Call) else None
        if last_name(call.func if call else item) == "command" and block.owner:
            given = value_of(call.args[0] if call and call.args else keyword(call, "name") if call else None)
            return given if isinstance(given, str) else block.owner.name.replace("_", "-")
    return None


def _flags(block: Block, command: str, reach: Reach) -> Iterator[Flag]:
    names = names_in(block, reach.modules)
    for call in _decorators(block):
        if last_name(call.func) == "option":
            yield _option(call, command, names, block)
        elif last_name(call.func) == "argument":
            yield _argument(call, command, names, block)
        else:
            yield from _shared(call.func, command, block, reach)
    for item in block.decorators():
        if not isinstance(item, ast.Call):
            yield from _shared(item, command, block, reach)


def _shared(decorator: ast.expr, command: str, block: Block, reach: Reach) -> Iterator[Flag]:
    """Options that a decorator of the project's own adds."""
    found = reach.modules.find(block.module, last_name(decorator))
    if not found or isinstance(found[1], ast.ClassDef):
        return
    helper = reach.modules.block(*found)
    names = names_in(helper, reach.modules)
    for call in helper.calls():
        if last_name(call.func) == "option" and call.args:
            yield _option(call, command, names, helper)


def _option(call: ast.Call, command: str, names: Names, block: Block) -> Flag:
    words = [word for item in call.args if isinstance(word := value_of(item, names), str)]
    options = [word for word in words if word.startswith("-")]
    on, _, off = _longest(options).partition("/")
    default = value_of(keyword(call, "default"), names)
    switch = bool(off) or value_of(keyword(call, "is_flag"), names) is True
    given = [word for word in words if not word.startswith("-")]
    kind, choices = _type(call, names, default)
    return Flag(
        name=given[0] if given else on.lstrip("-").replace("-", "_").lower(),
        option=on.strip(),
        type="bool" if switch else kind,
        default=(False if switch else None) if default is UNKNOWN else known(default),
        required=value_of(keyword(call, "required"), names) is True,
        choices=choices,
        help=_help(call, names),
        aliases=tuple(word.partition("/")[0] for word in options if word.partition("/")[0] != on),
        negative=off.strip(),
        takes_value=not switch and value_of(keyword(call, "count"), names) is not True,
        command=command,
        where=block.module.at(call),
    )


def _longest(options: list[str]) -> str:
    """click names the parameter after the first option with two dashes."""
    return next((word for word in options if word.startswith("--")), options[0] if options else "")


def _argument(call: ast.Call, command: str, names: Names, block: Block) -> Flag:
    name = value_of(call.args[0] if call.args else None, names)
    default = value_of(keyword(call, "default"), names)
    kind, choices = _type(call, names, default)
    return Flag(
        name=name.lower().replace("-", "_") if isinstance(name, str) else "argument",
        option="",
        set_by=SetBy.POSITIONAL,
        type=kind,
        default=known(default),
        required=default is UNKNOWN and value_of(keyword(call, "required"), names) is not False,
        choices=choices,
        command=command,
        where=block.module.at(call),
    )


def _type(call: ast.Call, names: Names, default: Any) -> tuple[str, tuple[Any, ...]]:
    node = keyword(call, "type")
    many = value_of(keyword(call, "multiple"), names) is True or value_of(keyword(call, "nargs"), names) not in (
        UNKNOWN,
        1,
    )
    choices: tuple[Any, ...] = ()
    if isinstance(node, ast.Call) and last_name(node.func) == "Choice" and node.args:
        listed = value_of(node.args[0], names)
        choices = tuple(known(list(listed))) if isinstance(listed, list | dict) else ()
    named = _TYPES.get(last_name(node.func if isinstance(node, ast.Call) else node))
    kind = named or (type_of(default) if node is None and default is not UNKNOWN else "str")
    return (f"list[{kind}]" if many and not kind.startswith("list") else kind), choices


def _help(call: ast.Call, names: Names) -> str:
    text = value_of(keyword(call, "help"), names)
    return " ".join(text.split())[:300] if isinstance(text, str) else ""
