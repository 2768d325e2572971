"""What was spent on models, and how much a session may spend before a person is asked.

One line a call, appended and synced: a kill forgets no line that was written, and nothing is ever rewritten.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from labwright.domain.clock import now
from labwright.domain.errors import Conflict
from labwright.files import all_lines, append_whole
from labwright.llm.model import Tier, Usage
from labwright.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """0 is none."""

    tokens: int = 0
    usd: float = 0.0

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        return cls(tokens=settings.session_token_limit, usd=settings.session_usd_limit)


class BudgetReached(Conflict):
    """The session has spent what it may; it goes on when a person allows more."""

    code = "budget"

    def __init__(self, session_id: str, what: Literal["tokens", "usd"], spent: float, limit: float) -> None:
        self.session_id, self.what, self.spent, self.limit = session_id, what, spent, limit
        used = f"${spent:.2f} of ${limit:.2f}" if what == "usd" else f"{spent:,.0f} of {limit:,.0f} tokens"
        hint = f"Allow more for this session, or raise session_{'usd' if what == 'usd' else 'token'}_limit."
        super().__init__(f"The session has used {used}.", hint=hint)


@dataclass(slots=True)
class Spent:
    """Sums. Money is of the calls whose price is known; how many were not is said beside it."""

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

    def take(self, line: dict[str, Any]) -> None:
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


class Book:
    """The spending of a project, by session and by model. Several processes may write it: each reads what is new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._offset = 0  # read so far
        self._sessions: dict[str, Spent] = defaultdict(Spent)
        self._models: dict[str, Spent] = defaultdict(Spent)
        self._total = Spent()

    def total(self) -> Spent:
        with self._lock:
            self._catch_up()
            return self._total

    def of_session(self, session_id: str) -> Spent:
        with self._lock:
            self._catch_up()
            return self._sessions[session_id]

    def of_model(self, name: str) -> Spent:
        with self._lock:
            self._catch_up()
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

    def _catch_up(self) -> None:
        lines, self._offset = all_lines(str(self._path), self._offset)
        for line in lines:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # cut short by a kill
                self._take(json.loads(line))

    def _take(self, line: dict[str, Any]) -> None:
        self._sessions[line["session"]].take(line)
        self._total.take(line)
        if "model" in line:
            self._models[line["model"]].take(line)


class Ledger:
    """One session's account. Checked before a call, so a session goes over by one answer at most."""

    def __init__(self, book: Book, session_id: str, limits: Limits) -> None:
        self.session_id = session_id
        self._book = book
        self._limits = limits

    @property
    def spent(self) -> Spent:
        return self._book.of_session(self.session_id)

    @property
    def limits(self) -> Limits:
        """As set, and what was allowed on top."""
        spent = self.spent
        return Limits(
            tokens=self._limits.tokens and self._limits.tokens + spent.granted_tokens,
            usd=self._limits.usd and self._limits.usd + spent.granted_usd,
        )

    def check(self) -> None:
        spent, limits = self.spent, self.limits
        if limits.usd and spent.cost_usd >= limits.usd:
            raise BudgetReached(self.session_id, "usd", spent.cost_usd, limits.usd)
        if limits.tokens and spent.tokens >= limits.tokens:
            raise BudgetReached(self.session_id, "tokens", spent.tokens, limits.tokens)

    def allow(self, *, tokens: int = 0, usd: float = 0.0) -> None:
        """What a person granted; it is kept."""
        self._book.write({"session": self.session_id, "tokens": tokens, "usd": usd})

    def record(self, tier: Tier, model: str, usage: Usage, *, estimated: bool = False) -> None:
        self._book.write(
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
