"""Programs that hand a piece of their own words to a shell: editors, sed, archivers and the like."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labwright.agent.policy.reader import Finding, Reader

EDITORS = frozenset({"vim", "vi", "nvim", "view", "vimdiff", "ex", "ed", "less", "more", "most"})
_ESCAPE = re.compile(r"!\s*(\S.*)|\bte(?:rm(?:inal)?)?\s+(\S.*)")  # :!command, :terminal command
_SEDS_ADDRESS = r"(?:\d+|\$|/(?:\\.|[^/\\\n])*/)"
_SEDS_LINES = rf"(?:{_SEDS_ADDRESS}(?:,\s*{_SEDS_ADDRESS})?\s*!?\s*)?"
_SEDS_E = re.compile(rf"(?:^|[;{{])\s*{_SEDS_LINES}e(?:\s*$|\s+(\S.*))", re.MULTILINE)
_SEDS_S_WITH_E = re.compile(r"s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1[gpiImM\d]*e", re.DOTALL)
DEBUGGERS = ("gdb", "cuda-gdb", "rust-gdb", "lldb")
_DEBUGGERS_LINES = ("-ex", "--ex", "-eval-command", "--eval-command", "-iex", "-o", "--one-line", "-O")
_DEBUGGERS_FILES = ("-x", "--command", "-s", "--source", "-cd", "--cd")
_DEBUGGERS_SHELL = re.compile(r"(?:!|(?:platform )?shell\b)\s*(\S.*)")
_DEBUGGERS_PYTHON = re.compile(r"(?:py|python|pi|python-interactive|script)\s+(\S.*)", re.DOTALL)
_DEBUGGERS_RUN = re.compile(r"(?:r|run|start|starti|set args|process launch --)\s+(\S.*)")
_SOCATS_COMMAND = re.compile(r"(?:EXEC|SYSTEM|SHELL):([^,]+)", re.IGNORECASE)
# Options whose value is a command.
OPTIONS: dict[str, tuple[str, ...]] = {
    "tar": (
        *("--to-command", "-I", "--use-compress-program", "-F", "--info-script", "--new-volume-script"),
        *("--rsh-command", "--checkpoint-action"),
    ),
    "rsync": ("-e", "--rsh"),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "zip": ("-TT", "--unzip-command"),
    "man": ("-P", "--pager"),
    **dict.fromkeys(("ncat", "nc"), ("-e", "-c", "--exec", "--sh-exec")),
}


def editor(reader: Reader, words: list[str], given: str | None) -> Iterator[Finding]:
    for text in (*words[1:], *(given or "").splitlines()):
        if found := _ESCAPE.search(text):
            yield from reader.read(found[1] or found[2])


def sed(reader: Reader, words: list[str], given: str | None) -> Iterator[Finding]:
    for word in words[1:]:
        for found in _SEDS_E.finditer(word.removeprefix("--expression=")):
            yield from reader.read(found[1] or given or "")
        for found in _SEDS_S_WITH_E.finditer(word):
            yield from reader.read(re.sub(r"\\(.)", r"\1", found[2]))


def in_options(reader: Reader, words: list[str], _given: str | None) -> Iterator[Finding]:
    for value in values_of(OPTIONS[os.path.basename(words[0])], words):
        yield from reader.read(value.removeprefix("exec="))


def socat(reader: Reader, words: list[str], _given: str | None) -> Iterator[Finding]:
    for word in words[1:]:
        if command := _SOCATS_COMMAND.match(word):
            yield from reader.read(command[1])


def values_of(options: Iterable[str], words: list[str]) -> list[str]:
    return [value for option in options for value in _values(option, words)]


def _values(option: str, words: list[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word == option:
            yield "".join(words[at + 1 : at + 2])
        elif word.startswith(f"{option}=") or (re.fullmatch(r"-\w", option) and word.startswith(option)):
            yield word.removeprefix(option).removeprefix("=")


def debugger(reader: Reader, words: list[str], given: str | None) -> Iterator[Finding]:
    """The program behind its options, and what it is told to do: run that with words of its own, or ask a shell."""
    program = _behind_options(words[1:])
    yield from reader.run(program, given)
    for line in values_of(_DEBUGGERS_LINES, words):
        if asked := _DEBUGGERS_SHELL.fullmatch(line.strip()):
            yield from reader.read(asked[1])
        elif code := _DEBUGGERS_PYTHON.fullmatch(line.strip()):
            yield from reader.run(["python", "-c", code[1]])
        elif program and (told := _DEBUGGERS_RUN.fullmatch(line.strip())):
            yield from reader.read(f"{shlex.join(program[:1])} {told[1]}")


def _behind_options(words: list[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in (*_DEBUGGERS_LINES, *_DEBUGGERS_FILES) else rest[1:]
    return rest
