"""Lets turns run: one thread with a loop of its own, told by committed events and knowing nothing but the database.

A session that is at work has a task here; one that is no longer at work has none. After a restart the same look finds
the same sessions, and their turns go on from what their logs hold.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Coroutine

from labwright.agent.chats import Chats
from labwright.agent.conversation.waits import wake
from labwright.compute.lab import Lab
from labwright.domain.errors import LabwrightError
from labwright.domain.event import Event, EventType
from labwright.domain.run import TERMINAL
from labwright.domain.session import Mode, Session
from labwright.store import sessions

log = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0
_RETRY_SECONDS = 2.0
_ENDS = frozenset(str(status) for status in TERMINAL)
_WAKING = (EventType.SWEEP_STATUS, EventType.RUN_DELETED)


class SessionKeeper:
    def __init__(self, lab: Lab, chats: Chats) -> None:
        self._lab = lab
        self._chats = chats
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}  # by session: which turn, and what runs it
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: asyncio.Event | None = None
        self._closing = False
        self._waits = True  # whether any session waits for the end of something; unknown at first
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="sessions", daemon=True)
        lab.db.on_commit(self._hear)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Turns under way stay at work in the database, and go on at the next start."""
        self._closing = True
        self._tell()
        self._thread.join(timeout=_PATIENCE_SECONDS)

    def _hear(self, events: list[Event]) -> None:
        """Called with the database locked, so it only takes notes."""
        if any(event.type is EventType.SESSION_STATUS or (self._waits and _wakes(event)) for event in events):
            self._tell()

    def _tell(self) -> None:
        if self._loop is not None and self._news is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def _serve(self) -> None:
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._news.set()
        self._ready.set()
        while not self._closing:
            await self._news.wait()
            self._news.clear()
            try:
                self._look()
            except (LabwrightError, OSError, sqlite3.Error):
                log.exception("sessions could not be looked at; they are again soon")
                self._again_soon()
        for _, task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._tasks.values()), return_exceptions=True)

    def _look(self) -> None:
        waiting = sessions.waiting(self._lab.db.reader())
        self._waits = bool(waiting)  # one that begins to wait is heard of, and looked at after this
        for session in waiting:
            wake(self._lab, session)
        at_work = {session.id: session for session in sessions.at_work(self._lab.db.reader())}
        for session_id, (turn, task) in list(self._tasks.items()):
            if session_id not in at_work or at_work[session_id].turn != turn:
                task.cancel()
        for session in at_work.values():
            if session.id not in self._tasks and not self._closing:
                self._begin(session)

    def _begin(self, session: Session) -> None:
        turn = self._turn(session)
        task = asyncio.get_running_loop().create_task(turn, name=f"turn {session.turn} of {session.id}")
        self._tasks[session.id] = (session.turn, task)
        task.add_done_callback(lambda done: self._ended(session.id, done))

    def _turn(self, session: Session) -> Coroutine[None, None, None]:
        """Imported here, as most servers never talk."""
        if session.mode is Mode.WILD:
            from labwright.agent.wild.talk import WildTurn

            return WildTurn(self._lab, session, self._chats.proposer).run()
        from labwright.agent.runner import Turn

        return Turn(self._lab, session, self._chats).run()

    def _ended(self, session_id: str, task: asyncio.Task[None]) -> None:
        """What was said or happened meanwhile is looked at now; a turn that could not write is tried again later."""
        del self._tasks[session_id]
        fault = None if task.cancelled() else task.exception()
        if fault is None:
            self._tell()
            return
        log.error("a turn of %s could not go on and is tried again: %s", session_id, fault)
        self._again_soon()

    def _again_soon(self) -> None:
        asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._tell)


def _wakes(event: Event) -> bool:
    if event.type is EventType.RUN_STATUS:
        return str(event.data.get("to")) in _ENDS
    return event.type in _WAKING
