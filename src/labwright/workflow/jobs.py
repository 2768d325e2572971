"""One attempt at a body: sync or async, within its time.

How a time-out ends a body, honestly: an async body is cancelled. A sync body runs in a thread of its own, in which
`TimedOut` is raised; Python does that between two bytecodes, so a body that is inside one long call of C (a query, a
matrix product, `time.sleep`) goes on until that returns. It is then left behind, its result counts for nothing, and
it is not tried again: two attempts at once would write to the same files.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from labwright.workflow.tasks import Retry, Task
from labwright.workflow.type_rules import Type, misfit
from labwright.workflow.values import LARGEST, NotEncodable, Sealed, decode, encode, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_GRACE_SECONDS = 1.0  # for a body to notice that its time is over


class TimedOut(Exception):
    """The body took longer than its time-out."""

    still_running = False


class Suspended(Exception):
    """Raised by a body that waits for something outside, as a person's answer: the next run tries it again."""


class Failed(Exception):
    """Raised where its words say all: they are told without the name of a class before them."""


class Bodies:
    """Calls bodies. All async ones of a run share one event loop, so that they may share clients and locks."""

    def __init__(self) -> None:
        self._loop: _LoopThread | None = None
        self._lock = threading.Lock()

    def call(self, task: Task, inputs: dict[str, Any]) -> Any:
        if task.is_async:
            return self._call_async(task, inputs)
        if task.options.timeout is None:
            return task.body(**inputs)
        return _call_within(task.options.timeout, lambda: task.body(**inputs))

    def _call_async(self, task: Task, inputs: dict[str, Any]) -> Any:
        import asyncio

        async def within_time() -> Any:
            return await asyncio.wait_for(task.body(**inputs), task.options.timeout)

        try:
            return asyncio.run_coroutine_threadsafe(within_time(), self._event_loop()).result()
        except asyncio.TimeoutError:  # noqa: UP041 - its name before Python 3.11
            if task.options.timeout is None:
                raise  # the body's own
            raise TimedOut(f"not done within {task.options.timeout:g} s") from None

    def _event_loop(self) -> AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _LoopThread()
            return self._loop.loop

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()


class _LoopThread:
    """An event loop that runs beside; what is left in it when it is closed is cancelled."""

    loop: AbstractEventLoop

    def __init__(self) -> None:
        import asyncio

        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="workflow-async", daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        import asyncio

        self.loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._ready.set()
        await self._closed.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._closed.set)
        self._thread.join(_GRACE_SECONDS)  # no longer: a body may block it


class _Call:
    """What a thread brings back."""

    def __init__(self, body: Callable[[], Any]) -> None:
        self._body = body
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.value = self._body()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.error = error
        finally:
            self.done.set()


def _call_within(seconds: float, body: Callable[[], Any]) -> Any:
    call = _Call(body)
    thread = threading.Thread(target=call, name="workflow-body", daemon=True)
    thread.start()
    if not call.done.wait(seconds):
        raise _end_late(thread, call, seconds)
    if call.error is not None:
        raise call.error
    return call.value


def _end_late(thread: threading.Thread, call: _Call, seconds: float) -> TimedOut:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimedOut))
    ended = call.done.wait(_GRACE_SECONDS)
    late = TimedOut(f"not done within {seconds:g} s" + ("" if ended else "; it could not be ended and goes on unheard"))
    late.still_running = not ended
    return late


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
class AttemptResult:
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
        raise NotEncodable(f"a result of {size >> 20} MB is too large for an edge; write a file and return its Path")
    return encoded


def do(job: Job, tell: Callable[[AttemptResult], None]) -> None:
    """Until it succeeds, or may not be tried again."""
    attempt = 1
    while True:
        news = _attempt(job, attempt)
        tell(news)
        if news.status != "retrying":
            return
        attempt += 1
        time.sleep(job.retry.wait_before(attempt))


def _attempt(job: Job, attempt: int) -> AttemptResult:
    began = time.monotonic()
    try:
        value = job.call()
    except Suspended as pause:
        return AttemptResult(job, "suspended", attempt, time.monotonic() - began, error=str(pause) or "suspended")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a body raises is its failure
        again = attempt <= job.retry.count and not getattr(error, "still_running", False)
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_TRACEBACK_LIMIT:]
        status = "retrying" if again else "failed"
        return AttemptResult(job, status, attempt, time.monotonic() - began, error=_words(error), traceback=text)
    return AttemptResult(job, "finished", attempt, time.monotonic() - began, value=value)


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
        self._news: SimpleQueue[AttemptResult] = SimpleQueue()
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

    def wait(self) -> AttemptResult:
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
