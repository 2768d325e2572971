"""A model that answers what it was told to, for tests and rehearsals; it keeps what it was asked."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

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
