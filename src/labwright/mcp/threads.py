"""Calls that block, in threads that nobody waits for at the end: a wait may have minutes to go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(call: Callable[[], Result]) -> Result:
    """One that is no longer wanted is left to end by itself."""
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()
    threading.Thread(target=_carry_out, args=(call, done), daemon=True).start()
    return await asyncio.wrap_future(done)


def _carry_out(call: Callable[[], Result], done: Future[Result]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 - whoever asked gets it
        done.set_exception(error)
