"""How the project was started before: Slurm and shell scripts, Makefile targets, README blocks, runs, shell history."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from labwright.planning.scan.facts import Launch
from labwright.planning.scan.walk import Tree

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


def read_launches(tree: Tree, earlier_runs: Iterable[str], history: str | None) -> list[Launch]:
    ""
    "Newest knowledge first: earlier runs, then the project's own files, then the history of a shell if it is given."
    ""
    runs = [Launch(command=command[:_LONGEST], where="runs", kind="run") for command in earlier_runs]
    files = [launch for path in tree.files for launch in _of_file(tree, path)]
    found = {launch.command: launch for launch in reversed([*runs, *files, *_of_history(history)])}
    return list(reversed(found.values()))[:_MOST]


def _of_file(tree: Tree, path: str) -> Iterator[Launch]:
    name = path.rsplit("/", 1)[-1]
    if _SCRIPT.search(path):
        yield from _of_script(path, tree.read(path) or "")
    elif name in ("Makefile", "makefile", "GNUmakefile", "justfile"):
        yield from _of_makefile(path, tree.read(path) or "")
    elif _README.match(name) and path.count("/") < 2:
        yield from _of_readme(path, tree.read(path) or "")


def _of_script(path: str, text: str) -> Iterator[Launch]:
    options = tuple(re.findall(r"^#SBATCH\s+(.+?)\s*$", text, re.MULTILINE))
    kind = "slurm" if options or path.endswith((".sbatch", ".slurm")) else "script"
    for number, line in joined_lines(text):
        if _is_launch(line):
            yield Launch(command=line[:_LONGEST], where=f"{path}:{number}", kind=kind, options=options)


def _of_makefile(path: str, text: str) -> Iterator[Launch]:
    target = ""
    for number, line in joined_lines(text, keep_indent=True):
        named = re.match(r"^([\w.-]+)\s*:(?!=)", line)
        target = named.group(1) if named else target
        recipe = line.strip().lstrip("@-+")
        if line[:1] in ("\t", " ") and target and _is_launch(recipe):
            yield Launch(command=recipe[:_LONGEST], where=f"{path}:{number} ({target})", kind="make")


def _of_readme(path: str, text: str) -> Iterator[Launch]:
    for block in _FENCE.finditer(text):
        start = text.count("\n", 0, block.start(1))
        for number, line in joined_lines(block.group(1)):
            plain = re.sub(r"^[$>%]\s+", "", line)
            if _is_launch(plain):
                yield Launch(command=plain[:_LONGEST], where=f"{path}:{start + number}", kind="readme")


def _of_history(history: str | None) -> Iterator[Launch]:
    """The last twenty lines of a shell's history that look like training."""
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
        yield Launch(command=line[:_LONGEST], where=history, kind="history")


def _is_launch(line: str) -> bool:
    return bool(_STARTS.search(f" {line}")) and not line.startswith("#") and not any(word in line for word in _NOT_RUNS)


def joined_lines(text: str, *, keep_indent: bool = False) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first: a backslash at the end joins the next."""
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
