"""What models cost, and how much a session may spend before a person must allow more.

The spending log has one line per call. Lines are appended and synced, never rewritten, so a kill loses none.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.files import all_lines, append_whole
from labwright.llm.chat import ChatModel, ChatPiece, ChatRequest, EndPiece, TextPiece, ThinkingPiece
from labwright.llm.model import Tier, Usage
from labwright.settings import Settings

Price = Callable[[Tier, Usage], float | None]
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimits:
    """0 means no limit."""

    tokens: int = 0
    usd: float = 0.0

    @classmethod
    def from_settings(cls, settings: Settings) -> SpendingLimits:
        return cls(tokens=settings.session_token_limit, usd=settings.session_usd_limit)


class BudgetReached(Conflict):
    """The session has reached its spending limit. It continues when a person allows more."""

    code = "budget"

    def __init__(self, session_id: str, what: Literal["tokens", "usd"], spent: float, limit: float) -> None:
        self.session_id, self.what, self.spent, self.limit = session_id, what, spent, limit
        used = f"${spent:.2f} of ${limit:.2f}" if what == "usd" else f"{spent:,.0f} of {limit:,.0f} tokens"
        hint = f"Allow more for this session, or raise session_{'usd' if what == 'usd' else 'token'}_limit."
        super().__init__(f"The session has used {used}.", hint=hint)


@dataclass(slots=True)
class Spending:
    """Sums over calls. `cost_usd` covers only calls with a known price; `unpriced_calls` counts the others."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    granted_tokens: int = 0
    granted_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def add(self, line: dict[str, Any]) -> None:
        if "model" not in line:
            self.granted_tokens += line["tokens"]
            self.granted_usd += line["usd"]
            return
        self.calls += 1
        self.tokens_in += line["tokens_in"]
        self.tokens_out += line["tokens_out"]
        self.cache_read += line["cache_read"]
        self.cost_usd += line["cost_usd"]
        self.unpriced_calls += not line["priced"]


class SpendingLog:
    """The spending of a project by session and by model. Several processes may write; each reads the new lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._offset = 0  # read up to here
        self._sessions: dict[str, Spending] = defaultdict(Spending)
        self._models: dict[str, Spending] = defaultdict(Spending)
        self._total = Spending()

    def total(self) -> Spending:
        with self._lock:
            self._read_new_lines()
            return self._total

    def of_session(self, session_id: str) -> Spending:
        with self._lock:
            self._read_new_lines()
            return self._sessions[session_id]

    def of_model(self, name: str) -> Spending:
        with self._lock:
            self._read_new_lines()
            return self._models[name]

    def write(self, line: dict[str, Any]) -> None:
        text = json.dumps({"time": now(), **line}, ensure_ascii=False)
        with self._lock:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                append_whole(fd, f"{text}\n".encode())
                os.fsync(fd)
            finally:
                os.close(fd)

    def _read_new_lines(self) -> None:
        lines, self._offset = all_lines(str(self._path), self._offset)
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a kill may have cut a line short
                self._add(json.loads(line))

    def _add(self, line: dict[str, Any]) -> None:
        self._sessions[line["session"]].add(line)
        self._total.add(line)
        if "model" in line:
            self._models[line["model"]].add(line)


class Ledger:
    """The account of one session. The check before each call limits the excess to one reply."""

    def __init__(self, log: SpendingLog, session_id: str, limits: SpendingLimits) -> None:
        self.session_id = session_id
        self._log = log
        self._limits = limits

    @property
    def spent(self) -> Spending:
        return self._log.of_session(self.session_id)

    @property
    def limits(self) -> SpendingLimits:
        """The limits of the settings plus what a person allowed on top."""
        spent = self.spent
        return SpendingLimits(
            tokens=self._limits.tokens and self._limits.tokens + spent.granted_tokens,
            usd=self._limits.usd and self._limits.usd + spent.granted_usd,
        )

    def check(self) -> None:
        """Raise BudgetReached if the session has reached a limit."""
        spent, limits = self.spent, self.limits
        if limits.usd and spent.cost_usd >= limits.usd:
            raise BudgetReached(self.session_id, "usd", spent.cost_usd, limits.usd)
        if limits.tokens and spent.tokens >= limits.tokens:
            raise BudgetReached(self.session_id, "tokens", spent.tokens, limits.tokens)

    def allow(self, *, tokens: int = 0, usd: float = 0.0) -> None:
        """Record that a person allowed more."""
        self._log.write({"session": self.session_id, "tokens": tokens, "usd": usd})

    def record(self, tier: Tier, model: str, usage: Usage, *, estimated: bool = False) -> None:
        self._log.write(
            {
                "session": self.session_id,
                "tier": tier,
                "model": model,
                "tokens_in": usage.tokens_in,
                "tokens_out": usage.tokens_out,
                "cache_read": usage.cache_read,
                "cache_write": usage.cache_write,
                "cost_usd": usage.cost_usd,
                "priced": usage.priced,
                "estimated": estimated,
            }
        )


class MeteredChat:
    """Count the calls of a chat model and refuse them at the session's limit.

    Usage that the provider does not report is estimated: a stopped or cut reply, or a server that counts nothing.
    """

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
        """Block for a few milliseconds instead of awaiting: stopping the reply would also cancel an awaited write."""
        model = end.model if end else self._chat.name
        if end and (end.usage.tokens or not written):
            self._ledger.record(request.tier, model, end.usage)
            return
        sent = len(json.dumps(asdict(request)))
        usage = Usage(tokens_in=sent // _CHARACTERS_PER_TOKEN, tokens_out=written // _CHARACTERS_PER_TOKEN)
        cost = self._price(request.tier, usage)
        self._ledger.record(request.tier, model, usage.at(cost), estimated=True)
