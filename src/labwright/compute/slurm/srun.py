"""Slurm commands inside a run's own command: an `srun` sizes the allocation, an `sbatch` is refused.

A small parser finds the simple commands in shell text, also in `bash -c`, in here-documents and in called scripts. It
finds program names and options. It is not a shell and does not expand variables.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from labwright.domain.errors import Invalid

_LONG = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "G": "gpus",
    "p": "partition",
    "A": "account",
    "q": "qos",
    "C": "constraint",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
}
_NUMBERS = frozenset({"nodes", "ntasks", "cpus-per-task", "ntasks-per-node", "cpus-per-gpu"})
_SIZES = frozenset(_LONG.values()) | _NUMBERS
_SIZES |= {"gres", "gpus-per-node", "gpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
_SHORT_WITH_VALUE = frozenset("NncGpACtwxJoeiDmdBLTSMKrq")  # options of srun; other letters take no value
_LONG_SWITCHES = frozenset(
    ["exclusive", "overlap", "label", "unbuffered", "pty", "verbose", "quiet", "overcommit", "exact", "preserve-env"]
)


def srun_sizes(command: str, folder: Path | None = None) -> dict[str, str]:
    """Return the options of all `srun` calls by long name. Of several values, take the largest number or the first."""
    sizes: dict[str, str] = {}
    for call in commands_in(command, folder):
        if call.program == "srun":
            for name, value in sizes_in(call.words[1:]):
                known = sizes.setdefault(name, value)
                if name in _NUMBERS and known.isdigit() and value.isdigit():
                    sizes[name] = str(max(int(known), int(value)))
    return sizes


def refuse_nested(command: str, folder: Path | None = None) -> None:
    """Raise Invalid if the command, or a script that it calls, uses sbatch or salloc."""
    for call in commands_in(command, folder):
        if call.program in ("sbatch", "salloc"):
            where = f"{call.place.script} calls" if call.place.script else "The command calls"
            raise Invalid(
                f"{where} {call.program}; the run itself is sent to Slurm already.",
                hint="Submit the command of the batch script as `command`, and its #SBATCH lines as `gpus`, `cpus`, "
                "`memory_mb`, `time_limit_seconds`, `nodes` and `slurm` {partition, account, qos, constraint, gres, "
                "extra}.",
            )


def sizes_in(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each size option, up to the first word that is not an option."""
    left = list(words)
    while left and left[0].startswith("-") and left[0] != "--":
        word = left.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            value_follows = not equals and name not in _LONG_SWITCHES
        else:
            letter, value = word[1:2], word[2:].removeprefix("=")
            name = _LONG.get(letter, letter)
            value_follows = not value and letter in _SHORT_WITH_VALUE
        if value_follows and left:
            value = left.pop(0)
        if name in _SIZES and value:
            yield name, value


_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_BEFORE_A_COMMAND = frozenset(["exec", "time", "env", "nohup", "command", "then", "do", "else", "!", "{", "sudo", "if"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_ENDS_A_COMMAND = re.compile(r"[;&|()]+")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_SHEBANG = re.compile(rb"#!.*\b(?:ba|da|z|k)?sh\b")
_MAX_DEPTH = 3
_MAX_SCRIPT_BYTES = 1 << 20
_MAX_QUOTE_LINES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptPlace:
    folder: Path | None = None  # where scripts are; None: do not read scripts
    script: str = ""  # the current script; empty: the command itself
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ShellCall:
    words: list[str]
    place: ScriptPlace

    @property
    def program(self) -> str:
        return os.path.basename(self.words[0])


def commands_in(text: str, folder: Path | None = None) -> Iterator[ShellCall]:
    return _search(text, ScriptPlace(folder=folder))


def _search(text: str, place: ScriptPlace) -> Iterator[ShellCall]:
    lines = text.replace("\\\n", " ").splitlines()
    while lines:
        words = _take_words(lines)
        simple = list(_simple_commands(words))
        for command in simple:
            call = ShellCall(command, place)
            yield call
            yield from _called(call)
        for body in _take_here_documents(words, lines):
            if any(_reads_stdin(command) for command in simple):
                yield from _deeper(body, place)


def _take_words(lines: list[str]) -> list[str]:
    """Remove the first line, and the lines up to its closing quote, and return their words."""
    for count in range(1, min(len(lines), _MAX_QUOTE_LINES) + 1):
        try:
            lexer = shlex.shlex("\n".join(lines[:count]), posix=True, punctuation_chars=";&|()")
            lexer.whitespace_split = True
            lexer.commenters = "#"
            words = list(lexer)
        except ValueError:
            continue
        del lines[:count]
        return words
    return lines.pop(0).split()  # the quote is never closed


def _simple_commands(all_words: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for word in [*all_words, ";"]:
        if _ENDS_A_COMMAND.fullmatch(word):
            yield from [words] if words else []
            words = []
        elif words or not (_ASSIGNMENT.match(word) or word in _BEFORE_A_COMMAND):
            words.append(word)


def _take_here_documents(words: list[str], lines: list[str]) -> list[str]:
    """Remove the here-documents that follow a line from the remaining lines, and return them."""
    bodies = []
    for _, end in _HERE_DOCUMENT.findall(" ".join(words)):
        closing = next((index for index, line in enumerate(lines) if line.strip() == end), None)
        if closing is not None:
            bodies.append("\n".join(lines[:closing]))
            del lines[: closing + 1]
    return bodies


def _called(call: ShellCall) -> Iterator[ShellCall]:
    """Yield the commands in shell text or in a script that a command runs."""
    arguments = call.words[1:]
    if call.program == "eval":
        yield from _deeper(" ".join(arguments), call.place)
    elif call.program in _SHELLS:
        is_text, operands = _after_shell_options(arguments)
        if not is_text:
            yield from _in_script(operands[:1], call.place)
        elif operands:
            yield from _deeper(operands[0], call.place)
    elif call.program in ("source", "."):
        yield from _in_script(arguments[:1], call.place)
    elif "/" in call.words[0]:
        yield from _in_script(call.words[:1], call.place, must_be_shell=True)


def _after_shell_options(arguments: list[str]) -> tuple[bool, list[str]]:
    """Return whether the arguments hold shell text (`-c`, `-lc`), and the arguments after the options."""
    left, is_text = list(arguments), False
    while left and left[0][:1] in "-+" and left[0]:
        option = left.pop(0)
        is_text = is_text or bool(re.fullmatch(r"-[a-z]*c[a-z]*", option))
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"-[a-z]*o", option):
            left = left[1:]
    return is_text, left


def _reads_stdin(command: list[str]) -> bool:
    """Return whether this is a shell with neither a script nor `-c`."""
    if os.path.basename(command[0]) not in _SHELLS:
        return False
    is_text, operands = _after_shell_options(command[1:])
    return not is_text and (not operands or operands[0].startswith("<") or operands[0] == "-s")


def _in_script(names: list[str], place: ScriptPlace, *, must_be_shell: bool = False) -> Iterator[ShellCall]:
    """Yield the commands of a script. Skip it if it cannot be read or is not a shell script."""
    if not names or place.folder is None:
        return
    path = place.folder / os.path.expanduser(names[0])
    try:
        if not path.is_file() or path.stat().st_size > _MAX_SCRIPT_BYTES:
            return
        content = path.read_bytes()
    except (OSError, ValueError):
        return
    if not must_be_shell or path.suffix == ".sh" or _SHEBANG.match(content):
        yield from _deeper(content.decode(errors="replace"), replace(place, script=names[0]))


def _deeper(text: str, place: ScriptPlace) -> Iterator[ShellCall]:
    if place.depth < _MAX_DEPTH:
        yield from _search(text, replace(place, depth=place.depth + 1))
