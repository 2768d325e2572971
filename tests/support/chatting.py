"""Conversations with a scripted model, on a real database and with real tools."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from labwright.agent.conversation import sessions
from labwright.agent.worker import SessionWorker
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.session import Mode, Piece, PieceKind, Session, SessionStatus
from labwright.llm.chat import ChatModel, ChatPiece, ChatRequest, TextPiece, ToolCall
from labwright.llm.stand_ins import ScriptedChat
from tests.support.waiting import wait_until

_numbers = itertools.count(1)


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call-{next(_numbers)}", name=tool, arguments=arguments)


class Silent:
    """Start to answer and never finish."""

    name = "silent"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        yield TextPiece("Let me see")
        await asyncio.Event().wait()


class Answers:
    """Answer each request with the result of a function."""

    name = "answers"

    def __init__(self, answer: Callable[[ChatRequest], Sequence[Any]]) -> None:
        self._answer = answer
        self.asked: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        self.asked.append(request)
        async for piece in script(self._answer(request)).stream(request):
            yield piece


class Scripts:
    """Use the same model for every session."""

    proposer = "rules"

    def __init__(self, model: ChatModel) -> None:
        self.model = model
        self.allowed: list[str] = []

    def chat(self, session_id: str) -> ChatModel:
        return self.model

    def allow_more(self, session_id: str) -> None:
        self.allowed.append(session_id)


class Talk:
    """One conversation."""

    def __init__(self, lab: Lab, session_id: str | None = None) -> None:
        self.lab = lab
        made = session_id or sessions.create(lab, title=None, mode=Mode.AGENT, actor=PERSON).id
        self.id = made

    @property
    def session(self) -> Session:
        return sessions.get(self.lab, self.id)

    def say(self, message: str, mode: Mode | None = None) -> list[Piece]:
        """Send a message, wait until the turn is idle, and return its pieces."""
        said = sessions.say(self.lab, self.id, message, mode, PERSON)
        self.wait_until_idle(said.turn)
        return self.pieces(after=said.last_seq - 1)

    def wait_until_idle(self, turn: int = 0) -> None:
        def is_idle() -> bool:
            found = self.session
            return found.turn >= turn and found.status is not SessionStatus.WORKING

        wait_until(is_idle, "the turn to rest")

    def pieces(self, kind: PieceKind | None = None, after: int = 0) -> list[Piece]:
        found = sessions.pieces(self.lab, self.id, after, 5000)
        return [piece for piece in found if kind is None or piece.kind is kind]

    def results(self) -> list[str]:
        return [piece.data["text"] for piece in self.pieces(PieceKind.RESULT)]

    def last(self, kind: PieceKind) -> dict[str, Any]:
        return self.pieces(kind)[-1].data


@contextmanager
def talking(lab: Lab, model: ChatModel) -> Iterator[Scripts]:
    """Run a worker that processes turns, as a server does."""
    scripts = Scripts(model)
    worker = SessionWorker(lab, scripts)
    worker.start()
    try:
        yield scripts
    finally:
        worker.close()


def script(*turns: Sequence[Any]) -> ScriptedChat:
    return ScriptedChat(turns)
