"""The command line accepts each `labwright …` line in the docs: verbs, options, number of arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from labwright.cli.main import app
from tests.unit.test_docs import ROOT, pages

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(labwright [^`\[]+)`")  # a heading marks optional parts by [ ]
# A sentence may name a verb or an option alone, or have a placeholder for a value.
_SHORTENED = {"MissingParameter", "BadParameter", "BadOptionUsage", "NoArgsIsHelpError"}
_WRITES = "--install-completion"  # replaced as soon as it is read
_OPERATORS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "(", ")", "done", "do"}
WrongUse: Any = typer.BadParameter.__base__  # its own name is not a command
_FAMILY = ("…", "...", "·")  # marks in a line that shows several commands as one


def lines_of(page: Path) -> Iterator[str]:
    blocks = [text for language, text in _BLOCK.findall(page.read_text()) if language in ("", "sh")]
    for block in blocks:
        yield from (line for line in block.replace("\\\n", " ").splitlines() if "labwright " in line)


def commands_in(line: str) -> Iterator[list[str]]:
    """Return the arguments after each `labwright` in a command position."""
    lexer = shlex.shlex(line.replace("$(", " ; ( "), posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.wordchars += "$:,{}%@+"
    found: list[str] | None = None
    first = True
    for word in lexer:
        if set(word) <= set("|&;()<>") or word in _OPERATORS:
            if found is not None:
                yield found
            found, first = None, True
        elif first and word == "labwright":
            found, first = [], False
        else:
            first = False if "=" not in word else first
            if found is not None:
                found.append(word)
    if found is not None:
        yield found


def named_in(page: Path) -> Iterator[str]:
    """Return the commands inside sentences."""
    yield from _INLINE.findall(_BLOCK.sub("", page.read_text()))


def documented(lines: Callable[[Path], Iterable[str]]) -> list[tuple[str, list[str]]]:
    return [
        (f"{page.relative_to(ROOT)}: {line.strip()}", words)
        for page in pages()
        for line in lines(page)
        if not any(mark in line for mark in _FAMILY)
        for words in commands_in(line)
    ]


def parse(words: list[str]) -> None:
    """Parse as the command line does, but execute nothing."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("labwright", list(words))
    while isinstance(command, TyperGroup) and [*context._protected_args, *context.args]:
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, list(words), parent=context)


def test_docs_have_commands() -> None:
    assert len(documented(lines_of)) > 80
    assert len(documented(named_in)) > 200


@pytest.mark.parametrize(("where", "words"), [pytest.param(*found, id=found[0][:80]) for found in documented(lines_of)])
def test_command_in_the_docs_is_valid(where: str, words: list[str]) -> None:
    try:
        parse(words)
    except typer.Exit:  # --version, --help
        return
    except WrongUse as error:
        pytest.fail(f"{where}\n{error.format_message()}")


def test_every_verb_and_option_in_a_sentence_exists() -> None:
    wrong = {}
    for where, words in documented(named_in):
        if _WRITES in words:
            continue
        try:
            parse(words)
        except typer.Exit:
            continue
        except WrongUse as error:
            if type(error).__name__ not in _SHORTENED:
                wrong[where] = error.format_message()
    assert wrong == {}


@pytest.mark.parametrize(
    "line", ["ps --nonsense", "psx", "stop", "sweep shwo", "show a b", "logs a --tail", "plan review"]
)
def test_invalid_commands_are_noticed(line: str) -> None:
    with pytest.raises(WrongUse):
        parse(line.split())
