"""A reply on a real screen: text appears as it streams, and each complete block is formatted."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.cli.markdown import end_of_complete_blocks
from tests.acceptance.test_cli_terminal import COLOUR, at_terminal
from tests.support.live_server import LiveServer
from tests.support.model_server import Turn, model_server
from tests.support.waiting import wait_until

ANSWER = """The best is **lr 0.3**, and this sentence is longer than a line of the screen that it is to be shown on.

| lr | steps |
|---|---|
| 0.3 | many |

- 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 *wide*
- `code`
"""


_SERVERS = itertools.count()
SHOW_PIECES = """
import json, sys
from labwright.cli.chat.view import ChatView
from labwright.cli.screen import Screen

shown = ChatView(Screen())
for text in json.load(open(sys.argv[1])):
    shown.show({"kind": "text", "data": {"text": text}})
shown.show({"kind": "end", "data": {"why": "done"}})
print("That was all.")
"""


@pytest.mark.parametrize("length", [1, 7, 1000])
def test_reply_is_formatted_in_place(tmp_path: Path, length: int) -> None:
    pieces = [ANSWER[first : first + length] for first in range(0, len(ANSWER), length)]
    screen = screen_showing(tmp_path, pieces, rows=30)
    assert not [mark for mark in ("**", "|---", "*wide*", "`code`") if mark in screen], screen
    assert screen.count("The best is lr 0.3, and this sentence") == 1, screen
    assert "\n lr   steps\n" in screen and screen.count("• 漢字") == 1 and "• code" in screen, screen


def test_text_that_has_scrolled_away_stays_unchanged(tmp_path: Path) -> None:
    lines = [f"line **{number}** of a long paragraph\n" for number in range(30)]
    screen = screen_showing(tmp_path, ["# Title\n\n", *lines, "\nThe **end**."], rows=12)
    assert [f"line **{number}** of" in screen for number in range(30)] == [True] * 30, screen
    assert screen.count("line **29**") == 1 and "The end." in screen and "# Title" not in screen, screen


def test_reply_of_a_model_is_formatted(make_server: Callable[..., LiveServer]) -> None:
    with model_server("openai", Turn(text=("The **be", "st** is\n\n", "the `second`."))) as provider:
        address = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-test"}
        server = make_server(LABWRIGHT_MODEL="openai:fake", **address).start()
        shown = COLOUR.sub("", at_terminal(server, "chat", "How is it?"))
    assert "The best is" in shown and "the second." in shown


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One paragraph\n\n", ""),  # the next line may continue the list
        ("One\n\nTwo", "One\n\n"),
        ("One\n\nTwo\n\nThree", "One\n\nTwo\n\n"),
        ("- a\n\n  more of it\n", ""),
        ("- a\n\n- b", "- a\n\n"),
        ("```\ncode\n\nmore\n", ""),
        ("```\ncode\n\n~~~\n\nmore\n```\n\nafter", "```\ncode\n\n~~~\n\nmore\n```\n\n"),
        ("````\n```\n\nstill code\n", ""),
        ("", ""),
    ],
)
def test_block_is_complete_when_nothing_more_can_change_it(text: str, whole: str) -> None:
    assert text[: end_of_complete_blocks(text)] == whole


def screen_showing(folder: Path, pieces: list[str], rows: int) -> str:
    """Return the screen and its scrollback.

    Each call has its own tmux server: one that is being killed still accepts connections for a moment and drops them.
    """
    (folder / "pieces.json").write_text(json.dumps(pieces))
    (folder / "tmux.conf").write_text("set -g remain-on-exit on\n")
    name = f"labwright-test-chat-{os.getpid()}-{next(_SERVERS)}"
    terminal = ["tmux", "-L", name, "-f", str(folder / "tmux.conf")]
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}

    def tmux(*arguments: str) -> str:
        done = subprocess.run([*terminal, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = [sys.executable, "-c", SHOW_PIECES, str(folder / "pieces.json")]
    try:
        tmux("new-session", "-d", "-x", "80", "-y", str(rows), "--", *shown)
        wait_until(lambda: "That was all." in tmux("capture-pane", "-p"), "the end of the answer")
        return tmux("capture-pane", "-p", "-S", "-")
    finally:
        tmux("kill-server")
