r"""A sweep's command with placeholders. Every value arrives as one argument, whatever characters it contains.

`{name}` is a placeholder. `{{name}}` and `\{name}` mean the text `{name}`; `${name}` belongs to the shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labwright.domain.command_line import as_text
from labwright.domain.errors import Invalid
from labwright.domain.search.space import NAME

_FIELD = ("base_command",)
_PLACE = re.compile(rf"\{{({NAME})\}}")
_ESCAPED = re.compile(rf"\{{(\{{{NAME}\}})\}}")
_SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_CASE = re.compile(r"\bcase\b")
_UNFINISHED = (";", "&", "|", "\\", "(", "{")


class Quotes(StrEnum):
    """How the shell quotes text at some position."""

    NONE = "none"
    SINGLE = "single"
    DOUBLE = "double"
    UNSURE = "unsure"  # in $(…), `…`, $'…' or a here-document: only values that need no quotes are allowed
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class ValuePlaceholder:
    name: str
    quotes: Quotes


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    parts: tuple[str | ValuePlaceholder, ...]
    appended: tuple[str, ...]  # names without a placeholder
    warnings: tuple[str, ...]

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the command for these values. A name without a value, or with null, is left out."""
        filled = [part if isinstance(part, str) else _filled(part, values[part.name]) for part in self.parts]
        options = [
            f" --{name} {shlex.quote(as_text(values[name]))}" for name in self.appended if values.get(name) is not None
        ]
        return "".join((*filled, *options))


def _filled(place: ValuePlaceholder, value: Any) -> str:
    text = as_text(value)
    if place.quotes is Quotes.SINGLE:
        return text.replace("'", "'\\''")
    if place.quotes is Quotes.DOUBLE:
        return re.sub(r'([\\"$`])', r"\\\1", text)
    if place.quotes is Quotes.NONE:
        return shlex.quote(text)
    if not _SAFE.fullmatch(text):
        raise Invalid(
            f"{text!r} cannot replace {{{place.name}}}: it would need quotes there.",
            hint="Move the placeholder out of $(…), backquotes and here-documents, or remove it to get --name value.",
            field=_FIELD,
        )
    return text


def parse_command(command: str, names: Collection[str], optional: Collection[str]) -> CommandTemplate:
    """Parse a command. `optional` names do not apply to every configuration, so they cannot have a placeholder."""
    if not command.strip():
        raise Invalid("The command is empty.", hint="Write the command that a shell should run.", field=_FIELD)
    reader = _ShellScanner(command.rstrip())
    parts: list[str | ValuePlaceholder] = []
    warnings: list[str] = []
    for piece in reader.pieces():
        if isinstance(piece, ValuePlaceholder) and piece.name not in names:
            piece = _unknown(piece, names, warnings)
        parts.append(piece)
    placed = {part.name for part in parts if isinstance(part, ValuePlaceholder)}
    for name in sorted(placed & set(optional)):
        raise Invalid(
            f"The command uses {{{name}}}, but {name} does not have a value in every configuration.",
            hint=f"Remove {{{name}}}: it is appended as --{name} VALUE where it applies.",
            field=_FIELD,
        )
    appended = tuple(name for name in names if name not in placed)
    if appended:
        _check_can_be_appended_to(reader, appended)
    return CommandTemplate(tuple(parts), appended, tuple(warnings))


def _unknown(place: ValuePlaceholder, names: Collection[str], warnings: list[str]) -> str:
    """Refuse an unknown placeholder, but keep it in single quotes: there it is probably text, as in awk '{print}'."""
    if place.quotes is Quotes.SINGLE:
        warnings.append(
            f"{{{place.name}}} in the command is not a parameter. It is in single quotes, so it stays as text."
        )
        return f"{{{place.name}}}"
    raise Invalid(
        f"{{{place.name}}} in the command does not match a parameter.",
        hint=f"Parameters: {', '.join(names)}. To keep the text, write {{{{{place.name}}}}}.",
        field=_FIELD,
    )


def _check_can_be_appended_to(reader: _ShellScanner, names: tuple[str, ...]) -> None:
    if reader.quotes is not Quotes.NONE or reader.command.endswith(_UNFINISHED):
        raise Invalid(
            f"--{names[0]} cannot be appended to this command.",
            hint=f"Put placeholders into the command: {', '.join(f'{{{name}}}' for name in names)}.",
            field=_FIELD,
        )


class _ShellScanner:
    """Scan a command like a shell, just enough to know where quotes start and end."""

    def __init__(self, command: str) -> None:
        self.command = command
        self._at = 0
        self._stack: list[str] = []  # what is open: ' " $( ` $' <<
        self._opened: list[int] = []
        self._comment = False

    @property
    def quotes(self) -> Quotes:
        if self._comment:
            return Quotes.COMMENT
        if not self._stack:
            return Quotes.NONE
        if len(self._stack) > 1 or self._stack[0] not in "'\"":
            return Quotes.UNSURE
        return Quotes.SINGLE if self._stack[0] == "'" else Quotes.DOUBLE

    def pieces(self) -> Iterator[str | ValuePlaceholder]:
        text = ""
        while self._at < len(self.command):
            if escaped := _ESCAPED.match(self.command, self._at):
                text += escaped.group(1)
                self._at = escaped.end()
            elif (place := _PLACE.match(self.command, self._at)) and self.quotes is not Quotes.COMMENT:
                yield text
                yield ValuePlaceholder(place.group(1), self.quotes)
                text, self._at = "", place.end()
            else:
                began, self._at = self._at, self._at + self._step()
                text += self.command[began : self._at]
        yield text

    def _step(self) -> int:
        """Return how many characters to read together, and track which quotes open and close."""
        top = self._stack[-1] if self._stack else ""
        rest = self.command[self._at : self._at + 3]
        if self._comment:
            self._comment = rest[0] != "\n"
            return 1
        if top == "'":
            return self._close() if rest[0] == "'" else 1
        if rest[0] == "\\":
            return 2
        if rest.startswith("${"):
            return self._shell_variable()
        if top == '"':
            return self._in_double_quotes(rest)
        if top == "$'":
            return self._close() if rest[0] == "'" else 1
        return self._in_plain_text(rest, top)

    def _in_double_quotes(self, rest: str) -> int:
        if rest[0] == '"':
            return self._close()
        return self._open("$(") if rest.startswith("$(") else self._open("`") if rest[0] == "`" else 1

    def _in_plain_text(self, rest: str, top: str) -> int:
        if rest[0] == "`":
            return self._close() if top == "`" else self._open("`")
        if rest[0] == ")" and top == "$(":
            return self._close_substitution()
        if rest == "<<<":
            return 3
        for opening in ("$(", "<(", ">("):
            if rest.startswith(opening):
                return self._open("$(", len(opening))
        if rest[0] == "(" and top == "$(":
            return self._open("$(", 1)
        for opening in ("$'", "<<", "'", '"'):
            if rest.startswith(opening):
                return self._open(opening)
        self._comment = rest[0] == "#" and (self._at == 0 or self.command[self._at - 1] in " \t\n;&|(")
        return 1

    def _open(self, what: str, length: int = 0) -> int:
        self._stack.append(what)
        self._opened.append(self._at)
        return length or len(what)

    def _close(self) -> int:
        self._stack.pop()
        self._opened.pop()
        return 1

    def _close_substitution(self) -> int:
        """Close a substitution. After a `case`, which has its own closing brackets, nothing is certain."""
        if _CASE.search(self.command, self._opened[-1], self._at):
            return 1
        return self._close()

    def _shell_variable(self) -> int:
        depth, at = 0, self._at + 1
        while at < len(self.command):
            depth += {"{": 1, "}": -1}.get(self.command[at], 0)
            at += 1
            if depth == 0:
                break
        return at - self._at
