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
        for node in block.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                bound[dotted(node.targets[0])] |= self._of(node.value, block)
            elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
                for item in node.iter.elts:
                    bound[dotted(node.target)] |= self._of(item, block)
            elif isinstance(node, ast.Call):
                if last_name(node.func) == "add_parser":
                    self.commands += self._of(node, block) - set(self.commands)
                helper = self._reach.modules.find_function(block.module, dotted(node.func))
                if helper:
                    inherited = self._bound[id(helper[1].body)]
                    for argument, parameter in zip(node.args, helper[1].args.args, strict=False):
                        inherited[parameter.arg] |= self._of(argument, block)


_SWITCHES = {"store_true", "store_false", "store_const", "append_const", "count"}
_WORTH_READING = ("add_argument", "set_defaults")
_REGISTERED = {"add_args", "add_arguments", "add_argparse_args", "add_model_specific_args", "register_arguments"}


@dataclass(slots=True)
class ArgparseFlags:
    flags: list[Flag] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_argparse(reach: Reach) -> ArgparseFlags:
    subparsers = Subparsers(reach)
    result = ArgparseFlags(commands=subparsers.commands)
    defaults: dict[str, Any] = {}
    for block in [*reach.blocks, *registered_blocks(reach)]:
        if not any(word in block.module.text for word in _WORTH_READING):
            continue
        names = names_in(block, reach.modules)
        rounds = rounds_of_loops(block, names)
        for call in block.calls:
            if last_name(call.func) == "set_defaults":
                values = {item.arg: value_of(item.value, names) for item in call.keywords if item.arg}
                defaults.update({name: value for name, value in values.items() if value is not UNKNOWN})
            elif isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args:
                flags: list[Flag] = []
                for bound in rounds.get(id(call), [{}]):
                    scope = {**names, **bound}
                    words = [word for item in call.args if isinstance(word := value_of(item, scope), str)]
                    flags += [_flag(call, words, scope, block)] if words else _flags_of_fields(call, block, reach)
                if not flags:
                    result.notes.append(f"an argument whose name is made at run time: {block.module.at(call)}")
                owners = subparsers.commands_of(call, block)
                result.flags += [replace(flag, command=command) for command in owners for flag in flags]
    result.flags = [
        replace(flag, default=known(defaults[flag.name])) if flag.name in defaults else flag
        for flag in result.flags
        if flag.type != "help"
    ]
    return result


def registered_blocks(reach: Reach) -> list[CodeBlock]:
    """Return all classes that `REGISTRY[name].add_args(parser)` may call, as only run time shows which one it is."""
    seen = {id(block.body) for block in reach.blocks}
    attributes = {last_name(call.func) for _block, call in reach.calls() if isinstance(call.func, ast.Attribute)}
    called = attributes & _REGISTERED
    blocks = []
    for path in reach.modules.paths if called else ():
        if any(f"def {name}(" in (reach.modules.text(path) or "") for name in called):
            module = reach.modules.get(path)
            classes = [node for node in module.definitions.values() if isinstance(node, ast.ClassDef)] if module else []
            blocks += [reach.modules.block(module, node) for node in classes if module and id(node.body) not in seen]
    return blocks


def _flags_of_fields(call: ast.Call, block: CodeBlock, reach: Reach) -> Iterator[Flag]:
    """Yield the flags of `for f in fields(Config): parser.add_argument(f"--{f.name}", ...)`."""
    for loop in block.loops():
        over = loop.iter
        inside = any(node is call for statement in loop.body for node in ast.walk(statement))
        if not inside or not isinstance(over, ast.Call) or last_name(over.func) != "fields" or not over.args:
            continue
        config = reach.modules.find_class(block.module, dotted(over.args[0]))
        if config:
            dashes = any(last_name(inner) == "replace" for inner in ast.walk(call.args[0]))
            yield from fields_of(config[1], config[0], reach.modules, dashes=dashes)


def _flag(call: ast.Call, words: list[str], names: Names, block: CodeBlock) -> Flag:
    def value(name: str) -> Any:
        return value_of(keyword(call, name), names)

    option = next((word for word in words if word.startswith("--")), words[0])
    positional = not option.startswith("-")
    dest, default, listed = value("dest"), value("default"), value("choices")
    action = value("action") if isinstance(value("action"), str) else "store"
    if last_name(keyword(call, "action")) == "BooleanOptionalAction":
        action = "boolean_optional"
    choices = tuple(known(list(listed))) if isinstance(listed, list | dict) else ()
    flag = Flag(
        name=dest if isinstance(dest, str) else option.lstrip("-").replace("-", "_"),
        option="" if positional else option,
        set_by=SetBy.POSITIONAL if positional else SetBy.OPTION,
        type=_type(keyword(call, "type"), value("nargs"), choices, action, names),
        default=known(default),
        required=value("nargs") not in ("?", "*") if positional else value("required") is True,
        choices=choices,
        help=help_text(keyword(call, "help"), names),
        aliases=tuple(word for word in words if word != option),
        takes_value=action not in _SWITCHES and action != "boolean_optional",
        where=block.module.at(call),
        note="" if keyword(call, "default") is None or default is not UNKNOWN else "the default is made at run time",
    )
    match action:
        case "store_true":
            return replace(flag, type="bool", default=bool(flag.default))
        case "store_false":
            return replace(flag, type="bool", default=True if flag.default is None else flag.default)
        case "boolean_optional":
            return replace(flag, type="bool", negative=f"--no-{flag.option.removeprefix('--')}")
        case "help" | "version":
            return replace(flag, type="help")
    return flag


def _type(node: ast.expr | None, nargs: Any, choices: tuple[Any, ...], action: str, names: Names) -> str:
    name = last_name(node.func if isinstance(node, ast.Call) else node)
    if action == "count":
        return "int"
    if node is None and choices:
        kind = type_of(choices[0])
    elif isinstance(node, ast.Call) and name == "type" and node.args:
        kind = type_of(value_of(node.args[0], names))
    elif name in ("int", "float", "str"):
        kind = name
    elif "bool" in name.lower():
        kind = "bool"
    elif name in ("Path", "abspath", "expanduser"):
        kind = "path"
    elif "float" in name.lower():
        kind = "float"
    else:
        kind = "int" if "int" in name.lower().split("_") else "str"
    many = nargs not in (UNKNOWN, "?", None) or action in ("append", "extend")
    return f"list[{kind}]" if many else kind
