"""All flags of a script, whichever library defines them; also absl flags, globals and environment variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
    flags: dict[str, Flag] = {}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for inner in ast.walk(node.value):
            variable = _variable(inner)
            if variable and variable.lower() not in flags:
                default = value_of(node.value, module.constants)
                converter = last_name(node.value.func) if isinstance(node.value, ast.Call) else ""
                flags[variable.lower()] = Flag(
                    name=variable.lower(),
                    option=f"{variable}=",
                    set_by=SetBy.ENVIRONMENT,
                    type=converter if converter in ("int", "float", "bool") else type_of(default),
                    default=known(default),
                    required=isinstance(inner, ast.Subscript),
                    where=module.at(node),
                )
    return list(flags.values())


def _variable(node: ast.AST) -> str:
    """Return the name of the environment variable that an expression reads, or ""."""
    if isinstance(node, ast.Call) and dotted(node.func) in _READS_ENVIRONMENT and node.args:
        name = value_of(node.args[0])
    elif isinstance(node, ast.Subscript) and dotted(node.value) in ("os.environ", "environ"):
        name = value_of(node.slice)
    else:
        return ""
    return name if isinstance(name, str) else ""


def read_globals(module: SourceModule, *, every_case: bool = False) -> list[Flag]:
    """Return plain top-level values: those in capitals, or all of them for a nanoGPT configurator."""
    flags = []
    for name, node in module.constants.items():
        value = value_of(node, module.constants)
        if (
            name.startswith("_")
            or not (name.isupper() or every_case)
            or not isinstance(value, bool | int | float | str)
        ):
            continue
        if not any(_variable(inner) for inner in ast.walk(node)):
            flags.append(
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
    return flags


def read_configurator(reach: Reach) -> list[Flag]:
    """Read nanoGPT's globals: `exec(open("configurator.py").read())` lets `--name=value` overwrite those above it."""
    executed = (node for _block, call in reach.calls() if dotted(call.func) == "exec" for node in ast.walk(call))
    texts = (node.value for node in executed if isinstance(node, ast.Constant))
    if not any(isinstance(text, str) and "configurator" in text for text in texts):
        return []
    flags = read_globals(reach.entry, every_case=True)
    return [replace(flag, option=f"--{flag.name}=", set_by=SetBy.JOINED, note="") for flag in flags]


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
    result = next((line for line in _command_lines(reach, tree) if line.flags or line.notes), CommandLine())
    names = {flag.name.lower() for flag in result.flags}
    environment = [flag for flag in read_environment(reach.entry) if flag.name not in {*names, *_MACHINERY}]
    constants = [flag for flag in read_globals(reach.entry) if flag.name.lower() not in names]
    if result.style == "plain" and (environment or constants):
        result.style = "globals"
    last = {(flag.command, flag.name): flag for flag in [*constants, *environment, *result.flags]}  # a real flag wins
    order = dict.fromkeys((flag.command, flag.name) for flag in [*result.flags, *environment, *constants])
    result.flags = with_roles([last[key] for key in order])
    return result


def _command_lines(reach: Reach, tree: ProjectTree) -> Iterator[CommandLine]:
    """Yield each reader's result in order of preference. Later readers run only if they are needed."""
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
    is_dataclass_only = bool(found.flags) and all(_is_dataclass_field(flag, reach) for flag in found.flags)
    yield CommandLine("dataclass" if is_dataclass_only else "argparse", found.flags, found.commands, found.notes)
    yield CommandLine("yaml", read_overridden_yaml(reach, tree))


def _is_dataclass_field(flag: Flag, reach: Reach) -> bool:
    path, _, line = flag.where.rpartition(":")
    module = reach.modules.get(path)
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)] if module else []
    return any(is_dataclass(node) and node.lineno <= int(line) <= (node.end_lineno or 0) for node in classes)
