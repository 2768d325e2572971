"""The event stream: a client without matching events still gets signs of life."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.event import Event, EventType, Hint
from labwright.server import stream
from labwright.server.stream import KEEP_ALIVE, Hub, StreamFilter
from tests.support.lab import lab_in


@pytest.mark.parametrize("topics", ["events", "events,hints"])
def test_events_for_others_do_not_silence_a_stream(
    topics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.1)
    with lab_in(tmp_path / "project") as lab:
        wanted = StreamFilter(topics, frozenset({EventType.RUN_DELETED}), "run-0000000000")
        assert asyncio.run(_first_word(lab, wanted)) == KEEP_ALIVE


async def _first_word(lab: Lab, wanted: StreamFilter) -> bytes:
    hub = Hub(lab)
    hub.bind(asyncio.get_running_loop())
    others = asyncio.create_task(_others_are_busy(lab))
    follower = hub.follow(0, wanted)
    try:
        return await asyncio.wait_for(anext(follower), 20)
    finally:
        others.cancel()
        await follower.aclose()


async def _others_are_busy(lab: Lab) -> None:
    """Emit other events more often than the interval between two signs of life."""
    while True:
        lab.publish_hint(Hint("output", run_id="run-1111111111"))
        with lab.db.transaction() as tx:
            tx.emit(Event(type=EventType.SERVER_STARTED, actor=str(SYSTEM), time=now(), data={}))
        await asyncio.sleep(0.01)
