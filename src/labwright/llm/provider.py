"""Models at providers: one target per tier, with rate limits, timeouts and retries."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece
from labwright.llm.choice import Target, TierTargets, cost_of
from labwright.llm.endpoints import Wire, find_key
from labwright.llm.faults import AnswerCut, ModelFault, RateLimited
from labwright.llm.model import Tier, Usage
from labwright.settings import Settings

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_REQUESTED_SECONDS = 300.0  # give up if the provider asks us to wait longer


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Timeouts of one attempt, how many retries follow, and the backoff between them."""

    silence_seconds: float
    answer_seconds: float
    retries: int
    first_pause_seconds: float = _FIRST_PAUSE_SECONDS

    @classmethod
    def from_settings(cls, settings: Settings) -> RetryPolicy:
        return cls(
            silence_seconds=settings.model_silence_seconds,
            answer_seconds=settings.model_answer_seconds,
            retries=settings.model_retries,
        )

    def pause(self, fault: ModelFault, attempts: int) -> float | None:
        """Return the seconds until the next attempt, or None to give up. The provider's own wait time goes first."""
        if not fault.retryable or attempts > self.retries or fault.wait_seconds > _LONGEST_REQUESTED_SECONDS:
            return None
        if fault.wait_seconds:
            return fault.wait_seconds
        doubled = min(_LONGEST_PAUSE_SECONDS, self.first_pause_seconds * 2.0 ** (attempts - 1))
        return doubled * random.uniform(0.5, 1.0)  # noqa: S311 - jitter: clients that fail together retry apart


class RateLimiter:
    """Space the requests to one provider evenly, and hold them back while the provider asks us to wait."""

    def __init__(self, per_minute: int) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._lock = threading.Lock()
        self._next = 0.0

    def take_slot(self) -> float:
        """Reserve the next slot and return the seconds until it starts."""
        with self._lock:
            at = max(time.monotonic(), self._next)
            self._next = at + self._gap
            return at - time.monotonic()

    def hold(self, seconds: float) -> None:
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class ProviderChat:
    def __init__(
        self,
        targets: TierTargets,
        policy: RetryPolicy,
        *,
        per_minute: int = 0,
        max_tokens: int = 0,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._targets = targets
        self._policy = policy
        self._limiters = {target.endpoint.base_url: RateLimiter(per_minute) for target in targets.values()}
        self._max_tokens = max_tokens
        self._environ = environ

    @property
    def name(self) -> str:
        return self._targets[Tier.DEFAULT].name

    def cost(self, tier: Tier, usage: Usage) -> float | None:
        return cost_of(self._targets[tier], usage)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        target = self._targets[request.tier]
        limiter = self._limiters[target.endpoint.base_url]
        attempts = 0
        while True:
            attempts += 1
            await asyncio.sleep(limiter.take_slot())
            started = False
            try:
                async with aclosing(self._attempt(target, request)) as pieces:
                    async for piece in pieces:
                        started = True
                        yield piece
                return
            except ModelFault as fault:
                if started:  # the shown part cannot be taken back, so the caller decides
                    raise AnswerCut(model=target.name, said=fault.said) from fault
                pause = self._policy.pause(fault, attempts)
                if pause is None:
                    raise
                if isinstance(fault, RateLimited):
                    limiter.hold(pause)
                else:
                    await asyncio.sleep(pause)

    async def _attempt(self, target: Target, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        key = find_key(target.endpoint, self._environ)
        await asyncio.to_thread(_load_sdk, target.endpoint.wire)
        from labwright.llm import sdk

        streamed = sdk.pieces(
            target,
            key.value if key else "",
            request,
            silence_seconds=self._policy.silence_seconds,
            answer_seconds=self._policy.answer_seconds,
            max_tokens=self._max_tokens,
        )
        async with aclosing(streamed) as pieces:
            async for piece in pieces:
                if isinstance(piece, EndPiece):
                    piece = replace(piece, usage=piece.usage.at(cost_of(target, piece.usage)))
                yield piece


def _load_sdk(wire: Wire) -> None:
    """Import the SDK. It takes seconds the first time, so it runs in a thread."""
    from labwright.llm import sdk

    sdk.load(wire)
