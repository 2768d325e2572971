"""All flags of an entry point: one reader for each way to write a command line, asked in turn."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from labwright.planning.scan.absl_flags import read_absl
from labwright.planning.scan.argparse_flags import read_argparse
from labwright.planning.scan.click_flags import read_click
from labwright.planning.scan.dataclass_flags import is_dataclass, read_hf_parser
from labwright.planning.scan.facts import Flag
from labwright.planning.scan.global_flags import read_configurator, read_environment, read_globals
from labwright.planning.scan.hydra_flags import read_hydra, read_overridden_yaml
from labwright.planning.scan.lightning_flags import COMMANDS, read_lightning
from labwright.planning.scan.reach import Reach
from labwright.planning.scan.roles import with_roles
from labwright.planning.scan.signature_flags import read_called, read_typer
from labwright.planning.scan.walk import Tree

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


def read_flags(reach: Reach, tree: Tree) -> CommandLine:
    """By the first reader that finds a command line; then what the environment and the globals add."""
    found = next((line for read in _READERS if (line := read(reach, tree)).style != "plain"), CommandLine())
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


def _hydra(reach: Reach, tree: Tree) -> CommandLine:
    if not reach.imports("hydra"):
        return CommandLine()
    flags, notes = read_hydra(reach, tree)
    return CommandLine("hydra", flags, notes=notes) if flags or notes else CommandLine()


def _hugging_face(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_hf_parser(reach)
    return CommandLine("hf", flags) if flags else CommandLine()


def _lightning(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_lightning(reach)
    return CommandLine("lightning", flags, list(COMMANDS)) if flags else CommandLine()


def _typer(reach: Reach, _tree: Tree) -> CommandLine:
    flags, commands = read_typer(reach) if reach.imports("typer") else ([], [])
    return CommandLine("typer", flags, commands) if flags else CommandLine()


def _click(reach: Reach, _tree: Tree) -> CommandLine:
    flags, commands = read_click(reach) if reach.imports("click") else ([], [])
    return CommandLine("click", flags, commands) if flags else CommandLine()


def _tyro(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_called(reach, ("tyro.cli",), dashes=True)
    return CommandLine("tyro", flags) if flags else CommandLine()


def _fire(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_called(reach, ("fire.Fire", "Fire"), dashes=False)
    return CommandLine("fire", flags) if flags else CommandLine()


def _absl(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_absl(reach)
    return CommandLine("absl", flags) if flags else CommandLine()


def _configurator(reach: Reach, _tree: Tree) -> CommandLine:
    flags = read_configurator(reach)
    return CommandLine("configurator", flags) if flags else CommandLine()


def _argparse(reach: Reach, _tree: Tree) -> CommandLine:
    found = read_argparse(reach)
    if not found.flags and not found.notes:
        return CommandLine()
    style = "dataclass" if found.flags and all(_is_of_a_dataclass(flag, reach) for flag in found.flags) else "argparse"
    return CommandLine(style, found.flags, found.commands, found.notes)


def _is_of_a_dataclass(flag: Flag, reach: Reach) -> bool:
    path, _, line = flag.where.rpartition(":")
    module = reach.modules.get(path)
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)] if module else []
    return any(is_dataclass(node) and node.lineno <= int(line) <= (node.end_lineno or 0) for node in classes)


def _yaml(reach: Reach, tree: Tree) -> CommandLine:
    flags = read_overridden_yaml(reach, tree)
    return CommandLine("yaml", flags) if flags else CommandLine()


_READERS: list[Callable[[Reach, Tree], CommandLine]] = [
    _hydra, _hugging_face, _lightning, _typer, _click, _tyro, _fire, _absl, _configurator, _argparse, _yaml,
]  # fmt: skip
