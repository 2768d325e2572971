"""Markdown on a terminal: a whole document, or an answer that is still arriving."""

from __future__ import annotations

import re

from labwright.cli.formatting import visible
from labwright.cli.screen import Screen

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_EMPTY_AROUND = re.compile(r"\A(?: *\n)+|\s+\Z")
_CLEAR_LINE = "\x1b[2K"  # line by line: what clears a whole screen at once is kept by some terminals
_CLEAR_LINE_ABOVE = f"\x1b[A{_CLEAR_LINE}"


def show_document(text: str) -> None:
    print(rendered(text), flush=True)


def rendered(text: str) -> str:
    """Return the text for the terminal, without empty lines around it."""
    from markdown_it import MarkdownIt
    from rich.console import Console
    from rich.markdown import Markdown

    shown = Markdown("", hyperlinks=False)
    # HTML is shown as text: Rich would leave it out, and a reader must see all of a plan.
    shown.parsed = MarkdownIt("commonmark", {"html": False}).enable("table").parse(visible(text))
    console = Console()
    with console.capture() as captured:
        console.print(shown)
    return _EMPTY_AROUND.sub("", captured.get())


class LiveMarkdown:
    """Prints text as it arrives. When a block is complete, replaces it by the rendered block."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._block = ""  # received, not complete yet
        self._shown = ""  # the part that is printed unrendered

    def add(self, text: str) -> None:
        self._block += text
        if end := end_of_complete_blocks(self._block):
            self._draw(self._block[:end])
            self._screen.write("\n")
            self._block = self._block[end:]
        self._print_raw(self._block)

    def end(self) -> None:
        if self._block.strip():
            self._draw(self._block)
        self._block = ""

    def _draw(self, block: str) -> None:
        rows = _rows_of(self._shown, self._screen.columns)
        if rows < self._screen.rows:
            self._screen.write(f"\r{_CLEAR_LINE}{_CLEAR_LINE_ABOVE * (rows - 1)}{rendered(block)}\n")
        else:  # its start has scrolled off the screen and cannot be replaced
            self._print_raw(f"{block.rstrip()}\n")
        self._shown = ""

    def _print_raw(self, text: str) -> None:
        shown = visible(text).expandtabs()
        self._screen.write(shown[len(self._shown) :])
        self._shown = shown


def end_of_complete_blocks(text: str) -> int:
    """Return the end of the text that later text cannot change: the last empty line before a new block."""
    end = place = 0
    fence, after_empty = "", False
    for line in text.splitlines(keepends=True):
        if after_empty and not fence and not line[0].isspace():  # indented text may continue a list
            end = place
        fence = _fence_after(line, fence)
        after_empty = not line.strip()
        place += len(line)
    return end


def _fence_after(line: str, fence: str) -> str:
    """Return the fence of the code block that is open after this line, or '' outside of code."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not line.replace(found[1], "").strip() else fence


def _rows_of(text: str, columns: int) -> int:
    from rich.cells import chop_cells

    return sum(max(1, len(chop_cells(line, columns))) for line in text.split("\n"))
