"""Yes or no from a person at a terminal, to what the screen shows."""

from __future__ import annotations

import sys
import termios

import typer

from labwright.domain.errors import Conflict


def confirm(question: str) -> bool:
    forget_typed_ahead()
    return typer.confirm(question, default=False)


def confirm_deletion(question: str) -> None:
    if not sys.stdin.isatty():
        raise Conflict("Deleting needs a yes.", hint="Add --yes where nobody can be asked.")
    if not confirm(question):
        raise typer.Exit(1)


def forget_typed_ahead() -> None:
    """Keys that were pressed before a question was there are no answer to it."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
