"""One attempt at a body: sync or async, within its time.

How a time-out ends a body, honestly: an async body is cancelled. A sync body runs in a thread of its own, in which
`TimedOut` is raised; Python does that between two bytecodes, so a body that is inside one long call of C (a query, a
matrix product, `time.sleep`) goes on until that returns. It is then left behind, its result counts for nothing, and
it is not tried again: two attempts at once would write to the same files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from labwright.workflow.tasks import Task

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
