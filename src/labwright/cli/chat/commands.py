"""`labwright chat`: one question, or a conversation line by line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from labwright.cli.chat.view import ChatScreen, ask
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.references import session_id_of
from labwright.cli.screen import Screen, note
from labwright.client.follow import follow_session, follow_turn
from labwright.client.lab import LabClient
from labwright.client.sse import Frame
from labwright.domain.errors import Conflict, LabwrightError
from labwright.domain.session import Mode

Json = dict[str, Any]
UNANSWERED = 4
INTERRUPTED = 130
_PROMPT = "› "


def chat(
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="What to say; without it, line by line.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on with this conversation, or with the `last`.")
    ] = None,
    mode: Annotated[Mode | None, typer.Option("--mode", help="What it may do; holds from now on.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="If it waits for something, wait too, and show how it goes on.")
    ] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Ctrl-C stops the turn. The exit code is 1 if the turn failed and 4 if it waits for an approval."""
    client = connect(project)
    talk = _Talk(client, Screen(as_json=as_json), session and session_id_of(client, session), mode, follow)
    if message is None:
        talk.converse()
        return
    code = talk.say(message)
    talk.say_how_to_go_on()
    raise typer.Exit(code)


class _Talk:
    def __init__(self, client: LabClient, screen: Screen, session: str | None, mode: Mode | None, follow: bool) -> None:
        self._client = client
        self._screen = screen
        self._shown = ChatScreen(screen)
        self._session = session
        self._mode = mode
        self._follow = follow
        self._code = 0
        self._last: Json = {}

    def converse(self) -> None:
        """What happened since the last line is shown before the next."""
        while (line := _next_line()) is not None:
            self._show_what_came()
            if line.strip():
                self.say(line.strip())
        note("")
        self.say_how_to_go_on()

    def _show_what_came(self) -> None:
        if self._session:
            for piece in self._client.pieces(self._session, self._last.get("seq", 0)):
                self._last = piece
                self._shown.show(piece)

    def say(self, message: str) -> int:
        said = {"session_id": self._session, "message": message, "mode": self._mode}
        try:
            self._show(follow_turn(self._client, said, note))
            while self._follow and self._waits():
                following = self._last["turn"] + 1
                self._show(follow_session(self._client, self._last["session_id"], self._last["seq"], note, following))
        except KeyboardInterrupt:
            self._stop()
            self._code = INTERRUPTED
        return self._code

    def say_how_to_go_on(self) -> None:
        if self._session:
            self._screen.next(f"Go on with: labwright chat --session {self._session}")

    def _show(self, frames: Any) -> None:
        for frame in frames:
            self._take(frame)
            if self._code == UNANSWERED:
                return

    def _take(self, frame: Frame) -> None:
        piece: Json = frame.data
        self._last, self._session = piece, piece["session_id"]
        self._shown.show(piece)
        if piece["kind"] == "end":
            self._code = 1 if piece["data"]["why"] == "failed" else 0
        if piece["kind"] == "approval" and piece["data"]["status"] == "pending":
            self._approve(piece["data"])

    def _approve(self, approval: Json) -> None:
        """Only whoever sits at the terminal is asked."""
        if not sys.stdin.isatty() or self._screen.as_json:
            self._code = UNANSWERED
            return
        approved = ask("  Allow it?")
        with _unless_too_late():
            self._client.answer_approval(approval["id"], approved=approved, reason="")

    def _waits(self) -> bool:
        return self._last.get("kind") == "end" and self._last["data"]["why"] == "waiting"

    def _stop(self) -> None:
        """The turn alone: whoever talks line by line goes on with the next."""
        if self._session:
            with _unless_too_late():
                self._client.stop_session(self._session)
        self._show_what_came()


@contextlib.contextmanager
def _unless_too_late() -> Iterator[None]:
    """The turn may have ended, the question may have been answered elsewhere: what comes next tells how."""
    try:
        yield
    except LabwrightError as error:
        if error.code != Conflict.code:
            raise
        note(error.message)


def _next_line() -> str | None:
    """None at the end. At a terminal the line can be edited, and earlier ones come back with the arrow keys."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return sys.stdin.readline() or None
    with contextlib.suppress(ImportError):  # some Pythons are built without it
        import readline  # noqa: F401 - `input` uses it once it is there
    try:
        return input(_PROMPT)
    except (EOFError, KeyboardInterrupt):
        return None
