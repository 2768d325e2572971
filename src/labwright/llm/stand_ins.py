"""Stand-ins for language models: fixed rules for work without a model, and scripted answers for tests."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from threading import Lock
from typing import Any

from labwright.domain.errors import Invalid
from labwright.llm.chat import CallPiece, ChatPiece, ChatRequest, EndPiece, TextPiece, ToolCall
from labwright.llm.model import Model, ModelAnswer, Request, Usage, Value

Rule = Callable[[Request[Any]], Any]
OFFLINE_NAME = "offline rules (not a language model)"
_NO_ANSWER = object()


class NoRule(Invalid):
    """No offline rule covers this. It needs a language model."""


class OfflineModel:
    """Answer by fixed rules, without a key, a network or a cost."""

    name = OFFLINE_NAME

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = dict(rules)  # by node

    def answer(self, request: Request[Value]) -> ModelAnswer[Value]:
        rule = self._rules.get(request.node)
        if rule is None:
            raise NoRule(f"The offline rules have no answer for {request.node}.", hint="Configure a language model.")
        value = rule(request)
        if not isinstance(value, request.value_type):
            expected = request.value_type.__name__
            raise TypeError(f"the rule for {request.node} returned {type(value).__name__}, not {expected}")
        return ModelAnswer(value=value, model=self.name)


class ScriptedModel:
    """Return prepared answers and record the requests."""

    name = "scripted"

    def __init__(self, answers: Mapping[str, Iterable[Any]], fallback: Model | None = None) -> None:
        """`answers` are keyed by node, or by `node:task`, and used up in order; then `fallback` answers."""
        self._left = defaultdict(deque, {node: deque(values) for node, values in answers.items()})
        self._fallback = fallback
        self._lock = Lock()  # tasks may be requested concurrently
        self.asked: list[Request[Any]] = []

    def answer(self, request: Request[Value]) -> ModelAnswer[Value]:
        with self._lock:
            self.asked.append(request)
            of_task = self._left[f"{request.node}:{request.given.get('task_id', '')}"]
            left = of_task or self._left[request.node]
            value: Any = left.popleft() if left else _NO_ANSWER
        if value is not _NO_ANSWER:
            if isinstance(value, Exception):
                raise value
            return ModelAnswer(value=value, model=self.name, usage=Usage(tokens_in=1, tokens_out=1))
        if self._fallback is None:
            raise LookupError(f"the script has no answer left for {request.node}")
        return self._fallback.answer(request)


class ScriptedChat:
    """Replay prepared pieces, one list per turn, and record the requests. An exception in a list is raised."""

    name = "scripted"

    def __init__(self, turns: Iterable[Iterable[ChatPiece | str | ToolCall | Exception]]) -> None:
        """A string is short for a text piece and a tool call for a call piece. A missing end piece is added."""
        self._turns = deque(list(turn) for turn in turns)
        self.asked: list[ChatRequest] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        self.asked.append(request)
        if not self._turns:
            raise LookupError(f"the script has no turn left after {len(self.asked)} requests")
        turn = self._turns.popleft()
        for step in turn:
            if isinstance(step, Exception):
                raise step
            yield TextPiece(step) if isinstance(step, str) else CallPiece(step) if isinstance(step, ToolCall) else step
            await asyncio.sleep(0)  # like a real model: other tasks run between two pieces
        if not any(isinstance(step, EndPiece) for step in turn):
            calls = any(isinstance(step, ToolCall | CallPiece) for step in turn)
            yield EndPiece(Usage(tokens_in=1, tokens_out=1), self.name, "calls" if calls else "end")
