"""What a target of a Makefile or justfile runs, with all that it stands on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_FILES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
_TARGET = re.compile(r"^([\w./%-]+(?:\s+[\w./%-]+)*)\s*(?:[\w=\"' ]*)?:(?![=:])\s*([^#=]*)")
_VARIABLE = re.compile(r"^(\w+)\s*[:?]?=\s*(.*)$")
_USE = re.compile(r"\$[({](\w+)[)}]")


def recipe(
    program: str, text_of: Callable[[str], str | None], folder: Path, named: str | None, targets: Sequence[str]
) -> str | None:
    """The lines that would run, as shell; None where there is no such file."""
    names = (named,) if named else _FILES[program]
    text = next((text for name in names if (text := text_of(str(folder / name))) is not None), None)
    if text is None:
        return None
    rules, variables = _read(text)
    wanted = list(targets) or list(rules)[:1]
    return "\n".join(_filled(line, variables) for line in _lines(wanted, rules, set()))


def _read(text: str) -> tuple[dict[str, tuple[list[str], list[str]]], dict[str, str]]:
    """Targets with what they stand on and their lines; and variables."""
    rules: dict[str, tuple[list[str], list[str]]] = {}
    variables: dict[str, str] = {}
    lines: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            lines.append(line.strip().lstrip("@-+"))
        elif variable := _VARIABLE.match(line):
            variables[variable[1]] = variable[2]
        elif target := _TARGET.match(line):
            lines = []
            inline = [part for part in target[2].split(";")[1:] if part]
            for name in target[1].split():
                rules[name] = (target[2].split(";")[0].split(), lines)
            lines += inline
    return rules, variables


def _lines(targets: Sequence[str], rules: dict[str, tuple[list[str], list[str]]], seen: set[str]) -> Iterator[str]:
    for target in targets:
        if target in rules and target not in seen:
            seen.add(target)
            stands_on, lines = rules[target]
            yield from _lines(stands_on, rules, seen)
            yield from lines


def _filled(line: str, variables: dict[str, str]) -> str:
    for _ in range(3):  # variables in variables
        line = _USE.sub(lambda use: variables.get(use[1], use[0]), line)
    return line.replace("$$", "$")
