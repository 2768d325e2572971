"""Stream stored events and unstored hints to many clients. A stream can resume at a position."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.event import CHAT_HINT, Event, Hint
from labwright.domain.session import PieceKind
from labwright.store import events, sessions

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": still here\n\n"
_RECENT = 2000
_PAGE = 500
_PAUSE_SECONDS = 0.01  # batches events: each block costs every client
_HINT_PAUSE_SECONDS = 0.1


class Client:
    """One connection: its pending hints, and when it last received something."""

    def __init__(self, wants: Callable[[Hint], bool], *, gets_events: bool) -> None:
        self.news = asyncio.Event()
        self.wants = wants
        self.gets_events = gets_events
        self.hints: set[Hint] = set()
        self._last_sent_at = time.monotonic()

    def sent(self, block: bytes) -> bytes:
        self._last_sent_at = time.monotonic()
        return block

    async def wait(self) -> bool:
        """Wait for news. Return False when a keep-alive is due, even if there was news for other clients."""
        silent = time.monotonic() - self._last_sent_at
        try:
            await asyncio.wait_for(self.news.wait(), max(0.0, KEEP_ALIVE_SECONDS - silent))
        except TimeoutError:
            return False
        return True


class Hub:
    """Sends committed events to the clients. Recent events are cached; the rest comes from the database."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._recent: deque[Event] = deque(maxlen=_RECENT)
        self._clients: set[Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_waking = False
        self.closing = False
        lab.db.on_commit(self._on_commit)
        lab.publish_hint = self._on_hint

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def close(self) -> None:
        self.closing = True
        for client in self._clients:
            client.news.set()

    def _on_commit(self, committed: list[Event]) -> None:
        """Runs in the committing thread, in order. It wakes the event loop once for many commits."""
        self._recent.extend(committed)
        if self._clients and not self._is_waking:
            self._is_waking = True
            self._call(self._wake)

    def _on_hint(self, hint: Hint) -> None:
        if self._clients:
            self._call(self._spread, hint)

    def _call(self, function: Any, *values: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *values)

    def _wake(self) -> None:
        self._is_waking = False  # first, so that later commits wake it again
        for client in self._clients:
            if client.gets_events:
                client.news.set()

    def _spread(self, hint: Hint) -> None:
        for client in self._clients:
            if client.wants(hint):
                client.hints.add(hint)
                client.news.set()

    def after(self, seq: int) -> list[Event]:
        """Return the events after a position, from the cache if it reaches back far enough, else from the database."""
        recent = list(self._recent)  # commits may extend it
        if recent and recent[0].seq <= seq + 1:
            newer = list(takewhile(lambda event: event.seq > seq, reversed(recent)))
            return newer[::-1]
        return events.after(self._lab.db.reader(), seq, _PAGE)

    @contextlib.contextmanager
    def _connected(self, client: Client) -> Any:
        self._clients.add(client)
        try:
            yield client
        finally:
            self._clients.discard(client)

    async def follow(self, seq: int, chosen: StreamFilter) -> AsyncIterator[bytes]:
        epoch = self._lab.db.epoch
        with self._connected(Client(chosen.takes_hint, gets_events=True)) as client:
            while not self.closing:
                client.news.clear()
                while found := self.after(seq):
                    seq = found[-1].seq
                    taken = [event for event in found if chosen.takes(event)]
                    block = b"".join(
                        frame(event.type, event_dict(epoch, event), f"{epoch}:{event.seq}") for event in taken
                    )
                    if block:
                        yield client.sent(block)
                        await asyncio.sleep(_PAUSE_SECONDS)
                if client.hints:
                    hints, client.hints = client.hints, set()
                    for hint in hints:
                        yield client.sent(frame("hint", {name: value for name, value in asdict(hint).items() if value}))
                    await asyncio.sleep(_HINT_PAUSE_SECONDS)  # send hints a few times per second at most
                    continue
                if not await client.wait():
                    yield client.sent(KEEP_ALIVE)

    async def follow_session(self, session_id: str, seq: int, turn: int | None = None) -> AsyncGenerator[bytes, None]:
        """Stream the pieces of a conversation after a position; with a turn, until its end."""
        with self._connected(Client(lambda hint: hint.session_id == session_id, gets_events=False)) as client:
            while not self.closing:
                client.news.clear()
                while found := await asyncio.to_thread(
                    lambda after: sessions.pieces_after(self._lab.db.reader(), session_id, after, _PAGE), seq
                ):
                    seq = found[-1].seq
                    block = b"".join(frame(piece.kind, piece.to_dict(), str(piece.seq)) for piece in found)
                    yield client.sent(block)
                    ended = [piece.turn for piece in found if piece.kind is PieceKind.END]
                    if turn is not None and any(number >= turn for number in ended):
                        return
                if not await client.wait():
                    yield client.sent(KEEP_ALIVE)


class StreamFilter:
    """The events and hints that a client requested and may see."""

    def __init__(
        self, topics: str | None, types: frozenset[str] | None, run_id: str | None, *, conversations: bool = True
    ) -> None:
        self._topics = set(topics.split(",")) if topics else {"events", "hints"}
        self._types = types
        self._run_id = run_id
        self._conversations = conversations

    def takes(self, event: Event) -> bool:
        if "events" not in self._topics or (self._types is not None and event.type not in self._types):
            return False
        return self._run_id is None or event.run_id == self._run_id

    def takes_hint(self, hint: Hint) -> bool:
        if hint.topic == CHAT_HINT and not self._conversations:
            return False
        return "hints" in self._topics and (self._run_id is None or hint.run_id == self._run_id)


def event_dict(epoch: str, event: Event) -> dict[str, Any]:
    return {"epoch": epoch, **{name: getattr(event, name) for name in Event.__dataclass_fields__}}


def frame(kind: str, data: object, position: str | None = None) -> bytes:
    """Return one server-sent event."""
    identity = f"id: {position}\n" if position else ""
    return f"{identity}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode(errors="replace")
