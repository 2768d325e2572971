"""What a command says: JSON, plain text when piped, colours and fitted tables on a terminal."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from labwright.cli.formatting import one_line, shorten, visible, width

_ANSI = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "amber": "33",
    "blue": "34",
    "purple": "35",
    "cyan": "36",
    "grey": "90",
}
_GAP = 2
_NARROWEST = 8
_SENTENCES = frozenset({"why", "goal", "notes", "error"})

Cell = str | tuple[str, str]  # text, or text and style


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    shrinks: bool = False  # may be cut to fit the terminal
    right: bool = False


class Screen:
    """Standard output as the command's reader has it."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.is_terminal = sys.stdout.isatty()
        self._colours = has_colours(sys.stdout)

    def json(self, value: Any) -> None:
        print(json.dumps(value, indent=2, ensure_ascii=_must_escape()), flush=True)

    def json_line(self, value: Any) -> None:
        print(json.dumps(value, ensure_ascii=_must_escape()), flush=True)

    def say(self, *cells: Cell) -> None:
        """One line."""
        print("".join(self.painted(cell) for cell in cells), flush=True)

    def next(self, text: str) -> None:
        """The next useful command, for people only."""
        if self.is_terminal and not self.as_json:
            for line in _commands_in_lines(text, self.columns):
                print(self.painted((line, "dim")), flush=True)

    def output(self, words: str | bytes) -> None:
        """A run's own words, as they are."""
        sys.stdout.buffer.write(words if isinstance(words, bytes) else words.encode(errors="replace"))
        sys.stdout.buffer.flush()

    def prose(self, text: str) -> None:
        """Sentences: on a terminal they break between words."""
        for line in text.splitlines():
            shown = one_line(line)
            print("\n".join(folded(shown, self.columns) if self.is_terminal else [shown]), flush=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        cells = [[(one_line(text), style) for text, style in map(_split, row)] for row in rows]
        natural = [
            max([width(column.title), *(width(row[index][0]) for row in cells)]) for index, column in enumerate(columns)
        ]
        widths = fitted(natural, [column.shrinks for column in columns], self.columns if self.is_terminal else None)
        self._row([(column.title.upper(), "dim") for column in columns], columns, widths)
        for row in cells:
            self._row(row, columns, widths)

    def facts(self, pairs: Sequence[tuple[str, Cell]]) -> None:
        """Names and values, one a line; what is empty is left out. Sentences break between words, the rest is for
        copying and stays whole."""
        shown = [(label, _split(cell)) for label, cell in pairs if _split(cell)[0]]
        room = max((len(label) for label, _ in shown), default=0) + _GAP
        for label, (text, style) in shown:
            lines = text.splitlines()
            if self.is_terminal and label in _SENTENCES:
                lines = [part for line in lines for part in folded(line, self.columns - room)]
            first, *more = lines or [""]
            self.say((label.ljust(room), "dim"), (first, style))
            for line in more:
                self.say(" " * room, (line, style))

    def heading(self, text: str) -> None:
        print(f"\n{self.painted((text, 'bold'))}", flush=True)

    def painted(self, cell: Cell) -> str:
        text, style = _split(cell)
        return f"\x1b[{_ANSI[style]}m{text}\x1b[0m" if style and self._colours else text

    def _row(self, row: Sequence[tuple[str, str]], columns: Sequence[Column], widths: Sequence[int]) -> None:
        parts = []
        for (text, style), column, room in zip(row, columns, widths, strict=True):
            short = shorten(text, room)
            pad = " " * (room - width(short))
            painted = self.painted((short, style))
            parts.append(f"{pad}{painted}" if column.right else f"{painted}{pad}")
        print((" " * _GAP).join(parts).rstrip(), flush=True)

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns

    @property
    def rows(self) -> int:
        return shutil.get_terminal_size().lines

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """A spinner beside what is being waited for; silent when nobody watches."""
        if self.as_json or not has_colours(sys.stderr):
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield


def make_streams_patient() -> None:
    """A terminal that does not speak UTF-8 shows what it can; where nobody listens there is still a place to write."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it is for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _must_escape() -> bool:
    """JSON has a way to write every letter where the terminal has not."""
    return sys.stdout.encoding.lower() != "utf-8"


def drop_output() -> None:
    """What could not be written would be tried again at the end of the process, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def folded(text: str, room: int) -> list[str]:
    """Lines that break between words; a word that is too long stays whole, since somebody may want to copy it."""
    return textwrap.wrap(text, max(_NARROWEST, room), break_long_words=False, break_on_hyphens=False) or [text]


def _commands_in_lines(text: str, room: int) -> list[str]:
    """Commands that `·` parts, as many in a line as fit; none is broken, since people copy them."""
    lines: list[str] = []
    for part in text.split(" · "):
        if lines and width(f"{lines[-1]} · {part}") <= room:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def fitted(natural: Sequence[int], shrinks: Sequence[bool], room: int | None) -> list[int]:
    """Widths that fit: the widest of those that may shrink gives way first."""
    widths = list(natural)
    if room is None:
        return widths
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        wide = [index for index, may in enumerate(shrinks) if may and widths[index] > _NARROWEST]
        if not wide:
            break
        widths[max(wide, key=lambda index: widths[index])] -= 1
    return widths


def warn(text: str) -> None:
    print(f"{_painted_on(sys.stderr, 'warning:', '33')} {text}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show_error(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": {"code": code, "message": message, "hint": hint}}), file=sys.stderr)
        return
    _complain("error:", "31", message)
    if hint:
        _complain("hint:", "2", hint)


def _complain(label: str, colour: str, text: str) -> None:
    lines = visible(f"{label} {text}").splitlines()  # an error may quote what somebody else wrote
    if sys.stderr.isatty():
        lines = [part for line in lines for part in folded(line, shutil.get_terminal_size().columns)]
    shown = "\n".join(lines)
    print(f"{_painted_on(sys.stderr, label, colour)}{shown.removeprefix(label)}", file=sys.stderr)


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _painted_on(stream: TextIO, text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(stream) else text


def _split(cell: Cell) -> tuple[str, str]:
    return (cell, "") if isinstance(cell, str) else cell
