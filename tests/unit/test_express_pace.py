"""Where an express-lane call runs: on the event loop only in a burst of short calls."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from pydantic import BaseModel

from labwright.server.express import Express, ExpressLane

MANY = 40


class Form(BaseModel):
    seconds: float = 0.0


class Counter:
    """A lane over one route that records in which thread it was called."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.line_is_long = False
        route = Express(
            path=re.compile("/count"),
            endpoint=self._count,
            form=Form,
            permission=Depends(_anybody),
            parse=Form.model_validate_json,
        )
        self._lane = ExpressLane(FastAPI(), routes=[route], threads=1, must_wait=lambda: self.line_is_long)

    def _count(self, body: Form, request: Request) -> Response:
        self.threads.append(threading.current_thread())
        time.sleep(body.seconds)
        return Response(b"{}")

    async def post(self, times: int = 1, seconds: float = 0.0) -> None:
        for _ in range(times):
            await self._lane(_scope(), _body(Form(seconds=seconds)), _ignore)

    def took_the_loop(self) -> bool:
        return self.threads[-1] is threading.main_thread()


async def _anybody(request: Request) -> None:
    pass


def _scope() -> dict[str, Any]:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    return {"type": "http", "method": "POST", "path": "/count", "query_string": b"", "headers": headers}


def _body(form: Form) -> Callable[[], Any]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form.model_dump_json().encode(), "more_body": False}

    return receive


async def _ignore(message: Any) -> None:
    pass


def test_single_call_leaves_the_loop_free() -> None:
    counter = Counter()
    asyncio.run(counter.post())
    assert not counter.took_the_loop()


def test_burst_of_short_calls_stays_on_the_loop_until_one_is_long() -> None:
    counter = Counter()

    async def play() -> None:
        while not (counter.threads and counter.took_the_loop()):  # a busy machine may make some calls long
            await counter.post()
        await counter.post(seconds=0.05)
        await counter.post()
        assert not counter.took_the_loop()

    asyncio.run(play())


def test_call_that_would_wait_runs_in_a_thread() -> None:
    counter = Counter()

    async def play() -> None:
        while not (counter.threads and counter.took_the_loop()):
            await counter.post()
        counter.line_is_long = True
        await counter.post()
        assert not counter.took_the_loop()

    asyncio.run(play())


def test_long_calls_never_take_the_loop() -> None:
    counter = Counter()
    asyncio.run(counter.post(MANY, seconds=0.003))
    assert threading.main_thread() not in counter.threads
