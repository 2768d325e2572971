"""Flags from function signatures: click, typer, fire and similar libraries, and LightningCLI."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from labwright.planning.scan.annotations import fields_of, is_dataclass, read_annotation, type_of
from labwright.planning.scan.facts import Flag, SetBy
from labwright.planning.scan.literals import UNKNOWN, dotted, help_text, keyword, known, last_name, value_of
from labwright.planning.scan.modules import CodeBlock, Function, Modules, SourceModule
from labwright.planning.scan.reach import Names, Reach, names_in

_TYPES = {"int": "int", "INT": "int", "IntRange": "int", "float": "float", "FLOAT": "float", "FloatRange": "float",
          "bool": "bool", "BOOL": "bool", "Path": "path", "File": "path", "str": "str", "STRING": "str"}  # fmt: skip


def read_click(reach: Reach) -> tuple[list[Flag], list[str]]:
    """Return the flags, and the subcommands if there is a group."""
    commands = [(block, name) for block in reach.blocks if (name := _command_name(block)) is not None]
    groups = [block for block in reach.blocks if "group" in _decorator_names(block)]
    flags = [flag for block in groups for flag in _flags(block, "", reach)]
    for block, name in commands:
        flags += _flags(block, name if groups else "", reach)
    return flags, [name for _block, name in commands] if groups else []


def _decorator_names(block: CodeBlock) -> set[str]:
    return {last_name(item.func if isinstance(item, ast.Call) else item) for item in block.decorators}


def _command_name(block: CodeBlock) -> str | None:
    """Return the command name in a function's decorator, or None."""
    for item in block.decorators:
        call = item if isinstance(item, ast.Call) else None
        if last_name(call.func if call else item) == "command" and block.owner:
            given = value_of(call.args[0] if call and call.args else keyword(call, "name") if call else None)
            return given if isinstance(given, str) else block.owner.name.replace("_", "-")
    return None


def _flags(block: CodeBlock, command: str, reach: Reach) -> Iterator[Flag]:
    names = names_in(block, reach.modules)
    for call in (item for item in block.decorators if isinstance(item, ast.Call)):
        if last_name(call.func) == "option":
            yield _option(call, command, names, block)
        elif last_name(call.func) == "argument":
            yield _argument(call, command, names, block)
        else:
            yield from _shared(call.func, command, block, reach)
    for item in block.decorators:
        if not isinstance(item, ast.Call):
            yield from _shared(item, command, block, reach)


def _shared(decorator: ast.expr, command: str, block: CodeBlock, reach: Reach) -> Iterator[Flag]:
    """Yield the options that a decorator of the project adds."""
    definition = reach.modules.find_function(block.module, last_name(decorator))
    if definition:
        helper = reach.modules.block(*definition)
        names = names_in(helper, reach.modules)
        for call in helper.calls:
            if last_name(call.func) == "option" and call.args:
                yield _option(call, command, names, helper)


def _option(call: ast.Call, command: str, names: Names, block: CodeBlock) -> Flag:
    words = [word for item in call.args if isinstance(word := value_of(item, names), str)]
    options = [word for word in words if word.startswith("-")]
    first = next((word for word in options if word.startswith("--")), options[0] if options else "")
    on, _, off = first.partition("/")
    default = value_of(keyword(call, "default"), names)
    switch = bool(off) or value_of(keyword(call, "is_flag"), names) is True
    name = next((word for word in words if not word.startswith("-")), on.lstrip("-").replace("-", "_").lower())
    kind, choices = _type(call, names, default)
    return Flag(
        name=name,
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
    nargs = value_of(keyword(call, "nargs"), names)
    many = value_of(keyword(call, "multiple"), names) is True or nargs not in (UNKNOWN, 1)
    choices: tuple[Any, ...] = ()
    if isinstance(node, ast.Call) and last_name(node.func) == "Choice" and node.args:
        listed = value_of(node.args[0], names)
        choices = tuple(known(list(listed))) if isinstance(listed, list | dict) else ()
    named = _TYPES.get(last_name(node.func if isinstance(node, ast.Call) else node))
    kind = named or (type_of(default) if node is None and default is not UNKNOWN else "str")
    return (f"list[{kind}]" if many and not kind.startswith("list") else kind), choices


_CONTEXTS = {"Context", "CallbackParam"}


def read_typer(reach: Reach) -> tuple[list[Flag], list[str]]:
    """Return the flags of functions that `@app.command()` or `typer.run` registers, and the subcommands."""
    functions: list[tuple[SourceModule, Function, str]] = []
    for block in reach.blocks:
        name = _command_name(block)
        if name and isinstance(block.owner, Function):
            functions.append((block.module, block.owner, name))
    for block, call in reach.calls():
        if dotted(call.func) == "typer.run" and call.args:
            definition = reach.modules.find_function(block.module, dotted(call.args[0]))
            if definition:
                functions.append((*definition, definition[1].name))
    several = len(functions) > 1 or any("callback" in _decorator_names(block) for block in reach.blocks)
    flags = [
        replace(_typer_flag(argument, default, module, reach.modules), command=name if several else "")
        for module, function, name in functions
        for argument, default in parameters(function)
        if last_name(argument.annotation) not in _CONTEXTS
    ]
    return flags, [name for _module, _function, name in functions] if several else []


def parameters(function: Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield every parameter with its default or None."""
    plain = [*function.args.posonlyargs, *function.args.args]
    blanks: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    yield from zip(plain, [*blanks, *function.args.defaults], strict=True)
    yield from zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)


def _typer_flag(argument: ast.arg, default: ast.expr | None, module: SourceModule, modules: Modules) -> Flag:
    names = modules.constants_of(module)
    annotated = read_annotation(argument.annotation, module, modules)
    call = next((item for item in annotated.extras if isinstance(item, ast.Call)), None)
    old_style = isinstance(default, ast.Call) and last_name(default.func) in ("Option", "Argument")
    if old_style and isinstance(default, ast.Call):  # `lr: float = Option(0.1, "--lr")`
        call = default
        option_nodes = default.args[1:]
        first = default.args[0] if default.args else keyword(default, "default")
        value = UNKNOWN if isinstance(first, ast.Constant) and first.value is ... else value_of(first, names)
    else:
        option_nodes = call.args if call else []
        value = value_of(default, names)
    words = [word for item in option_nodes if isinstance(word := value_of(item, names), str)]
    option, negative, aliases = _typer_options(argument.arg, words, annotated.type)
    positional = last_name(call.func) == "Argument" if call else default is None
    choices = annotated.choices
    if value is UNKNOWN and choices:  # `Optimizer.adam`: an enum member's name is usually its value
        shown_default = last_name(default) if last_name(default) in choices else None
    else:
        shown_default = known(value)
    return Flag(
        name=argument.arg,
        option="" if positional else option,
        set_by=SetBy.POSITIONAL if positional else SetBy.OPTION,
        type=annotated.type if argument.annotation else type_of(value),
        default=shown_default,
        required=value is UNKNOWN and (default is None or old_style),
        choices=choices,
        help=help_text(keyword(call, "help") if call else None),
        aliases=aliases,
        negative="" if positional else negative,
        takes_value=annotated.type != "bool" or positional,
        where=module.at(argument),
    )


def _typer_options(name: str, words: list[str], kind: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the option, the option that switches it off, and the aliases."""
    own = f"--{name.replace('_', '-')}"
    chosen = next((word for word in words if word.startswith("--")), words[0] if words else own)
    on, _, off = chosen.partition("/")
    if kind == "bool" and not off and not words:
        off = f"--no-{on.removeprefix('--')}"
    return on, off, tuple(word for word in words if word.startswith("-") and word != chosen)


def read_called(reach: Reach, callers: tuple[str, ...], *, dashes: bool) -> list[Flag]:
    """Read the signature behind `tyro.cli(main)`, `tyro.cli(Config)` or `fire.Fire(main)`."""
    flags: list[Flag] = []
    for block, call in reach.calls():
        if dotted(call.func) in callers and call.args:
            target = reach.modules.find(block.module, dotted(call.args[0]))
            if target:
                flags += _flags_of_target(target[1], target[0], reach.modules, dashes=dashes)
    return flags


def _flags_of_target(
    target: ast.AST, module: SourceModule, modules: Modules, *, dashes: bool, prefix: str = ""
) -> Iterator[Flag]:
    if isinstance(target, ast.ClassDef):
        annotations = {
            last_name(item.target): item.annotation for item in reversed(target.body) if isinstance(item, ast.AnnAssign)
        }
        for flag in fields_of(target, module, modules, dashes=dashes):
            nested = modules.find_class(module, dotted(annotations.get(flag.name)))
            if nested and is_dataclass(nested[1]):
                inner_prefix = f"{prefix}{flag.option[2:]}."
                yield from _flags_of_target(nested[1], nested[0], modules, dashes=dashes, prefix=inner_prefix)
                continue
            if prefix:
                name = f"{prefix}{flag.name}".replace("-", "_")
                flag = replace(flag, name=name, option=f"--{prefix}{flag.option[2:]}")
            yield _tyro_switch(flag, dashes=dashes)
    elif isinstance(target, Function):
        for argument, default in parameters(target):
            yield from _flags_of_parameter(argument, default, module, modules, dashes=dashes)


def _tyro_switch(flag: Flag, *, dashes: bool) -> Flag:
    """Return a switch in the form that tyro (both options) or fire (a value) takes."""
    if flag.type != "bool" or not dashes:
        return flag
    return replace(flag, takes_value=False, negative=f"--no-{flag.option[2:]}")


def _flags_of_parameter(
    argument: ast.arg, default: ast.expr | None, module: SourceModule, modules: Modules, *, dashes: bool
) -> Iterator[Flag]:
    nested = modules.find_class(module, dotted(argument.annotation))
    if nested and is_dataclass(nested[1]):
        name = argument.arg.replace("_", "-") if dashes else argument.arg
        yield from _flags_of_target(nested[1], nested[0], modules, dashes=dashes, prefix=f"{name}.")
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
_TRAINER_FLAGS = tuple(
    Flag(name=name, option=f"--{name}", type=kind, default=default, where="lightning.Trainer")
    for name, kind, default in _TRAINER
)


def read_lightning(reach: Reach) -> list[Flag]:
    for block, call in reach.calls():
        if last_name(call.func) in ("LightningCLI", "CLI") or last_name(call.func).endswith("LightningCLI"):
            model = call.args[0] if call.args else keyword(call, "model_class")
            data = call.args[1] if len(call.args) > 1 else keyword(call, "datamodule_class")
            return [
                *_flags_of_class("model", model, block.module, reach.modules),
                *_flags_of_class("data", data, block.module, reach.modules),
                *_TRAINER_FLAGS,
            ]
    return []


def _flags_of_class(prefix: str, node: ast.expr | None, module: SourceModule, modules: Modules) -> Iterator[Flag]:
    """Yield one flag per parameter of the class's `__init__`."""
    definition = modules.find_class(module, dotted(node))
    if not definition:
        return
    source, body = definition[0], definition[1].body
    init = next((item for item in body if isinstance(item, Function) and item.name == "__init__"), None)
    for argument, default in list(parameters(init))[1:] if init else ():
        annotated = read_annotation(argument.annotation, source, modules)
        value = value_of(default, modules.constants_of(source))
        yield Flag(
            name=f"{prefix}.{argument.arg}",
            option=f"--{prefix}.{argument.arg}",
            type=annotated.type if argument.annotation else type_of(value),
            default=known(value),
            required=default is None,
            choices=annotated.choices,
            where=source.at(argument),
        )
