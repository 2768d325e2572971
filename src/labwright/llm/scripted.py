"""Models that answer what they were told to, for tests and rehearsals; they keep what they were asked."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from threading import Lock
from typing import Any

from labwright.llm.chat import CallPiece, ChatPiece, ChatRequest, EndPiece, TextPiece, ToolCall
from labwright.llm.model import Answer, Model, Request, Usage, Value

_NOTHING = object()


class ScriptedModel:
    name = "scripted"

    def __init__(self, answers: Mapping[str, Iterable[Any]], otherwise: Model | None = None) -> None:
        """`answers` by node, or by `node:task`, used up one by one; where none is left, `otherwise` answers."""
        self._left = defaultdict(deque, {node: deque(values) for node, values in answers.items()})
        self._otherwise = otherwise
        self._lock = Lock()  # several tasks are asked for at once
        self.asked: list[Request[Any]] = []

    def answer(self, request: Request[Value]) -> Answer[Value]:
        with self._lock:
            self.asked.append(request)
            of_task = self._left[f"{request.node}:{request.given.get('task_id', '')}"]
            left = of_task or self._left[request.node]
            value: Any = left.popleft() if left else _NOTHING
        if value is not _NOTHING:
            if isinstance(value, Exception):
                raise value
            return Answer(value=value, model=self.name, usage=Usage(tokens_in=1, tokens_out=1))
        if self._otherwise is None:
            raise LookupError(f"the script has no answer left for {request.node}")
        return self._otherwise.answer(request)


class ScriptedChat:
    """Answers in the pieces that its script holds, turn by turn. An exception among them is raised in its place."""

    name = "scripted"

    def __init__(self, turns: Iterable[Iterable[ChatPiece | str | ToolCall | Exception]]) -> None:
        """A text stands for a piece of text and a call for a piece with it; an end that is missing is added."""
        self._turns = deque(list(turn) for turn in turns)
        self.asked: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        self.asked.append(request)
        if not self._turns:
            raise LookupError(f"the script has no turn left; it was asked {len(self.asked)} times")
        turn = self._turns.popleft()
        for step in turn:
            if isinstance(step, Exception):
                raise step
            yield TextPiece(step) if isinstance(step, str) else CallPiece(step) if isinstance(step, ToolCall) else step
            await asyncio.sleep(0)  # as a real one: others have their turn between two pieces
        if not any(isinstance(step, EndPiece) for step in turn):
            calls = any(isinstance(step, ToolCall | CallPiece) for step in turn)
            yield EndPiece(Usage(tokens_in=1, tokens_out=1), self.name, "calls" if calls else "end")
