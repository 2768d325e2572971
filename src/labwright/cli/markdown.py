"""Markdown on a terminal: a whole document, or an answer whose words are still coming."""

from __future__ import annotations

import re

from labwright.cli.formatting import visible
from labwright.cli.screen import Screen

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_EMPTY_AROUND = re.compile(r"\A(?: *\n)+|\s+\Z")
_CLEAR_LINE = "\x1b[2K"  # line by line: what clears a whole screen at once is kept by some terminals
_CLEAR_LINE_ABOVE = f"\x1b[A{_CLEAR_LINE}"


def show_document(text: str) -> None:
    print(drawn(text), flush=True)


def drawn(text: str) -> str:
    """As it is to stand on the terminal, without empty lines around it."""
    from markdown_it import MarkdownIt
    from rich.console import Console
    from rich.markdown import Markdown

    shown = Markdown("", hyperlinks=False)
    # HTML as the text it is: rich would leave it out, and a reader is to see all of a plan.
    shown.parsed = MarkdownIt("commonmark", {"html": False}).enable("table").parse(visible(text))
    console = Console()
    with console.capture() as captured:
        console.print(shown)
    return _EMPTY_AROUND.sub("", captured.get())


class AnswerOnTerminal:
    """Its words stand there as they come; as soon as a block of them is whole, it is drawn in their place."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._block = ""  # came, and is not whole yet
        self._shown = ""  # of it, as it came

    def add(self, words: str) -> None:
        self._block += words
        if end := end_of_whole_blocks(self._block):
            self._draw(self._block[:end])
            self._screen.output("\n")
            self._block = self._block[end:]
        self._show_as_it_came(self._block)

    def end(self) -> None:
        if self._block.strip():
            self._draw(self._block)
        self._block = ""

    def _draw(self, block: str) -> None:
        rows = _rows_of(self._shown, self._screen.columns)
        if rows < self._screen.rows:
            self._screen.output(f"\r{_CLEAR_LINE}{_CLEAR_LINE_ABOVE * (rows - 1)}{drawn(block)}\n")
        else:  # its beginning has left the screen, and cannot be drawn over
            self._show_as_it_came(f"{block.rstrip()}\n")
        self._shown = ""

    def _show_as_it_came(self, text: str) -> None:
        came = visible(text).expandtabs()
        self._screen.output(came[len(self._shown) :])
        self._shown = came


def end_of_whole_blocks(text: str) -> int:
    """Up to where nothing that still comes can change what it means: the last empty line that a new block follows."""
    end = place = 0
    fence, after_empty = "", False
    for line in text.splitlines(keepends=True):
        if after_empty and not fence and not line[0].isspace():  # what is indented goes on with a list
            end = place
        fence = _fence_after(line, fence)
        after_empty = not line.strip()
        place += len(line)
    return end


def _fence_after(line: str, fence: str) -> str:
    """The fence that code stands behind after this line; empty outside of code."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not line.replace(found[1], "").strip() else fence


def _rows_of(text: str, columns: int) -> int:
    from rich.cells import chop_cells

    return sum(max(1, len(chop_cells(line, columns))) for line in text.split("\n"))
