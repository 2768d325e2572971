"""Flags from a function's signature: typer, tyro, fire."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from labwright.planning.scan.annotations import Annotated, read_annotation, type_of
from labwright.planning.scan.blocks import Block
from labwright.planning.scan.dataclass_flags import fields_of, is_dataclass
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, dotted, keyword, known, last_name, value_of
from labwright.planning.scan.modules import Module, Modules
from labwright.planning.scan.reach import Reach

Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONTEXTS = {"Context", "CallbackParam"}


def read_typer(reach: Reach) -> tuple[list[Flag], list[str]]:
    """Functions that `@app.command()` registers, or the one that `typer.run` is given."""
    functions = [(block.module, block.owner, name) for block in reach.blocks
                 if isinstance(block.owner, Function) and (name := _typer_command(block))]  # fmt: skip
    for block, call in reach.calls():
        if dotted(call.func) == "typer.run" and call.args:
            found = reach.modules.find(block.module, dotted(call.args[0]))
            if found and isinstance(found[1], Function):
                functions.append((found[0], found[1], found[1].name))
    several = len(functions) > 1 or _has_callback(reach)
    names = [name for _module, _function, name in functions] if several else []
    flags = [replace(flag, command=name if several else "") for module, function, name in functions
             for flag in _typer_flags(function, module, reach.modules)]  # fmt: skip
    return flags, names


def _typer_command(block: Block) -> str:
    for item in block.decorators():
        call = item if isinstance(item, ast.Call) else None
        if last_name(call.func if call else item) == "command" and block.owner:
            given = value_of(call.args[0] if call and call.args else None)
            return given if isinstance(given, str) else block.owner.name.replace("_", "-")
    return ""


def _has_callback(reach: Reach) -> bool:
    return any(
        last_name(item.func if isinstance(item, ast.Call) else item) == "callback"
        for block in reach.blocks for item in block.decorators()
    )  # fmt: skip


def parameters(function: Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Every parameter with its default, if it has one."""
    plain = [*function.args.posonlyargs, *function.args.args]
    blanks: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    yield from zip(plain, [*blanks, *function.args.defaults], strict=True)
    yield from zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)


def _typer_flags(function: Function, module: Module, modules: Modules) -> Iterator[Flag]:
    for argument, default in parameters(function):
        annotated = read_annotation(argument.annotation, module, modules)
        if last_name(argument.annotation) not in _CONTEXTS:
            yield _typer_flag(argument, default, annotated, module, modules)


def _typer_flag(
    argument: ast.arg, default: ast.expr | None, annotated: Annotated, module: Module, modules: Modules
) -> Flag:
    names = modules.constants_of(module)
    declared = [item for item in annotated.extras if isinstance(item, ast.Call)]
    old_style = isinstance(default, ast.Call) and last_name(default.func) in ("Option", "Argument")
    call = default if old_style and isinstance(default, ast.Call) else (declared[0] if declared else None)
    value, words = _typer_default(default, call, names, old_style=old_style)
    positional = last_name(call.func) == "Argument" if call else default is None
    option, negative, aliases = _typer_words(argument.arg, words, annotated.type)
    choices = annotated.choices
    return Flag(
        name=argument.arg,
        option="" if positional else option,
        set_by=SetBy.POSITIONAL if positional else SetBy.OPTION,
        type=annotated.type if argument.annotation else type_of(value),
        default=_enum_default(default, choices) if value is UNKNOWN and choices else known(value),
        required=value is UNKNOWN and (default is None or old_style),
        choices=choices,
        help=_text(keyword(call, "help") if call else None),
        aliases=aliases,
        negative="" if positional else negative,
        takes_value=annotated.type != "bool" or positional,
        where=module.at(argument),
    )


def _typer_default(
    default: ast.expr | None, call: ast.Call | None, names: dict[str, ast.expr], *, old_style: bool
) -> tuple[Any, list[str]]:
    """The default, and the option names that Option(...) spells out."""
    arguments = list(call.args) if call else []
    if old_style:
        first = arguments.pop(0) if arguments else keyword(call, "default") if call else None
        value = UNKNOWN if isinstance(first, ast.Constant) and first.value is ... else value_of(first, names)
    else:
        value = value_of(default, names)
    return value, [word for item in arguments if isinstance(word := value_of(item, names), str)]


def _typer_words(name: str, words: list[str], kind: str) -> tuple[str, str, tuple[str, ...]]:
    own = f"--{name.replace('_', '-')}"
    chosen = next((word for word in words if word.startswith("--")), words[0] if words else own)
    on, _, off = chosen.partition("/")
    if kind == "bool" and not off and not words:
        off = f"--no-{on.removeprefix('--')}"
    return on, off, tuple(word for word in words if word.startswith("-") and word != chosen)


def _enum_default(node: ast.expr | None, choices: tuple[Any, ...]) -> Any:
    """`Optimizer.adam`: the member's name is usually its value."""
    name = last_name(node)
    return name if name in choices else None


def _text(node: ast.expr | None) -> str:
    text = value_of(node)
    return " ".join(text.split())[:300] if isinstance(text, str) else ""


def read_called(reach: Reach, callers: tuple[str, ...], *, dashes: bool) -> list[Flag]:
    """What `tyro.cli(main)`, `tyro.cli(Config)` or `fire.Fire(main)` make of a signature."""
    found: list[Flag] = []
    for block, call in reach.calls():
        if dotted(call.func) in callers and call.args:
            target = reach.modules.find(block.module, dotted(call.args[0]))
            if target:
                found += _of_target(target[1], target[0], reach.modules, dashes=dashes)
    return found


def _of_target(target: ast.AST, module: Module, modules: Modules, *, dashes: bool, prefix: str = "") -> Iterator[Flag]:
    if isinstance(target, ast.ClassDef):
        for flag in fields_of(target, module, modules, dashes=dashes):
            nested = _nested(target, flag, module, modules)
            if nested:
                yield from _of_target(
                    nested[1], nested[0], modules, dashes=dashes, prefix=f"{prefix}{flag.option[2:]}."
                )
            else:
                yield _tyro_switch(_prefixed(flag, prefix), dashes=dashes)
    elif isinstance(target, Function):
        for argument, default in parameters(target):
            yield from _of_parameter(argument, default, module, modules, dashes=dashes)


def _nested(owner: ast.ClassDef, flag: Flag, module: Module, modules: Modules) -> tuple[Module, ast.ClassDef] | None:
    node = next(
        (item for item in owner.body if isinstance(item, ast.AnnAssign) and last_name(item.target) == flag.name), None
    )
    found = modules.find(module, dotted(node.annotation)) if node else None
    return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) and is_dataclass(found[1]) else None


def _prefixed(flag: Flag, prefix: str) -> Flag:
    if not prefix:
        return flag
    return replace(flag, name=f"{prefix}{flag.name}".replace("-", "_"), option=f"--{prefix}{flag.option[2:]}")


def _tyro_switch(flag: Flag, *, dashes: bool) -> Flag:
    """tyro spells both ways of a switch; fire takes the value."""
    if flag.type != "bool" or not dashes:
        return flag
    return replace(flag, takes_value=False, negative=f"--no-{flag.option[2:]}")


def _of_parameter(
    argument: ast.arg, default: ast.expr | None, module: Module, modules: Modules, *, dashes: bool
) -> Iterator[Flag]:
    found = modules.find(module, dotted(argument.annotation))
    if found and isinstance(found[1], ast.ClassDef) and is_dataclass(found[1]):
        name = argument.arg.replace("_", "-") if dashes else argument.arg
        yield from _of_target(found[1], found[0], modules, dashes=dashes, prefix=f"{name}.")
        return
    annotated = read_annotation(argument.annotation, module, modules)
    value = value_of(default, modules.constants_of(module))
    flag = Flag(
        name=argument.arg,
        option=f"--{argument.arg.replace('_', '-') if dashes else argument.arg}",
        type=annotated.type if argument.annotation else type_of(value),
        default=known(value),
        required=default is None,
        choices=annotated.choices,
        where=module.at(argument),
    )
    yield _tyro_switch(flag, dashes=dashes)
