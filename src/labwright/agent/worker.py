"""Run the turns of sessions: each session that is at work has one task here.

After a restart the worker finds the same sessions, and their turns continue from their logs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from labwright.agent.chats import Chats
from labwright.agent.conversation.waits import wake
from labwright.compute.lab import Lab
from labwright.compute.worker import Worker
from labwright.domain.event import Event, EventType
from labwright.domain.run import TERMINAL
from labwright.domain.session import Mode, Session
from labwright.store import sessions

if TYPE_CHECKING:
    from labwright.agent.runner import Turn
    from labwright.agent.wild.talk import WildTurn

log = logging.getLogger(__name__)
_SESSIONS = "sessions"  # the one item of this worker: all sessions are checked together
_ENDS = frozenset(str(status) for status in TERMINAL)
_WAKING = (EventType.SWEEP_STATUS, EventType.RUN_DELETED)


class SessionWorker(Worker):
    """Turns are coroutines and wait for models most of the time, so all of them share one event loop in a thread of
    its own. The worker's thread only decides which turns start and which are cancelled."""

    name = "sessions"

    def __init__(self, lab: Lab, chats: Chats) -> None:
        super().__init__(lab)
        self._chats = chats
        self._tasks: dict[str, tuple[int, asyncio.Task[None]]] = {}  # by session: its turn and the task
        self._some_wait = True  # whether some session waits for something to end; unknown at first
        self._event_loop: asyncio.AbstractEventLoop  # set by its thread, before it is ready
        self._stop: asyncio.Event
        self._loop_ready = threading.Event()
        self._turns = threading.Thread(target=lambda: asyncio.run(self._run_turns()), name="turns", daemon=True)

    def concerned(self, events: list[Event]) -> tuple[str, ...]:
        is_concerned = any(
            event.type is EventType.SESSION_STATUS or (self._some_wait and _may_wake(event)) for event in events
        )
        return (_SESSIONS,) if is_concerned else ()

    def items_at_start(self) -> tuple[str, ...]:
        self._turns.start()
        self._loop_ready.wait()
        return (_SESSIONS,)

    def close(self) -> None:
        super().close()
        self._event_loop.call_soon_threadsafe(self._stop.set)
        self._turns.join(timeout=self.close_seconds)

    def advance(self, item: str) -> None:  # noqa: ARG002
        waiting = sessions.waiting(self._lab.db.reader())
        self._some_wait = bool(waiting)  # the event of a session that starts to wait comes after this
        for session in waiting:
            wake(self._lab, session)
        at_work = {session.id: session for session in sessions.at_work(self._lab.db.reader())}
        for session_id, (turn, task) in list(self._tasks.items()):
            if session_id not in at_work or at_work[session_id].turn != turn:
                self._event_loop.call_soon_threadsafe(task.cancel)
        for session in at_work.values():
            if session.id not in self._tasks and not self.closing:
                asyncio.run_coroutine_threadsafe(self._start_turn(session), self._event_loop).result()

    async def _run_turns(self) -> None:
        self._event_loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop_ready.set()
        await self._stop.wait()
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _start_turn(self, session: Session) -> None:
        turn: Turn | WildTurn
        if session.mode is Mode.WILD:
            from labwright.agent.wild.talk import WildTurn  # here, because most servers have no conversations

            turn = WildTurn(self._lab, session, self._chats.proposer)
        else:
            from labwright.agent.runner import Turn

            turn = Turn(self._lab, session, self._chats)
        task = asyncio.create_task(turn.run(), name=f"turn {session.turn} of {session.id}")
        self._tasks[session.id] = (session.turn, task)
        task.add_done_callback(lambda done: self._on_turn_end(session.id, done))

    def _on_turn_end(self, session_id: str, task: asyncio.Task[None]) -> None:
        """Check the session again: it may have a new message. A turn that could not write is tried again later."""
        del self._tasks[session_id]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("A turn of %s failed and is tried again: %s", session_id, error)
        self.wake(_SESSIONS, self.retry_seconds if error else 0.0)


def _may_wake(event: Event) -> bool:
    if event.type is EventType.RUN_STATUS:
        return str(event.data.get("to")) in _ENDS
    return event.type in _WAKING
