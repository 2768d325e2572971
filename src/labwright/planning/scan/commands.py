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
from labwright.planning.scan.literals import keyword, last_name, value_of
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import ProjectTree


class SwitchPlaceholder(str):
    """A placeholder in a command for the words of a switch."""


def run_command(entry: EntryPoint, environment: Environment, values: Mapping[str, Any]) -> str:
    """Return the command of a run: activation, variables, script, subcommand and flags."""
    subcommand = entry.subcommand
    before: list[str] = []
    variables: list[str] = []
    after: list[str] = []
    for name, value in values.items():
        flag = _flag(entry, name)
        words = [shlex.quote(word) for word in words_for(flag, value)]
        if flag.set_by is SetBy.ENVIRONMENT:
            variables += words_for_shell(flag, value)
        elif subcommand and not flag.command and entry.style != "lightning":
            before += words
        else:
            after += words
    script = _python_there(entry.command, environment)
    words = [*variables, script, *before, *([subcommand] if subcommand else []), *after]
    return environment.activation + " ".join(words)


def _flag(entry: EntryPoint, name: str) -> Flag:
    named = [flag for flag in entry.flags if name in (flag.name, flag.option, *flag.aliases)]
    fitting = [flag for flag in named if flag.command in ("", entry.subcommand)]
    if not fitting:
        raise Invalid(
            f"{entry.path} has no flag {name}", hint=f"It has: {', '.join(flag.name for flag in entry.flags)}."
        )
    return fitting[-1]


def _python_there(command: str, environment: Environment) -> str:
    """Use `python` inside an environment, and `python3` outside, as many systems have only that."""
    chosen = environment.chosen
    if chosen and chosen.kind == "system":
        head, _, rest = command.partition("python ")
        return f"{head}{os.path.basename(chosen.python)} {rest}" if rest else command
    return command


def words_for(flag: Flag, value: Any) -> list[str]:
    """Return the words that set the flag to a value; none if leaving it out does."""
    if not flag.is_settable:
        raise Invalid(f"{flag.name} cannot be set from outside", hint=f"It is fixed at {flag.where}: edit it there.")
    if not flag.takes_value and isinstance(value, SwitchPlaceholder):
        return [value]
    if not flag.takes_value:
        return _switch(flag, on=bool(value))
    many = isinstance(value, list | tuple)
    items = [_typed(item) for item in value] if many else [_typed(value)]
    if flag.set_by is SetBy.OPTION:
        return [flag.option, *items]
    if flag.set_by is SetBy.POSITIONAL:
        return items
    return [f"{flag.option}[{','.join(items)}]" if many else f"{flag.option}{items[0]}"]


def words_for_shell(flag: Flag, value: Any) -> list[str]:
    """Return `LR=0.1` with only the value quoted; otherwise the shell takes it for a program."""
    return [f"{flag.option}{shlex.quote(word.removeprefix(flag.option))}" for word in words_for(flag, value)]


def _switch(flag: Flag, *, on: bool) -> list[str]:
    if flag.default is True and not flag.negative:
        return [] if on else [flag.option]  # store_false: the option switches off
    if on:
        return [flag.option]
    return [flag.negative] if flag.negative else []


def _typed(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


_LINE = re.compile(r"^\s*([\w.-]+)\s*=\s*([\w.]+)\s*:\s*(\w+)")


@dataclass(frozen=True, slots=True)
class ConsoleScript:
    name: str
    path: str
    function: str


def read_console_scripts(tree: ProjectTree, modules: Modules) -> list[ConsoleScript]:
    lines = [*_of_pyproject(tree), *_of_setup_cfg(tree), *_of_setup_py(modules)]
    found = []
    for line in lines:
        match = _LINE.match(line)
        path = modules.resolve("", match.group(2)) if match else None
        if match and path:
            found.append(ConsoleScript(match.group(1), path, match.group(3)))
    return list(dict.fromkeys(found))


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


def _of_pyproject(tree: ProjectTree) -> list[str]:
    content = read_toml(tree, "pyproject.toml")
    tables = [table(content, "project", "scripts"), table(content, "tool", "poetry", "scripts")]
    return [f"{name} = {target}" for found in tables for name, target in found.items()]


def _of_setup_cfg(tree: ProjectTree) -> list[str]:
    text = tree.read("setup.cfg") if "setup.cfg" in tree.files else None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text or "")
    except configparser.Error as error:
        tree.skip("setup.cfg", f"cannot be parsed: {str(error).splitlines()[0]}")
        return []
    return parser.get("options.entry_points", "console_scripts", fallback="").splitlines()


def _of_setup_py(modules: Modules) -> list[str]:
    module = modules.get("setup.py") if "setup.py" in modules.paths else None
    for node in ast.walk(module.tree) if module else ():
        if isinstance(node, ast.Call) and last_name(node.func) == "setup":
            points = value_of(keyword(node, "entry_points"), module.constants if module else None)
            listed = points.get("console_scripts") if isinstance(points, dict) else None
            return [line for line in listed if isinstance(line, str)] if isinstance(listed, list) else []
    return []


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
_MOST, _LONGEST = 60, 2_000
_NOT_RUNS = ("pip install", "-m pip", "-m venv", "uv pip", "-m pytest", "setup.py install", "-m unittest", "--version")


def read_launches(tree: ProjectTree, earlier_runs: Iterable[str], history: str | None) -> list[LaunchCommand]:
    ""
    "Newest knowledge first: earlier runs, then the project's own files, then the history of a shell if it is given."
    ""
    runs = [LaunchCommand(command=command[:_LONGEST], where="runs", kind="run") for command in earlier_runs]
    files = [launch for path in tree.files for launch in _of_file(tree, path)]
    found = {launch.command: launch for launch in reversed([*runs, *files, *_of_history(history)])}
    return list(reversed(found.values()))[:_MOST]


def _of_file(tree: ProjectTree, path: str) -> Iterator[LaunchCommand]:
    name = path.rsplit("/", 1)[-1]
    if _SCRIPT.search(path):
        yield from _of_script(path, tree.read(path) or "")
    elif name in ("Makefile", "makefile", "GNUmakefile", "justfile"):
        yield from _of_makefile(path, tree.read(path) or "")
    elif _README.match(name) and path.count("/") < 2:
        yield from _of_readme(path, tree.read(path) or "")


def _of_script(path: str, text: str) -> Iterator[LaunchCommand]:
    options = tuple(re.findall(r"^#SBATCH\s+(.+?)\s*$", text, re.MULTILINE))
    kind = "slurm" if options or path.endswith((".sbatch", ".slurm")) else "script"
    for number, line in joined_lines(text):
        if _is_launch(line):
            yield LaunchCommand(command=line[:_LONGEST], where=f"{path}:{number}", kind=kind, options=options)


def _of_makefile(path: str, text: str) -> Iterator[LaunchCommand]:
    target = ""
    for number, line in joined_lines(text, keep_indent=True):
        named = re.match(r"^([\w.-]+)\s*:(?!=)", line)
        target = named.group(1) if named else target
        recipe = line.strip().lstrip("@-+")
        if line[:1] in ("\t", " ") and target and _is_launch(recipe):
            yield LaunchCommand(command=recipe[:_LONGEST], where=f"{path}:{number} ({target})", kind="make")


def _of_readme(path: str, text: str) -> Iterator[LaunchCommand]:
    for block in _FENCE.finditer(text):
        start = text.count("\n", 0, block.start(1))
        for number, line in joined_lines(block.group(1)):
            plain = re.sub(r"^[$>%]\s+", "", line)
            if _is_launch(plain):
                yield LaunchCommand(command=plain[:_LONGEST], where=f"{path}:{start + number}", kind="readme")


def _of_history(history: str | None) -> Iterator[LaunchCommand]:
    """Return the last twenty history lines that look like training."""
    if not history:
        return
    try:
        with open(history, "rb") as file:
            file.seek(max(0, os.path.getsize(history) - 500_000))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return
    lines = [re.sub(r"^: \d+:\d+;", "", line).strip() for line in text.splitlines()]  # zsh puts the time in front
    chosen = [line for line in lines if _LEARNS.search(line) and _is_launch(line)]
    for line in reversed(list(dict.fromkeys(chosen))[-20:]):
        yield LaunchCommand(command=line[:_LONGEST], where=history, kind="history")


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
