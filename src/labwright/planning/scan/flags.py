"""All flags of a script, whichever library defines them; also absl flags, globals and environment variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from labwright.planning.scan.annotations import is_dataclass, read_hf_parser, type_of
from labwright.planning.scan.argparse import read_argparse
from labwright.planning.scan.facts import Flag, SetBy, with_roles
from labwright.planning.scan.hydra import read_hydra, read_overridden_yaml
from labwright.planning.scan.literals import UNKNOWN, dotted, known, last_name, value_of
from labwright.planning.scan.modules import SourceModule
from labwright.planning.scan.reach import Reach
from labwright.planning.scan.signatures import COMMANDS, read_called, read_click, read_lightning, read_typer
from labwright.planning.scan.walk import ProjectTree

_TYPES = {
    "integer": "int",
    "float": "float",
    "string": "str",
    "boolean": "bool",
    "bool": "bool",
    "enum": "str",
    "list": "list[str]",
}


def read_absl(reach: Reach) -> list[Flag]:
    found = []
    for block, call in reach.calls():
        kind = _TYPES.get(last_name(call.func).removeprefix("DEFINE_")) if "DEFINE_" in last_name(call.func) else None
        if kind is None:
            continue
        values = [value_of(item, reach.modules.constants_of(block.module)) for item in call.args]
        if len(values) < 2 or not isinstance(values[0], str):
            continue
        choices = values[2] if last_name(call.func) == "DEFINE_enum" and len(values) > 2 else None
        found.append(
            Flag(
                name=values[0],
                option=f"--{values[0]}",
                type=kind,
                default=known(values[1]),
                required=values[1] is UNKNOWN,
                choices=tuple(choices) if isinstance(choices, list) else (),
                help=values[-1] if isinstance(values[-1], str) and len(values) > 2 else "",
                takes_value=kind != "bool",
                negative=f"--no{values[0]}" if kind == "bool" else "",
                where=block.module.at(call),
            )
        )
    return found


_READS_ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")


def read_environment(module: SourceModule) -> list[Flag]:
    """Find `LR = float(os.environ.get("LR", "0.1"))` anywhere in a module."""
    found: dict[str, Flag] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for flag in _from_environment(node, node.value, module):
                found.setdefault(flag.name, flag)
    return list(found.values())


def _from_environment(node: ast.stmt, value: ast.expr, module: SourceModule) -> Iterator[Flag]:
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
    """Return the name of the environment variable that an expression reads."""
    if isinstance(node, ast.Call) and dotted(node.func) in _READS_ENVIRONMENT and node.args:
        name = value_of(node.args[0])
    elif isinstance(node, ast.Subscript) and dotted(node.value) in ("os.environ", "environ"):
        name = value_of(node.slice)
    else:
        return ""
    return name if isinstance(name, str) else ""


def read_globals(module: SourceModule, *, every_case: bool = False) -> list[Flag]:
    """Return plain top-level values: those in capitals, or all of them for a nanoGPT configurator."""
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
    """Read nanoGPT's globals: `exec(open("configurator.py").read())` lets `--name=value` overwrite those above it."""
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


_MACHINERY = {
    "cuda_visible_devices", "local_rank", "rank", "world_size", "master_addr", "master_port", "home", "path", "user",
    "hostname", "omp_num_threads", "pythonpath", "wandb_api_key", "hf_token", "slurm_job_id", "slurm_procid",
    "tokenizers_parallelism",
}  # fmt: skip


@dataclass(slots=True)
class CommandLine:
    style: str = "plain"
    flags: list[Flag] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_flags(reach: Reach, tree: ProjectTree) -> CommandLine:
    """Use the first reader that finds a command line, then add environment variables and globals."""
    found = next((line for line in _command_lines(reach, tree) if line.flags or line.notes), CommandLine())
    entry = reach.entry
    named = {flag.name.lower() for flag in found.flags}
    environment = [flag for flag in read_environment(entry) if flag.name not in {*named, *_MACHINERY}]
    bare = [flag for flag in read_globals(entry) if flag.name.lower() not in named]
    if found.style == "plain" and (environment or bare):
        found.style = "globals"
    flags = {(flag.command, flag.name): flag for flag in [*bare, *environment, *found.flags]}  # a real flag wins
    order = [*found.flags, *environment, *bare]
    kept = list(dict.fromkeys((flag.command, flag.name) for flag in order))
    found.flags = with_roles([flags[key] for key in kept])
    return found


def _command_lines(reach: Reach, tree: ProjectTree) -> Iterator[CommandLine]:
    """Yield what each library's reader finds, in order of preference. Later readers run only if they are needed."""
    if reach.imports("hydra"):
        flags, notes = read_hydra(reach, tree)
        yield CommandLine("hydra", flags, notes=notes)
    yield CommandLine("hf", read_hf_parser(reach))
    yield CommandLine("lightning", read_lightning(reach), list(COMMANDS))
    if reach.imports("typer"):
        yield CommandLine("typer", *read_typer(reach))
    if reach.imports("click"):
        yield CommandLine("click", *read_click(reach))
    yield CommandLine("tyro", read_called(reach, ("tyro.cli",), dashes=True))
    yield CommandLine("fire", read_called(reach, ("fire.Fire", "Fire"), dashes=False))
    yield CommandLine("absl", read_absl(reach))
    yield CommandLine("configurator", read_configurator(reach))
    found = read_argparse(reach)
    is_dataclass_only = bool(found.flags) and all(_is_of_a_dataclass(flag, reach) for flag in found.flags)
    yield CommandLine("dataclass" if is_dataclass_only else "argparse", found.flags, found.commands, found.notes)
    yield CommandLine("yaml", read_overridden_yaml(reach, tree))


def _is_of_a_dataclass(flag: Flag, reach: Reach) -> bool:
    path, _, line = flag.where.rpartition(":")
    module = reach.modules.get(path)
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)] if module else []
    return any(is_dataclass(node) and node.lineno <= int(line) <= (node.end_lineno or 0) for node in classes)
