"""A job: one task with its inputs, tried as often as its retry allows. Workers do jobs and tell what happened."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from labwright.workflow.attempts import Failed, Suspended, TimedOut
from labwright.workflow.tasks import Retry
from labwright.workflow.type_rules import Type, misfit
from labwright.workflow.values import LARGEST, Refused, Sealed, decode, encode, text_of

_TRACEBACK_LIMIT = 8000
_WORDS_LIMIT = 1000


@dataclass(frozen=True)
class Job:
    name: str  # `step`, or `step[3]` of a fan-out
    step: str
    index: int  # 0, or its place in the fan-out
    key: str
    call: Callable[[], Any]
    retry: Retry


@dataclass(frozen=True)
class News:
    """What became of an attempt. The last news of a job is `finished`, `failed` or `suspended`."""

    job: Job
    status: str  # retrying | finished | failed | suspended
    attempt: int
    seconds: float = 0.0
    value: Any = None
    error: str = ""
    traceback: str = ""


class WrongResult(TypeError):
    """A task returned something else than its annotation declares."""


def checked(declared: Type, value: Any) -> Any:
    """The value, encoded, if it may travel and is of the declared type; a sealed one was checked where it was made."""
    encoded = encode(value)
    fault = "" if isinstance(value, Sealed) else misfit(decode(encoded), declared)
    if fault:
        raise WrongResult(f"the result is not the declared {declared}: {fault}")
    size = len(text_of(encoded))
    if size > LARGEST:
        raise Refused(f"a result of {size >> 20} MB is too large for an edge; write a file and return its Path")
    return encoded


def do(job: Job, tell: Callable[[News], None]) -> None:
    """Until it succeeds, or may not be tried again."""
    attempt = 1
    while True:
        news = _attempt(job, attempt)
        tell(news)
        if news.status != "retrying":
            return
        attempt += 1
        time.sleep(job.retry.wait_before(attempt))


def _attempt(job: Job, attempt: int) -> News:
    began = time.monotonic()
    try:
        value = job.call()
    except Suspended as pause:
        return News(job, "suspended", attempt, time.monotonic() - began, error=str(pause) or "suspended")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a body raises is its failure
        again = attempt <= job.retry.count and not getattr(error, "still_running", False)
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_TRACEBACK_LIMIT:]
        status = "retrying" if again else "failed"
        return News(job, status, attempt, time.monotonic() - began, error=_words(error), traceback=text)
    return News(job, "finished", attempt, time.monotonic() - began, value=value)


def _words(error: BaseException) -> str:
    if isinstance(error, Failed):
        return str(error)[:_WORDS_LIMIT]
    name = "timed out" if isinstance(error, TimedOut) else type(error).__name__
    return f"{name}: {error}".rstrip(": ")[:_WORDS_LIMIT]


class Workers:
    """Threads that do jobs; as many as are needed, up to the limit. With a limit of one, the caller's own thread."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._news: SimpleQueue[News] = SimpleQueue()
        self._threads = 0
        self.busy = 0

    @property
    def full(self) -> bool:
        return self.busy >= self._limit

    def start(self, job: Job) -> None:
        self.busy += 1
        self._jobs.put(job)
        if self._limit > 1 and self._threads < self.busy:
            self._threads += 1
            # a daemon: a body that never returns must not keep the process from ending
            threading.Thread(target=self._work, name=f"workflow-{self._threads}", daemon=True).start()

    def wait(self) -> News:
        """The next news of any job."""
        if self._limit == 1 and self._news.empty():
            do(self._jobs.get(), self._news.put)
        news = self._news.get()
        if news.status != "retrying":
            self.busy -= 1
        return news

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            do(job, self._news.put)

    def close(self) -> None:
        """Idle threads end; one that is inside a body ends with it."""
        for _ in range(self._threads):
            self._jobs.put(None)  # type: ignore[arg-type]
