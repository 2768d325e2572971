"""The output of a command: JSON, plain text in a pipe, colours and fitted tables on a terminal."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

import typer

from labwright.cli.formatting import one_line, shorten, visible, width
from labwright.domain.errors import Conflict

_ANSI = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bright_black": "90",
}
_GAP = 2
_NARROWEST = 8
_COPIED = frozenset({"command", "digest", "Sign in", "From your machine"})  # facts that must not be broken into lines

Cell = str | tuple[str, str]  # text, or text and style; style names are those of Rich


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its title, and how to get its cell from an item."""

    title: str
    get: str | Callable[[Any], Cell]  # a field's name, or a function
    style: str = ""
    shrinks: bool = False  # may be cut to fit the terminal
    right: bool = False
    optional: bool = False  # left out if it is empty in every row
    min_width: int = 0  # left out on terminals with fewer columns

    def cell(self, item: Any) -> tuple[str, str]:
        text, style = split(item[self.get] if isinstance(self.get, str) else self.get(item))
        return one_line(text), style or self.style


class Screen:
    """Standard output of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.is_terminal = sys.stdout.isatty()
        self._colours = has_colours(sys.stdout)

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns

    @property
    def rows(self) -> int:
        return shutil.get_terminal_size().lines

    def json(self, value: Any) -> None:
        print(json.dumps(value, indent=2, ensure_ascii=_must_escape()), flush=True)

    def json_line(self, value: Any) -> None:
        print(json.dumps(value, ensure_ascii=_must_escape()), flush=True)

    def result(self, value: Any, show: Callable[[Any], None]) -> None:
        """Print a command's result: as JSON, or with `show`."""
        if self.as_json:
            self.json(value)
        else:
            show(value)

    def listing(self, items: Sequence[Any], columns: Sequence[Column], *, empty: str, then: str = "") -> None:
        """Print a list: as JSON, as a table with a suggestion below it, or the sentence `empty`."""
        if self.as_json:
            self.json(items)
        elif not items:
            self.paragraph(empty)
        else:
            self.table(columns, items)
            self.suggest(then)

    def print(self, *cells: Cell) -> None:
        """Print one line."""
        print("".join(self.styled(cell) for cell in cells), flush=True)

    def item(self, item_id: str, *cells: Cell) -> None:
        """Print one line about an item: its id and what happened to it."""
        self.print((item_id, "bold"), "  ", *cells)

    def suggest(self, text: str) -> None:
        """Print the next useful commands, separated by ` · `, if a person is watching. Commands are not broken."""
        if not text or not self.is_terminal or self.as_json:
            return
        lines: list[str] = []
        for part in text.split(" · "):
            if lines and width(f"{lines[-1]} · {part}") <= self.columns:
                lines[-1] += f" · {part}"
            else:
                lines.append(part)
        for line in lines:
            self.print((line, "dim"))

    def write(self, output: str | bytes) -> None:
        """Write text or bytes unchanged."""
        sys.stdout.buffer.write(output if isinstance(output, bytes) else output.encode(errors="replace"))
        sys.stdout.buffer.flush()

    def paragraph(self, text: str) -> None:
        """Print sentences; on a terminal, wrap them between words."""
        for line in text.splitlines():
            shown = one_line(line)
            print("\n".join(wrapped(shown, self.columns) if self.is_terminal else [shown]), flush=True)

    def heading(self, text: str) -> None:
        print(f"\n{self.styled((text, 'bold'))}", flush=True)

    def facts(self, pairs: Sequence[tuple[str, Cell]]) -> None:
        """Print labels and values, one per line, without the empty ones. Long values are wrapped on a terminal."""
        shown = [(label, split(cell)) for label, cell in pairs if split(cell)[0]]
        room = max((len(label) for label, _ in shown), default=0) + _GAP
        for label, (text, style) in shown:
            lines = text.splitlines()
            if self.is_terminal and label not in _COPIED:
                lines = [part for line in lines for part in wrapped(line, self.columns - room)]
            for index, line in enumerate(lines or [""]):
                self.print(((label if index == 0 else "").ljust(room), "dim"), (line, style))

    def table(self, columns: Sequence[Column], items: Sequence[Any]) -> None:
        """Print items as a table: fitted to the terminal, or in full in a pipe."""
        fitting = [column for column in columns if not self.is_terminal or self.columns >= column.min_width]
        cells = [[column.cell(item) for item in items] for column in fitting]
        shown = [
            (column, found)
            for column, found in zip(fitting, cells, strict=True)
            if not column.optional or any(text for text, _ in found)
        ]
        lines = self._fitted_table(shown) if self.is_terminal else _plain_table(shown)
        print("\n".join(line.rstrip() for line in lines), flush=True)

    def _fitted_table(self, columns: list[tuple[Column, list[tuple[str, str]]]]) -> list[str]:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
        for column, _ in columns:
            title = Text(column.title.upper(), no_wrap=True, overflow="ellipsis")
            table.add_column(title, justify="right" if column.right else "left", no_wrap=not column.shrinks)
        for row in zip(*(cells for _, cells in columns), strict=True):
            table.add_row(*(Text(text, style, no_wrap=True, overflow="ellipsis") for text, style in row))
        output = io.StringIO()
        Console(file=output, width=self.columns, color_system="standard" if self._colours else None).print(table)
        return output.getvalue().splitlines()

    def styled(self, cell: Cell) -> str:
        text, style = split(cell)
        return f"\x1b[{_ANSI[style]}m{text}\x1b[0m" if style and self._colours else text

    @contextmanager
    def progress(self) -> Iterator[ProgressDisplay]:
        """Show progress on standard error, if a person is watching."""
        if self.as_json or not sys.stderr.isatty():
            yield ProgressDisplay()
        elif not has_colours(sys.stderr):
            yield _PlainProgress()
        else:
            from rich.console import Console

            console = Console(stderr=True, highlight=False)
            with console.status("") as status:
                yield _LiveProgress(console, status)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show a spinner beside what is being done."""
        with self.progress() as progress:
            progress.now(text)
            yield


class ProgressDisplay:
    """Lines that stay, above one line that is replaced. This one shows nothing."""

    def line(self, text: str, status: str = "", style: str = "", after: str = "") -> None:
        """Add a line."""

    def now(self, text: str) -> None:
        """Replace the last line."""


class _PlainProgress(ProgressDisplay):
    def line(self, text: str, status: str = "", style: str = "", after: str = "") -> None:  # noqa: ARG002 - no colours
        note(f"  {text}{status}{after}".rstrip())


class _LiveProgress(ProgressDisplay):
    def __init__(self, console: Any, status: Any) -> None:
        self._console = console
        self._status = status

    def line(self, text: str, status: str = "", style: str = "", after: str = "") -> None:
        from rich.text import Text

        self._console.print(Text.assemble("  ", text, (status, style), (after, "dim")), soft_wrap=True)

    def now(self, text: str) -> None:
        from rich.text import Text

        self._status.update(Text(shorten(one_line(text), max(20, self._console.width - 4))))


def _plain_table(columns: list[tuple[Column, list[tuple[str, str]]]]) -> list[str]:
    padded = []
    for column, cells in columns:
        texts = [column.title.upper(), *(text for text, _ in cells)]
        room = max(map(width, texts))
        pads = [" " * (room - width(text)) for text in texts]
        padded.append(
            [f"{pad}{text}" if column.right else f"{text}{pad}" for text, pad in zip(texts, pads, strict=True)]
        )
    return [(" " * _GAP).join(row) for row in zip(*padded, strict=True)]


def split(cell: Cell) -> tuple[str, str]:
    return (cell, "") if isinstance(cell, str) else cell


def wrapped(text: str, room: int) -> list[str]:
    """Break text into lines between words. Long words stay whole, so that people can copy them."""
    return textwrap.wrap(text, max(_NARROWEST, room), break_long_words=False, break_on_hyphens=False) or [text]


def make_streams_tolerant() -> None:
    """Replace characters that the terminal cannot show, and open a null output if there is no standard output."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it stays open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _must_escape() -> bool:
    """Whether JSON must escape letters, because the terminal is not UTF-8."""
    return sys.stdout.encoding.lower() != "utf-8"


def discard_output() -> None:
    """Drop buffered output. Otherwise Python would try to write it again at exit, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    note(f"{_styled_error('warning:', '33')} {text}")


def show_error(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        note(json.dumps({"error": {"code": code, "message": message, "hint": hint}}))
        return
    for label, colour, text in (("error:", "31", message), ("hint:", "2", hint)):
        if not text:
            continue
        lines = visible(f"{label} {text}").splitlines()  # an error may quote text of others
        if sys.stderr.isatty():
            lines = [part for line in lines for part in wrapped(line, shutil.get_terminal_size().columns)]
        note(f"{_styled_error(label, colour)}{chr(10).join(lines).removeprefix(label)}")


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _styled_error(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(sys.stderr) else text


def confirm(question: str) -> bool:
    """Ask a yes/no question at the terminal."""
    discard_typed_input()
    return typer.confirm(question, default=False)


def confirm_deletion(question: str) -> None:
    """Exit with 1 unless the user agrees."""
    if not sys.stdin.isatty():
        raise Conflict("Deletion needs confirmation.", hint="Confirm with --yes.")
    if not confirm(question):
        raise typer.Exit(1)


def discard_typed_input() -> None:
    """Drop keys that were pressed before the question was shown."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
