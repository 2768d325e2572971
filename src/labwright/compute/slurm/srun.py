"""Slurm commands inside a run's own command: an `srun` sizes the allocation, an `sbatch` is refused.

A small parser finds the simple commands in shell text, also in `bash -c`, here-documents and scripts that it calls. It
finds a program's name and options; it is not a shell and does not expand variables.
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
    """Return the options of all `srun` calls by long name: of several values the largest number, else the first."""
    found: dict[str, str] = {}
    for call in commands_in(command, folder):
        if call.program == "srun":
            for name, value in sizes_in(call.words[1:]):
                found[name] = _larger(name, found.get(name), value)
    return found


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
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        name, value, takes_next = _split_option(word)
        if takes_next and rest:
            value = rest.pop(0)
        if name in _SIZES and value:
            yield name, value


def _split_option(word: str) -> tuple[str, str, bool]:
    """Return the long name, the value, and whether the value is the next word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, value, not equals and name not in _LONG_SWITCHES
    letter, value = word[1:2], word[2:].removeprefix("=")
    return _LONG.get(letter, letter), value, not value and letter in _SHORT_WITH_VALUE


def _larger(name: str, known: str | None, value: str) -> str:
    if known is None or name not in _NUMBERS or not (known.isdigit() and value.isdigit()):
        return known or value
    return str(max(int(known), int(value)))


_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_BEFORE_A_COMMAND = frozenset(["exec", "time", "env", "nohup", "command", "then", "do", "else", "!", "{", "sudo", "if"])
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_ENDS_A_COMMAND = re.compile(r"[;&|()]+")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_SHEBANG = re.compile(rb"#!.*\b(?:ba|da|z|k)?sh\b")
_DEEPEST = 3
_LARGEST_SCRIPT = 1 << 20
_LINES_OF_A_QUOTE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptPlace:
    folder: Path | None = None  # where scripts are; None: do not read scripts
    script: str = ""  # the current script; empty: the command itself
    depth: int = 0


@dataclass(frozen=True, slots=True)
class FoundCommand:
    words: list[str]
    place: ScriptPlace

    @property
    def program(self) -> str:
        return os.path.basename(self.words[0])


def commands_in(text: str, folder: Path | None = None) -> Iterator[FoundCommand]:
    return _search(text, ScriptPlace(folder=folder))


def _search(text: str, place: ScriptPlace) -> Iterator[FoundCommand]:
    lines = text.replace("\\\n", " ").splitlines()
    while lines:
        words = _take_words(lines)
        simple = list(_simple_commands(words))
        for command in simple:
            found = FoundCommand(command, place)
            yield found
            yield from _called(found)
        for body in _take_here_documents(words, lines):
            if any(_reads_its_input(command) for command in simple):
                yield from _deeper(body, place)


def _take_words(lines: list[str]) -> list[str]:
    """Take the first line, or as many lines as it takes to close its quotes. Never closed: the line alone."""
    for count in range(1, min(len(lines), _LINES_OF_A_QUOTE) + 1):
        try:
            words = _shell_words("\n".join(lines[:count]))
        except ValueError:
            continue
        del lines[:count]
        return words
    return lines.pop(0).split()


def _shell_words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    return list(lexer)


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


def _called(found: FoundCommand) -> Iterator[FoundCommand]:
    """Yield the commands in shell text or a script that a command runs."""
    program, arguments = found.program, found.words[1:]
    if program == "eval":
        yield from _deeper(" ".join(arguments), found.place)
    elif program in _SHELLS:
        yield from _called_by_shell(arguments, found.place)
    elif program in ("source", "."):
        yield from _in_script(arguments[:1], found.place)
    elif "/" in found.words[0]:
        yield from _in_script(found.words[:1], found.place, must_be_shell=True)


def _called_by_shell(arguments: list[str], place: ScriptPlace) -> Iterator[FoundCommand]:
    is_text, rest = _after_shell_options(arguments)
    if is_text:
        yield from _deeper(rest[0], place) if rest else ()
    else:
        yield from _in_script(rest[:1], place)


def _after_shell_options(arguments: list[str]) -> tuple[bool, list[str]]:
    """Return whether the arguments hold shell text (`-c`, `-lc`), and the arguments after the options."""
    rest, is_text = list(arguments), False
    while rest and rest[0][:1] in "-+" and rest[0]:
        option = rest.pop(0)
        is_text = is_text or bool(re.fullmatch(r"-[a-z]*c[a-z]*", option))
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"-[a-z]*o", option):
            rest = rest[1:]
    return is_text, rest


def _reads_its_input(command: list[str]) -> bool:
    """Return whether this is a shell with neither a script nor `-c`."""
    if os.path.basename(command[0]) not in _SHELLS:
        return False
    is_text, rest = _after_shell_options(command[1:])
    return not is_text and (not rest or rest[0].startswith("<") or rest[0] == "-s")


def _in_script(names: list[str], place: ScriptPlace, *, must_be_shell: bool = False) -> Iterator[FoundCommand]:
    if names and place.folder is not None:
        text = _script(place.folder / os.path.expanduser(names[0]), must_be_shell)
        yield from _deeper(text, replace(place, script=names[0]))


def _script(path: Path, must_be_shell: bool) -> str:
    """Return the text of a script, or nothing if it cannot be read or is not a shell script."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
            return ""
        content = path.read_bytes()
    except (OSError, ValueError):
        return ""
    if must_be_shell and not (path.suffix == ".sh" or _SHEBANG.match(content)):
        return ""
    return content.decode(errors="replace")


def _deeper(text: str, place: ScriptPlace) -> Iterator[FoundCommand]:
    if place.depth < _DEEPEST:
        yield from _search(text, replace(place, depth=place.depth + 1))
