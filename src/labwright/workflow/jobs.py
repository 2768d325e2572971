"""Jobs: one task with its inputs, tried as often as its retry allows, by worker threads.

How a timeout ends a body: an async body is cancelled. A sync body runs in its own thread, in which `TimedOut` is
raised. Python raises it between two bytecodes, so a body inside one long C call (a query, a matrix product,
`time.sleep`) continues until that call returns. Its result is ignored, and it is not retried: two attempts at once
would write to the same files.
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

_GRACE_SECONDS = 1.0  # for a body to notice its timeout
_TRACEBACK_LIMIT = 8000
_ERROR_LIMIT = 1000


class TimedOut(Exception):
    """The body took longer than its timeout."""

    still_running = False


class Suspended(Exception):
    """Raised by a body that waits for something outside, such as a person. The next run tries it again."""


class Failed(Exception):
    """A failure whose message is shown without the name of the exception."""


class Bodies:
    """Call bodies. All async bodies of a run share one event loop, so they may share clients and locks."""

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

        with self._lock:
            if self._loop is None:
                self._loop = _LoopThread()
            loop = self._loop.loop
        try:
            return asyncio.run_coroutine_threadsafe(within_time(), loop).result()
        except asyncio.TimeoutError:  # noqa: UP041 - its name before Python 3.11
            if task.options.timeout is None:
                raise  # raised by the body itself
            raise TimedOut(f"not done within {task.options.timeout:g} s") from None

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()


class _LoopThread:
    """An event loop in a thread. Closing it cancels the calls that are still running."""

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
        self._thread.join(_GRACE_SECONDS)  # not longer: a body may block it


class _Call:
    """A call in a thread, and its result."""

    def __init__(self, body: Callable[[], Any]) -> None:
        self._body = body
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.value = self._body()
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self.error = error
        finally:
            self.done.set()


def _call_within(seconds: float, body: Callable[[], Any]) -> Any:
    call = _Call(body)
    thread = threading.Thread(target=call, name="workflow-body", daemon=True)
    thread.start()
    if not call.done.wait(seconds):
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimedOut))
        ended = call.done.wait(_GRACE_SECONDS)
        note = "" if ended else "; it could not be ended, and its result is ignored"
        timeout = TimedOut(f"not done within {seconds:g} s{note}")
        timeout.still_running = not ended
        raise timeout
    if call.error is not None:
        raise call.error
    return call.value


@dataclass(frozen=True)
class Job:
    name: str  # `step`, or `step[3]` in a fan-out
    step: str
    index: int  # 0, or the index in the fan-out
    key: str
    call: Callable[[], Any]
    retry: Retry


@dataclass(frozen=True)
class AttemptResult:
    """The result of one attempt. The last one of a job is `finished`, `failed` or `suspended`."""

    job: Job
    status: str  # retrying | finished | failed | suspended
    attempt: int
    seconds: float = 0.0
    value: Any = None
    error: str = ""
    traceback: str = ""


class WrongResult(TypeError):
    """A task returned a value that does not match its annotation."""


def checked(declared: Type, value: Any) -> Any:
    """Return the encoded value. Raise if it has the wrong type or cannot be encoded. Sealed ones are not checked."""
    encoded = encode(value)
    fault = "" if isinstance(value, Sealed) else misfit(decode(encoded), declared)
    if fault:
        raise WrongResult(f"the result is not the declared {declared}: {fault}")
    size = len(text_of(encoded))
    if size > LARGEST:
        raise NotEncodable(f"a result of {size >> 20} MB is too large; write a file and return its Path")
    return encoded


def do(job: Job, report: Callable[[AttemptResult], None]) -> None:
    """Try a job until it succeeds or has no retries left. Report each attempt."""
    attempt = 1
    while True:
        result = _attempt(job, attempt)
        report(result)
        if result.status != "retrying":
            return
        attempt += 1
        time.sleep(job.retry.wait_before(attempt))


def _attempt(job: Job, attempt: int) -> AttemptResult:
    started = time.monotonic()
    try:
        value = job.call()
    except Suspended as pause:
        return AttemptResult(job, "suspended", attempt, time.monotonic() - started, error=str(pause) or "suspended")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - anything a body raises is its failure
        seconds = time.monotonic() - started
        can_retry = attempt <= job.retry.count and not getattr(error, "still_running", False)
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_TRACEBACK_LIMIT:]
        message = str(error)
        if not isinstance(error, Failed):
            name = "timed out" if isinstance(error, TimedOut) else type(error).__name__
            message = f"{name}: {error}".rstrip(": ")
        status = "retrying" if can_retry else "failed"
        return AttemptResult(job, status, attempt, seconds, error=message[:_ERROR_LIMIT], traceback=trace)
    return AttemptResult(job, "finished", attempt, time.monotonic() - started, value=value)


class Workers:
    """Threads that do jobs, up to a limit. With a limit of one, jobs run in the caller's own thread."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._results: SimpleQueue[AttemptResult] = SimpleQueue()
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
            # a daemon: a body that never returns must not block the end of the process
            threading.Thread(target=self._work, name=f"workflow-{self._threads}", daemon=True).start()

    def wait(self) -> AttemptResult:
        """Wait for the next result of any job."""
        if self._limit == 1 and self._results.empty():
            do(self._jobs.get(), self._results.put)
        result = self._results.get()
        if result.status != "retrying":
            self.busy -= 1
        return result

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            do(job, self._results.put)

    def close(self) -> None:
        """End the threads; one inside a body ends after it."""
        for _ in range(self._threads):
            self._jobs.put(None)  # type: ignore[arg-type]
