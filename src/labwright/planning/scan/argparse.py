"""Flags from argparse, with subcommands."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from labwright.planning.scan.annotations import fields_of, type_of
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, dotted, help_text, keyword, known, last_name, value_of
from labwright.planning.scan.modules import CodeBlock
from labwright.planning.scan.reach import Names, Reach, names_in, rounds_of_loops

_GROUPS = {"add_argument_group", "add_mutually_exclusive_group"}


class Subparsers:
    """The subcommand of each parser variable in each block. A helper function inherits it from its argument."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._bound: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))  # block: name: commands
        self.commands: list[str] = []
        used = any("add_parser" in module.text for module in reach.files())
        for block in [*reach.blocks, *reach.blocks] if used else ():  # twice, since a helper may come before its caller
            self._read(block)

    def commands_of(self, call: ast.Call, block: CodeBlock) -> list[str]:
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        return sorted(self._of(receiver, block)) or [""]

    def _of(self, node: ast.expr | None, block: CodeBlock) -> set[str]:
        if isinstance(node, ast.Call):
            if last_name(node.func) == "add_parser" and node.args:
                name = value_of(node.args[0])
                return {name} if isinstance(name, str) else set()
            if last_name(node.func) in _GROUPS and isinstance(node.func, ast.Attribute):
                return self._of(node.func.value, block)
            return set()
        return self._bound[id(block.body)][dotted(node)]

    def _read(self, block: CodeBlock) -> None:
        bound = self._bound[id(block.body)]
        for node in block.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                bound[dotted(node.targets[0])] |= self._of(node.value, block)
            elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
                for item in node.iter.elts:
                    bound[dotted(node.target)] |= self._of(item, block)
            elif isinstance(node, ast.Call):
                self._read_call(node, block)

    def _read_call(self, call: ast.Call, block: CodeBlock) -> None:
        for name in self._of(call, block) if last_name(call.func) == "add_parser" else ():
            if name not in self.commands:
                self.commands.append(name)
        found = self._reach.modules.find(block.module, dotted(call.func))
        if not found or isinstance(found[1], ast.ClassDef):
            return
        for argument, parameter in zip(call.args, found[1].args.args, strict=False):
            self._bound[id(found[1].body)][parameter.arg] |= self._of(argument, block)


_SWITCHES = {"store_true", "store_false", "store_const", "append_const", "count"}
_WORTH_READING = ("add_argument", "set_defaults")
_NOT_FLAGS = {"help", "version"}
_REGISTERED = {"add_args", "add_arguments", "add_argparse_args", "add_model_specific_args", "register_arguments"}


@dataclass(slots=True)
class ArgparseFlags:
    flags: list[Flag] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_argparse(reach: Reach) -> ArgparseFlags:
    found = ArgparseFlags()
    subparsers = Subparsers(reach)
    found.commands = subparsers.commands
    defaults: dict[str, Any] = {}
    for block in [*reach.blocks, *registered_blocks(reach)]:
        if not any(word in block.module.text for word in _WORTH_READING):
            continue
        names = names_in(block, reach.modules)
        rounds = rounds_of_loops(block, names)
        for call in block.calls():
            if last_name(call.func) == "set_defaults":
                defaults.update(_set_defaults(call, names))
            elif isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args:
                flags = list(_flags_of(call, block, names, rounds.get(id(call), [{}]), reach))
                if not flags:
                    found.notes.append(f"an argument whose name is made at run time: {block.module.at(call)}")
                owners = subparsers.commands_of(call, block)
                found.flags += [replace(flag, command=command) for command in owners for flag in flags]
    found.flags = [_with_default(flag, defaults) for flag in found.flags if flag.type != "help"]
    return found


def registered_blocks(reach: Reach) -> list[CodeBlock]:
    """Return the bodies behind `REGISTRY[name].add_args(parser)` of every class, as only run time shows which."""
    seen = {id(block.body) for block in reach.blocks}
    called = {
        last_name(call.func) for _block, call in reach.calls() if isinstance(call.func, ast.Attribute)
    } & _REGISTERED
    found = []
    for path in reach.modules.paths if called else ():
        if any(f"def {name}(" in (reach.modules.text(path) or "") for name in called):
            module = reach.modules.get(path)
            classes = [node for node in module.definitions.values() if isinstance(node, ast.ClassDef)] if module else []
            found += [reach.modules.block(module, node) for node in classes if module and id(node.body) not in seen]
    return found


def _set_defaults(call: ast.Call, names: Names) -> dict[str, Any]:
    pairs = {item.arg: value_of(item.value, names) for item in call.keywords if item.arg}
    return {name: value for name, value in pairs.items() if value is not UNKNOWN}


def _with_default(flag: Flag, defaults: dict[str, Any]) -> Flag:
    return replace(flag, default=known(defaults[flag.name])) if flag.name in defaults else flag


def _flags_of(call: ast.Call, block: CodeBlock, names: Names, rounds: list[Names], reach: Reach) -> Iterator[Flag]:
    for bound in rounds:
        scope = {**names, **bound}
        words = [word for item in call.args if isinstance(word := value_of(item, scope), str)]
        if words:
            yield _flag(call, words, scope, block)
            continue
        yield from _flags_of_fields(call, block, reach)


def _flags_of_fields(call: ast.Call, block: CodeBlock, reach: Reach) -> Iterator[Flag]:
    """`for f in fields(Config): parser.add_argument(f"--{f.name}", ...)`."""
    for loop in block.loops():
        over = loop.iter
        inside = any(node is call for statement in loop.body for node in ast.walk(statement))
        if not inside or not isinstance(over, ast.Call) or last_name(over.func) != "fields" or not over.args:
            continue
        config = reach.modules.find(block.module, dotted(over.args[0]))
        if config and isinstance(config[1], ast.ClassDef):
            dashes = any(last_name(inner) == "replace" for inner in ast.walk(call.args[0]))
            yield from fields_of(config[1], config[0], reach.modules, dashes=dashes)


def _flag(call: ast.Call, words: list[str], names: Names, block: CodeBlock) -> Flag:
    long = [word for word in words if word.startswith("--")]
    option = (long or words)[0]
    positional = not option.startswith("-")
    dest = value_of(keyword(call, "dest"), names)
    action = _action(call, names)
    default = value_of(keyword(call, "default"), names)
    flag = Flag(
        name=dest if isinstance(dest, str) else option.lstrip("-").replace("-", "_"),
        option="" if positional else option,
        set_by=SetBy.POSITIONAL if positional else SetBy.OPTION,
        type=_type(call, names, action),
        default=known(default),
        required=_is_required(call, names, positional),
        choices=_choices(call, names),
        help=help_text(keyword(call, "help"), names),
        aliases=tuple(word for word in words if word != option),
        takes_value=action not in _SWITCHES and action != "boolean_optional",
        where=block.module.at(call),
        note="" if keyword(call, "default") is None or default is not UNKNOWN else "the default is made at run time",
    )
    return _as_switch(flag, action)


def _action(call: ast.Call, names: Names) -> str:
    node = keyword(call, "action")
    if last_name(node) == "BooleanOptionalAction":
        return "boolean_optional"
    value = value_of(node, names)
    return value if isinstance(value, str) else "store"


def _as_switch(flag: Flag, action: str) -> Flag:
    if action == "store_true":
        return replace(flag, type="bool", default=bool(flag.default))
    if action == "store_false":
        return replace(flag, type="bool", default=True if flag.default is None else flag.default)
    if action == "boolean_optional":
        return replace(flag, type="bool", negative=f"--no-{flag.option.removeprefix('--')}")
    if action in _NOT_FLAGS:
        return replace(flag, type="help")
    return flag


def _type(call: ast.Call, names: Names, action: str) -> str:
    node = keyword(call, "type")
    plain = _type_word(node, names)
    if node is None and (choices := _choices(call, names)):
        plain = type_of(choices[0])
    if action == "count":
        return "int"
    many = value_of(keyword(call, "nargs"), names) not in (UNKNOWN, "?", None) or action in ("append", "extend")
    return f"list[{plain}]" if many else plain


def _type_word(node: ast.expr | None, names: Names) -> str:
    if isinstance(node, ast.Call) and last_name(node.func) == "type" and node.args:
        return type_of(value_of(node.args[0], names))
    name = last_name(node.func if isinstance(node, ast.Call) else node)
    if name in ("int", "float", "str"):
        return name
    if "bool" in name.lower():
        return "bool"
    if name in ("Path", "abspath", "expanduser"):
        return "path"
    if "float" in name.lower() or "int" in name.lower().split("_"):
        return "float" if "float" in name.lower() else "int"
    return "str"


def _choices(call: ast.Call, names: Names) -> tuple[Any, ...]:
    value = value_of(keyword(call, "choices"), names)
    return tuple(known(list(value))) if isinstance(value, list | dict) else ()


def _is_required(call: ast.Call, names: Names, positional: bool) -> bool:
    if positional:
        return value_of(keyword(call, "nargs"), names) not in ("?", "*")
    return value_of(keyword(call, "required"), names) is True
