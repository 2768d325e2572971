"""How long to wait for a model, how often to try again, and how fast to ask."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

from labwright.llm.faults import ModelFault
from labwright.settings import Settings

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_ASKED_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    silence_seconds: float
    answer_seconds: float
    retries: int
    first_pause_seconds: float = _FIRST_PAUSE_SECONDS

    @classmethod
    def from_settings(cls, settings: Settings) -> Patience:
        return cls(
            silence_seconds=settings.model_silence_seconds,
            answer_seconds=settings.model_answer_seconds,
            retries=settings.model_retries,
        )

    def pause(self, fault: ModelFault, tries: int) -> float | None:
        """Seconds until the next try after so many; None: give up. What the provider asks for is kept to."""
        if not fault.passing or tries > self.retries or fault.wait_seconds > _LONGEST_ASKED_SECONDS:
            return None
        if fault.wait_seconds:
            return fault.wait_seconds
        doubled = min(_LONGEST_PAUSE_SECONDS, self.first_pause_seconds * 2.0 ** (tries - 1))
        return doubled * random.uniform(0.5, 1.0)  # noqa: S311 - so that many who failed together do not return together


class Pace:
    """Turns at one provider, for all who ask it: evenly spaced, and none while it has asked everybody to wait."""

    def __init__(self, per_minute: int) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._lock = threading.Lock()
        self._next = 0.0

    def turn(self) -> float:
        """Take the next turn; the seconds until it comes."""
        with self._lock:
            at = max(time.monotonic(), self._next)
            self._next = at + self._gap
            return at - time.monotonic()

    def hold(self, seconds: float) -> None:
        """Nobody asks for so long: the provider said that it has had enough."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)
