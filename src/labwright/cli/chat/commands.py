"""`labwright chat`: one question, or a conversation line by line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from labwright.cli.chat.view import ChatView, ask
from labwright.cli.command import INTERRUPTED, with_client
from labwright.cli.references import session_id_of
from labwright.cli.screen import Screen, note
from labwright.client.follow import Frame, follow_session, follow_turn
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, LabwrightError
from labwright.domain.session import Mode

Json = dict[str, Any]
UNANSWERED = 4
_PROMPT = "› "


@with_client
def chat(
    screen: Screen,
    client: LabClient,
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The message. Without it, messages are read line by line.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Continue this conversation: an id, the start of it, or `last`."),
    ] = None,
    mode: Annotated[Mode | None, typer.Option("--mode", help="What the agent may do, from now on.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="If the conversation waits for events, wait too.")] = False,
) -> None:
    """Ctrl-C stops the turn. Exit code 1: the turn failed. Exit code 4: it waits for an approval."""
    talk = _Talk(client, screen, session and session_id_of(client, session), mode, follow)
    if message is None:
        talk.converse()
        return
    code = talk.send(message)
    talk.suggest_continuing()
    raise typer.Exit(code)


class _Talk:
    def __init__(self, client: LabClient, screen: Screen, session: str | None, mode: Mode | None, follow: bool) -> None:
        self._client = client
        self._screen = screen
        self._view = ChatView(screen)
        self._session = session
        self._mode = mode
        self._follow = follow
        self._code = 0
        self._last: Json = {}

    def converse(self) -> None:
        """Read messages line by line. News since the last line is shown first."""
        while (line := _next_line()) is not None:
            self._show_news()
            if line.strip():
                self.send(line.strip())
        note("")
        self.suggest_continuing()

    def _show_news(self) -> None:
        if self._session:
            for piece in self._client.pieces(self._session, self._last.get("seq", 0)):
                self._last = piece
                self._view.show(piece)

    def send(self, message: str) -> int:
        body = {"session_id": self._session, "message": message, "mode": self._mode}
        try:
            self._show(follow_turn(self._client, body, note))
            while self._follow and self._last.get("kind") == "end" and self._last["data"]["why"] == "waiting":
                following = self._last["turn"] + 1
                self._show(follow_session(self._client, self._last["session_id"], self._last["seq"], note, following))
        except KeyboardInterrupt:
            self._stop()
            self._code = INTERRUPTED
        return self._code

    def suggest_continuing(self) -> None:
        if self._session:
            self._screen.suggest(f"Continue: labwright chat --session {self._session}")

    def _show(self, frames: Any) -> None:
        for frame in frames:
            self._take(frame)
            if self._code == UNANSWERED:
                return

    def _take(self, frame: Frame) -> None:
        piece: Json = frame.data
        self._last, self._session = piece, piece["session_id"]
        self._view.show(piece)
        if piece["kind"] == "end":
            self._code = 1 if piece["data"]["why"] == "failed" else 0
        if piece["kind"] == "approval" and piece["data"]["status"] == "pending":
            self._approve(piece["data"])

    def _approve(self, approval: Json) -> None:
        """Ask for approval at a terminal."""
        if not sys.stdin.isatty() or self._screen.as_json:
            self._code = UNANSWERED
            return
        approved = ask("  Allow this?")
        with _ignoring_conflicts():
            self._client.answer_approval(approval["id"], approved=approved, reason="")

    def _stop(self) -> None:
        """Stop the turn. A line-by-line conversation continues with the next message."""
        if self._session:
            with _ignoring_conflicts():
                self._client.stop_session(self._session)
        self._show_news()


@contextlib.contextmanager
def _ignoring_conflicts() -> Iterator[None]:
    """Print a conflict instead of failing: the turn may have ended, or someone else answered."""
    try:
        yield
    except LabwrightError as error:
        if error.code != Conflict.code:
            raise
        note(error.message)


def _next_line() -> str | None:
    """Return the next line, or None at the end. At a terminal the line can be edited, with a history."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return sys.stdin.readline() or None
    with contextlib.suppress(ImportError):  # some Python builds do not have it
        import readline  # noqa: F401 - makes `input` editable
    try:
        return input(_PROMPT)
    except (EOFError, KeyboardInterrupt):
        return None
