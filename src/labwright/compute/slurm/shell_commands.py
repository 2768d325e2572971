"""The simple commands in a piece of shell, also inside `bash -c`, here-documents and scripts that it calls.

Good enough to find a program's name and options; not a shell: variables stay as they are written.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
class Place:
    folder: Path | None = None  # where scripts are looked for; none: they are not
    script: str = ""  # in which we are; empty: the command itself
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    words: list[str]
    place: Place

    @property
    def program(self) -> str:
        return os.path.basename(self.words[0])


def commands_in(text: str, folder: Path | None = None) -> Iterator[Found]:
    return _search(text, Place(folder=folder))


def _search(text: str, place: Place) -> Iterator[Found]:
    lines = text.replace("\\\n", " ").splitlines()
    while lines:
        words = _take_words(lines)
        simple = list(_simple_commands(words))
        for command in simple:
            found = Found(command, place)
            yield found
            yield from _called(found)
        for body in _take_here_documents(words, lines):
            if any(_reads_its_input(command) for command in simple):
                yield from _deeper(body, place)


def _take_words(lines: list[str]) -> list[str]:
    """The first line, or as many as it takes to close its quotes; of one that is never closed the line alone."""
    for count in range(1, min(len(lines), _LINES_OF_A_QUOTE) + 1):
        try:
            words = _split("\n".join(lines[:count]))
        except ValueError:
            continue
        del lines[:count]
        return words
    return lines.pop(0).split()


def _split(text: str) -> list[str]:
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
    """The bodies that follow a line, taken out of what is left: they are no commands of the text around them."""
    bodies = []
    for _, end in _HERE_DOCUMENT.findall(" ".join(words)):
        closing = next((index for index, line in enumerate(lines) if line.strip() == end), None)
        if closing is not None:
            bodies.append("\n".join(lines[:closing]))
            del lines[: closing + 1]
    return bodies


def _called(found: Found) -> Iterator[Found]:
    """What a command runs that is itself a piece of shell."""
    program, arguments = found.program, found.words[1:]
    if program == "eval":
        yield from _deeper(" ".join(arguments), found.place)
    elif program in _SHELLS:
        yield from _called_by_shell(arguments, found.place)
    elif program in ("source", "."):
        yield from _in_script(arguments[:1], found.place)
    elif "/" in found.words[0]:
        yield from _in_script(found.words[:1], found.place, must_be_shell=True)


def _called_by_shell(arguments: list[str], place: Place) -> Iterator[Found]:
    is_text, rest = _after_shell_options(arguments)
    if is_text:
        yield from _deeper(rest[0], place) if rest else ()
    else:
        yield from _in_script(rest[:1], place)


def _after_shell_options(arguments: list[str]) -> tuple[bool, list[str]]:
    """Whether what follows them is a command (`-c`, `-lc`), and what that is."""
    rest, is_text = list(arguments), False
    while rest and rest[0][:1] in "-+" and rest[0]:
        option = rest.pop(0)
        is_text = is_text or bool(re.fullmatch(r"-[a-z]*c[a-z]*", option))
        if option in _SHELL_OPTIONS_WITH_VALUE or re.fullmatch(r"-[a-z]*o", option):
            rest = rest[1:]
    return is_text, rest


def _reads_its_input(command: list[str]) -> bool:
    """A shell with neither a script nor `-c`."""
    if os.path.basename(command[0]) not in _SHELLS:
        return False
    is_text, rest = _after_shell_options(command[1:])
    return not is_text and (not rest or rest[0].startswith("<") or rest[0] == "-s")


def _in_script(names: list[str], place: Place, *, must_be_shell: bool = False) -> Iterator[Found]:
    if names and place.folder is not None:
        text = _script(place.folder / os.path.expanduser(names[0]), must_be_shell)
        yield from _deeper(text, replace(place, script=names[0]))


def _script(path: Path, must_be_shell: bool) -> str:
    """Its text; nothing if it is not there, not ours to read, or no script."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
            return ""
        content = path.read_bytes()
    except (OSError, ValueError):
        return ""
    if must_be_shell and not (path.suffix == ".sh" or _SHEBANG.match(content)):
        return ""
    return content.decode(errors="replace")


def _deeper(text: str, place: Place) -> Iterator[Found]:
    if place.depth < _DEEPEST:
        yield from _search(text, replace(place, depth=place.depth + 1))
