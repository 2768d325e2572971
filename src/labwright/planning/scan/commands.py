"""Commands: those that the project declares or uses, and the command for a set of values."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labwright.domain.errors import Invalid
from labwright.planning.scan.facts import EntryPoint, Environment, Flag, LaunchCommand, SetBy
from labwright.planning.scan.literals import UNKNOWN, keyword, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import ProjectTree


class SwitchPlaceholder(str):
    """A placeholder in a command for the words of a switch."""


def run_command(entry: EntryPoint, environment: Environment, values: Mapping[str, Any]) -> str:
    """Return the command of a run: activation, variables, script, subcommand and flags."""
    before: list[str] = []
    variables: list[str] = []
    after: list[str] = []
    for name, value in values.items():
        matches = [flag for flag in entry.flags if name in (flag.name, flag.option, *flag.aliases)]
        matches = [flag for flag in matches if flag.command in ("", entry.subcommand)]
        if not matches:
            flags = ", ".join(flag.name for flag in entry.flags)
            raise Invalid(f"{entry.path} has no flag {name}", hint=f"It has: {flags}.")
        flag = matches[-1]
        words = [shlex.quote(word) for word in words_for(flag, value)]
        if flag.set_by is SetBy.ENVIRONMENT:
            variables += words_for_shell(flag, value)
        elif entry.subcommand and not flag.command and entry.style != "lightning":
            before += words
        else:
            after += words
    script = entry.command
    if environment.chosen and environment.chosen.kind == "system":
        head, _, arguments = script.partition("python ")  # many systems have only `python3`
        script = f"{head}{os.path.basename(environment.chosen.python)} {arguments}" if arguments else script
    subcommand = [entry.subcommand] if entry.subcommand else []
    return environment.activation + " ".join([*variables, script, *before, *subcommand, *after])


def words_for(flag: Flag, value: Any) -> list[str]:
    """Return the words that set the flag to a value; none if the flag must be left out for it."""
    if not flag.is_settable:
        raise Invalid(f"{flag.name} cannot be set from outside", hint=f"It is fixed at {flag.where}: edit it there.")
    if not flag.takes_value and isinstance(value, SwitchPlaceholder):
        return [value]
    if not flag.takes_value:
        if flag.default is True and not flag.negative:
            return [] if value else [flag.option]  # store_false: the option switches off
        word = flag.option if value else flag.negative
        return [word] if word else []
    many = isinstance(value, list | tuple)
    items = [_as_word(item) for item in value] if many else [_as_word(value)]
    if flag.set_by is SetBy.OPTION:
        return [flag.option, *items]
    if flag.set_by is SetBy.POSITIONAL:
        return items
    return [f"{flag.option}[{','.join(items)}]" if many else f"{flag.option}{items[0]}"]


def words_for_shell(flag: Flag, value: Any) -> list[str]:
    """Return `LR=0.1` with only the value quoted; otherwise the shell takes it for a program."""
    return [f"{flag.option}{shlex.quote(word.removeprefix(flag.option))}" for word in words_for(flag, value)]


def _as_word(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


_LINE = re.compile(r"^\s*([\w.-]+)\s*=\s*([\w.]+)\s*:\s*(\w+)")


@dataclass(frozen=True, slots=True)
class ConsoleScript:
    name: str
    path: str
    function: str


def read_console_scripts(tree: ProjectTree, modules: Modules) -> list[ConsoleScript]:
    """Read the console scripts of pyproject.toml, setup.cfg and setup.py."""
    pyproject = read_toml(tree, "pyproject.toml")
    tables = [table(pyproject, "project", "scripts"), table(pyproject, "tool", "poetry", "scripts")]
    lines = [f"{name} = {target}" for scripts in tables for name, target in scripts.items()]
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string((tree.read("setup.cfg") if "setup.cfg" in tree.files else None) or "")
        lines += parser.get("options.entry_points", "console_scripts", fallback="").splitlines()
    except configparser.Error as error:
        tree.skip("setup.cfg", f"cannot be parsed: {str(error).splitlines()[0]}")
    points = setup_argument(modules, "entry_points")
    listed = points.get("console_scripts") if isinstance(points, dict) else None
    lines += [line for line in listed if isinstance(line, str)] if isinstance(listed, list) else []
    scripts = []
    for line in lines:
        match = _LINE.match(line)
        path = modules.resolve("", match.group(2)) if match else None
        if match and path:
            scripts.append(ConsoleScript(match.group(1), path, match.group(3)))
    return list(dict.fromkeys(scripts))


def setup_argument(modules: Modules, name: str) -> Any:
    """Return an argument of `setup()` in setup.py, or UNKNOWN."""
    module = modules.get("setup.py") if "setup.py" in modules.paths else None
    for node in ast.walk(module.tree) if module else ():
        if module and isinstance(node, ast.Call) and last_name(node.func) == "setup":
            return value_of(keyword(node, name), module.constants)
    return UNKNOWN


def read_toml(tree: ProjectTree, path: str) -> dict[str, object]:
    if path not in tree.files:
        return {}
    text = tree.read(path)
    try:
        return tomllib.loads(text) if text else {}
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        tree.skip(path, f"not TOML: {error}")
        return {}


def table(content: object, *keys: str) -> dict[str, object]:
    """Return a nested table, or an empty one if it is missing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


_STARTS = re.compile(
    r"(?:^|[\s;&|(/])(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|sbatch|mpirun|horovodrun"
    r"|(?:uv|poetry|conda|micromamba) run)\s"
)
_LEARNS = re.compile(r"python[\d.]*\s.*train|sbatch|srun|torchrun|accelerate|deepspeed")
_SCRIPT = re.compile(
    r"(^|/)(submit|run|train|launch|sweep|eval|start)[^/]*\.(sh|bash)$|(^|/)scripts/[^/]*\.sh$|\.(sbatch|slurm)$"
)
_README = re.compile(r"^readme(\.\w+)?$", re.IGNORECASE)
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MAX_LAUNCHES, _MAX_LENGTH = 60, 2_000
_NOT_RUNS = ("pip install", "-m pip", "-m venv", "uv pip", "-m pytest", "setup.py install", "-m unittest", "--version")


def read_launches(tree: ProjectTree, earlier_runs: Iterable[str], history: str | None) -> list[LaunchCommand]:
    """Return launch commands: of earlier runs, then of the project's files, then of the shell history if given."""
    launches = [LaunchCommand(command=command[:_MAX_LENGTH], where="runs", kind="run") for command in earlier_runs]
    for path in tree.files:
        launches += _launches_of_file(tree, path)
    if history:
        launches += _launches_of_history(history)
    unique = {launch.command: launch for launch in reversed(launches)}
    return list(reversed(unique.values()))[:_MAX_LAUNCHES]


def _launches_of_history(history: str) -> Iterator[LaunchCommand]:
    """Yield the last twenty lines that look like training."""
    try:
        with open(history, "rb") as file:
            file.seek(max(0, os.path.getsize(history) - 500_000))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return
    lines = [re.sub(r"^: \d+:\d+;", "", line).strip() for line in text.splitlines()]  # zsh puts the time in front
    chosen = [line for line in lines if _LEARNS.search(line) and _is_launch(line)]
    for line in reversed(list(dict.fromkeys(chosen))[-20:]):
        yield LaunchCommand(command=line[:_MAX_LENGTH], where=history, kind="history")


def _launches_of_file(tree: ProjectTree, path: str) -> Iterator[LaunchCommand]:
    name = path.rsplit("/", 1)[-1]
    if _SCRIPT.search(path):
        text = tree.read(path) or ""
        options = tuple(re.findall(r"^#SBATCH\s+(.+?)\s*$", text, re.MULTILINE))
        kind = "slurm" if options or path.endswith((".sbatch", ".slurm")) else "script"
        for number, line in joined_lines(text):
            if _is_launch(line):
                yield LaunchCommand(command=line[:_MAX_LENGTH], where=f"{path}:{number}", kind=kind, options=options)
    elif name in ("Makefile", "makefile", "GNUmakefile", "justfile"):
        target = ""
        for number, line in joined_lines(tree.read(path) or "", keep_indent=True):
            rule = re.match(r"^([\w.-]+)\s*:(?!=)", line)
            target = rule.group(1) if rule else target
            recipe = line.strip().lstrip("@-+")
            if line[:1] in ("\t", " ") and target and _is_launch(recipe):
                yield LaunchCommand(command=recipe[:_MAX_LENGTH], where=f"{path}:{number} ({target})", kind="make")
    elif _README.match(name) and path.count("/") < 2:
        text = tree.read(path) or ""
        for block in _FENCE.finditer(text):
            start = text.count("\n", 0, block.start(1))
            for number, line in joined_lines(block.group(1)):
                command = re.sub(r"^[$>%]\s+", "", line)
                if _is_launch(command):
                    yield LaunchCommand(command=command[:_MAX_LENGTH], where=f"{path}:{start + number}", kind="readme")


def _is_launch(line: str) -> bool:
    return bool(_STARTS.search(f" {line}")) and not line.startswith("#") and not any(word in line for word in _NOT_RUNS)


def joined_lines(text: str, *, keep_indent: bool = False) -> Iterator[tuple[int, str]]:
    """Yield lines with their number; a backslash at the end joins the next line."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        if line.endswith("\\"):
            held += line[:-1].rstrip() + " " if not held else line[:-1].strip() + " "
            continue
        whole = held + (line.strip() if held else line)
        if whole.strip():
            yield first, whole if keep_indent else whole.strip()
        held, first = "", 0
