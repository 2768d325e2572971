"""A chat model whose calls are counted, and refused once the session has spent what it may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict

from labwright.llm.chat import ChatModel, ChatPiece, ChatRequest, EndPiece, TextPiece, ThinkingPiece
from labwright.llm.ledger import Ledger
from labwright.llm.model import Tier, Usage

Price = Callable[[Tier, Usage], float | None]
_CHARACTERS_A_TOKEN = 4


class MeteredChat:
    """What a provider does not report is estimated: an answer that was stopped or cut, a server that counts nothing."""

    def __init__(self, chat: ChatModel, ledger: Ledger, price: Price = lambda _tier, _usage: 0.0) -> None:
        self._chat = chat
        self._ledger = ledger
        self._price = price

    @property
    def name(self) -> str:
        return self._chat.name

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        await asyncio.to_thread(self._ledger.check)
        written = 0
        end: EndPiece | None = None
        try:
            async with aclosing(self._chat.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, EndPiece):
                        end = piece
                    elif isinstance(piece, TextPiece | ThinkingPiece):
                        written += len(piece.text)
                    yield piece
        finally:
            if end or written:
                self._record(request, written, end)

    def _record(self, request: ChatRequest, written: int, end: EndPiece | None) -> None:
        """Not awaited, for a few milliseconds: whoever stops an answer stops it while it is being counted, too."""
        model = end.model if end else self._chat.name
        if end and (end.usage.tokens or not written):
            self._ledger.record(request.tier, model, end.usage)
            return
        usage = _estimate(request, written)
        cost = self._price(request.tier, usage)
        self._ledger.record(request.tier, model, usage.at(cost), estimated=True)


def _estimate(request: ChatRequest, written: int) -> Usage:
    asked = len(json.dumps(asdict(request)))
    return Usage(tokens_in=asked // _CHARACTERS_A_TOKEN, tokens_out=written // _CHARACTERS_A_TOKEN)
