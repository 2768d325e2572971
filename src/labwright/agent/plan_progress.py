"""Follows the making of a plan, and writes into the turn how far it is. No model is asked meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from labwright.agent.turn_log import TurnLog
from labwright.domain.event import Event, EventType
from labwright.domain.session import Piece, PieceKind
from labwright.store import events, plans

_LOOK_SECONDS = 5.0  # for what no commit told
_PAGE = 500
_SHOWN = ("plan_id", "node", "status", "seconds", "message")


async def follow_plan(log: TurnLog, plan_id: str, since: int, own: Sequence[Piece]) -> None:
    """Until nobody is at work on the plan. After a restart it goes on behind what the turn has told already."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def hear(committed: list[Event]) -> None:
        if any(event.data.get("plan_id") == plan_id for event in committed):
            loop.call_soon_threadsafe(news.set)

    seq = _told(own, plan_id) or since
    with log.lab.db.listening(hear):
        while True:
            news.clear()
            rests = not plans.get(log.lab.db.reader(), plan_id).compiling_by
            seq = await asyncio.to_thread(_tell, log, plan_id, seq)
            if rests:
                return
            try:
                await asyncio.wait_for(news.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue


def _told(own: Sequence[Piece], plan_id: str) -> int:
    """The number of the last event that the turn has told; 0 if it has told none."""
    known = [p.data["event"] for p in own if p.kind is PieceKind.PLAN and p.data["plan_id"] == plan_id]
    return max(known, default=0)


def _tell(log: TurnLog, plan_id: str, seq: int) -> int:
    while found := events.after(log.lab.db.reader(), seq, _PAGE, types=(EventType.PLAN_NODE,)):
        seq = found[-1].seq
        ours = [event for event in found if event.data["plan_id"] == plan_id]
        if ours:
            log.write(*((PieceKind.PLAN, _facts(event)) for event in ours))
    return seq


def _facts(event: Event) -> dict[str, Any]:
    return {**{name: event.data[name] for name in _SHOWN}, "event": event.seq}
