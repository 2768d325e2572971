"""Models at providers, behind our own interface: each tier its own, tried again where that may help."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from importlib import import_module
from types import ModuleType

from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece
from labwright.llm.choice import Choice, Target
from labwright.llm.endpoints import Wire
from labwright.llm.faults import AnswerCut, ModelFault, RateLimited
from labwright.llm.keys import find_key
from labwright.llm.model import Tier, Usage
from labwright.llm.patience import Pace, Patience
from labwright.llm.prices import cost_of


class ProviderChat:
    def __init__(
        self,
        choice: Choice,
        patience: Patience,
        *,
        per_minute: int = 0,
        max_tokens: int = 0,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._choice = choice
        self._patience = patience
        self._paces = {target.endpoint.base_url: Pace(per_minute) for target in choice.values()}
        self._max_tokens = max_tokens
        self._environ = environ

    @property
    def name(self) -> str:
        return self._choice[Tier.DEFAULT].name

    def cost(self, tier: Tier, usage: Usage) -> float | None:
        return cost_of(self._choice[tier], usage)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        target = self._choice[request.tier]
        pace = self._paces[target.endpoint.base_url]
        tries = 0
        while True:
            tries += 1
            await asyncio.sleep(pace.turn())
            begun = False
            try:
                async with aclosing(self._try(target, request)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except ModelFault as fault:
                if begun:  # what was shown cannot be taken back: whoever asked decides
                    raise AnswerCut(model=target.name, said=fault.said) from fault
                pause = self._patience.pause(fault, tries)
                if pause is None:
                    raise
                if isinstance(fault, RateLimited):
                    pace.hold(pause)
                else:
                    await asyncio.sleep(pause)

    async def _try(self, target: Target, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        key = find_key(target.endpoint, self._environ)
        sdk = await asyncio.to_thread(_load_sdk, target.endpoint.wire)
        asked = sdk.pieces(target, key.value if key else "", request, self._patience, self._max_tokens)
        async with aclosing(asked) as pieces:
            async for piece in pieces:
                yield _priced(piece, target) if isinstance(piece, EndPiece) else piece


def _priced(end: EndPiece, target: Target) -> EndPiece:
    return replace(end, usage=end.usage.at(cost_of(target, end.usage)))


def _load_sdk(wire: Wire) -> ModuleType:
    sdk = import_module("labwright.llm.sdk")
    sdk.load(wire)
    return sdk
