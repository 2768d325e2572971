"""Waiting for runs and sweeps, in a thread of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from labwright.compute.lab import Lab
from labwright.domain.event import Event
from labwright.workflow import Suspended

Found = TypeVar("Found")
_LOOK_SECONDS = 1.0  # for what no event told
_GATHER_SECONDS = 0.05  # a busy server commits hundreds of times a second


def wait_for(lab: Lab, look: Callable[[], Found | None], stopping: threading.Event) -> Found:
    """Until there is something to be seen; asked again after each commit. Suspends when it is told to stop."""
    news = threading.Event()

    def hear(_events: list[Event]) -> None:
        news.set()

    with lab.db.listening(hear):
        while True:
            news.clear()
            found = look()
            if found is not None:
                return found
            if stopping.wait(_GATHER_SECONDS):
                raise Suspended("it was told to stop, and goes on when it is executed again")
            news.wait(_LOOK_SECONDS)
