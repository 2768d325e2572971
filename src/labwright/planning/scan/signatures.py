"""Flags from function signatures: click, typer, fire and similar libraries, and LightningCLI."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from labwright.planning.scan.annotations import Annotated, fields_of, is_dataclass, read_annotation, type_of
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, dotted, help_text, keyword, known, last_name, value_of
from labwright.planning.scan.modules import CodeBlock, Modules, SourceModule
from labwright.planning.scan.reach import Names, Reach, names_in

_TYPES = {"int": "int", "INT": "int", "IntRange": "int", "float": "float", "FLOAT": "float", "FloatRange": "float",
          "bool": "bool", "BOOL": "bool", "Path": "path", "File": "path", "str": "str", "STRING": "str"}  # fmt: skip


def read_click(reach: Reach) -> tuple[list[Flag], list[str]]:
    """Return the flags, and the subcommands if there are several."""
    commands = [block for block in reach.blocks if _command_name(block) is not None]
    groups = [block for block in reach.blocks if _is_group(block)]
    names = [_command_name(block) or "" for block in commands] if groups else []
    flags = [flag for block in groups for flag in _flags(block, "", reach)]
    for block in commands:
        flags += _flags(block, (_command_name(block) or "") if groups else "", reach)
    return flags, names


def _is_group(block: CodeBlock) -> bool:
    named = (item.func if isinstance(item, ast.Call) else item for item in block.decorators())
    return any(last_name(item) == "group" for item in named)


def _command_name(block: CodeBlock) -> str | None:
    """Return the command name in a function's decorator, or None."""
    for item in block.decorators():
        call = item if isinstance(item, ast.Call) else None
        if last_name(call.func if call else item) == "command" and block.owner:
            given = value_of(call.args[0] if call and call.args else keyword(call, "name") if call else None)
            return given if isinstance(given, str) else block.owner.name.replace("_", "-")
    return None


def _flags(block: CodeBlock, command: str, reach: Reach) -> Iterator[Flag]:
    names = names_in(block, reach.modules)
    for call in (item for item in block.decorators() if isinstance(item, ast.Call)):
        if last_name(call.func) == "option":
            yield _option(call, command, names, block)
        elif last_name(call.func) == "argument":
            yield _argument(call, command, names, block)
        else:
            yield from _shared(call.func, command, block, reach)
    for item in block.decorators():
        if not isinstance(item, ast.Call):
            yield from _shared(item, command, block, reach)


def _shared(decorator: ast.expr, command: str, block: CodeBlock, reach: Reach) -> Iterator[Flag]:
    """Return options that a decorator of the project adds."""
    found = reach.modules.find(block.module, last_name(decorator))
    if not found or isinstance(found[1], ast.ClassDef):
        return
    helper = reach.modules.block(*found)
    names = names_in(helper, reach.modules)
    for call in helper.calls():
        if last_name(call.func) == "option" and call.args:
            yield _option(call, command, names, helper)


def _option(call: ast.Call, command: str, names: Names, block: CodeBlock) -> Flag:
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
        help=help_text(keyword(call, "help"), names),
        aliases=tuple(word.partition("/")[0] for word in options if word.partition("/")[0] != on),
        negative=off.strip(),
        takes_value=not switch and value_of(keyword(call, "count"), names) is not True,
        command=command,
        where=block.module.at(call),
    )


def _longest(options: list[str]) -> str:
    """Return the parameter name, which click takes from the first option with two dashes."""
    return next((word for word in options if word.startswith("--")), options[0] if options else "")


def _argument(call: ast.Call, command: str, names: Names, block: CodeBlock) -> Flag:
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


Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONTEXTS = {"Context", "CallbackParam"}


def read_typer(reach: Reach) -> tuple[list[Flag], list[str]]:
    """Return functions that `@app.command()` registers, or the argument of `typer.run`."""
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


def _typer_command(block: CodeBlock) -> str:
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
    """Yield every parameter with its default or None."""
    plain = [*function.args.posonlyargs, *function.args.args]
    blanks: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    yield from zip(plain, [*blanks, *function.args.defaults], strict=True)
    yield from zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)


def _typer_flags(function: Function, module: SourceModule, modules: Modules) -> Iterator[Flag]:
    for argument, default in parameters(function):
        annotated = read_annotation(argument.annotation, module, modules)
        if last_name(argument.annotation) not in _CONTEXTS:
            yield _typer_flag(argument, default, annotated, module, modules)


def _typer_flag(
    argument: ast.arg, default: ast.expr | None, annotated: Annotated, module: SourceModule, modules: Modules
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
        help=help_text(keyword(call, "help") if call else None),
        aliases=aliases,
        negative="" if positional else negative,
        takes_value=annotated.type != "bool" or positional,
        where=module.at(argument),
    )


def _typer_default(
    default: ast.expr | None, call: ast.Call | None, names: dict[str, ast.expr], *, old_style: bool
) -> tuple[Any, list[str]]:
    """Return the default, and the option names in Option(...)."""
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
    """Return `adam` for `Optimizer.adam`: an enum member's name is usually its value."""
    name = last_name(node)
    return name if name in choices else None


def read_called(reach: Reach, callers: tuple[str, ...], *, dashes: bool) -> list[Flag]:
    """Read the signature behind `tyro.cli(main)`, `tyro.cli(Config)` or `fire.Fire(main)`."""
    found: list[Flag] = []
    for block, call in reach.calls():
        if dotted(call.func) in callers and call.args:
            target = reach.modules.find(block.module, dotted(call.args[0]))
            if target:
                found += _of_target(target[1], target[0], reach.modules, dashes=dashes)
    return found


def _of_target(
    target: ast.AST, module: SourceModule, modules: Modules, *, dashes: bool, prefix: str = ""
) -> Iterator[Flag]:
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


def _nested(
    owner: ast.ClassDef, flag: Flag, module: SourceModule, modules: Modules
) -> tuple[SourceModule, ast.ClassDef] | None:
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
    """Return a switch as tyro (both options) or fire (a value) takes it."""
    if flag.type != "bool" or not dashes:
        return flag
    return replace(flag, takes_value=False, negative=f"--no-{flag.option[2:]}")


def _of_parameter(
    argument: ast.arg, default: ast.expr | None, module: SourceModule, modules: Modules, *, dashes: bool
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


COMMANDS = ("fit", "validate", "test", "predict")
_TRAINER: list[tuple[str, str, Any]] = [
    ("seed_everything", "int", True),
    ("trainer.max_steps", "int", -1),
    ("trainer.max_epochs", "int", None),
    ("trainer.limit_train_batches", "float", None),
    ("trainer.limit_val_batches", "float", None),
    ("trainer.fast_dev_run", "bool", False),
    ("trainer.accelerator", "str", "auto"),
    ("trainer.devices", "str", "auto"),
    ("trainer.precision", "str", None),
    ("trainer.gradient_clip_val", "float", None),
    ("trainer.accumulate_grad_batches", "int", 1),
    ("trainer.default_root_dir", "path", None),
]


def read_lightning(reach: Reach) -> list[Flag]:
    for block, call in reach.calls():
        if last_name(call.func) in ("LightningCLI", "CLI") or last_name(call.func).endswith("LightningCLI"):
            model = call.args[0] if call.args else keyword(call, "model_class")
            data = call.args[1] if len(call.args) > 1 else keyword(call, "datamodule_class")
            parts = [("model", model), ("data", data)]
            own = [flag for prefix, node in parts for flag in _of_class(prefix, node, block.module, reach.modules)]
            return [*own, *(_trainer_flag(*row) for row in _TRAINER)]
    return []


def _trainer_flag(name: str, kind: str, default: Any) -> Flag:
    return Flag(name=name, option=f"--{name}", type=kind, default=default, where="lightning.Trainer")


def _of_class(prefix: str, node: ast.expr | None, module: SourceModule, modules: Modules) -> Iterator[Flag]:
    found = modules.find(module, dotted(node))
    if not found or not isinstance(found[1], ast.ClassDef):
        return
    made = next((item for item in found[1].body if isinstance(item, Function) and item.name == "__init__"), None)
    for argument, default in list(parameters(made))[1:] if made else ():
        annotated = read_annotation(argument.annotation, found[0], modules)
        value = value_of(default, modules.constants_of(found[0]))
        yield Flag(
            name=f"{prefix}.{argument.arg}",
            option=f"--{prefix}.{argument.arg}",
            type=annotated.type if argument.annotation else type_of(value),
            default=None if value is UNKNOWN else known(value),
            required=default is None,
            choices=annotated.choices,
            where=found[0].at(argument),
        )
