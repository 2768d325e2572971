"""A page that stays open for half an hour while runs log, start and end, and somebody scrolls it and goes about in it.

OPEN_PAGE_SECONDS is settable. Once a minute, back on the home page and with garbage collected, its heap, its nodes and
its listeners are looked at; the last quarter is held against the second, since caches fill up in the first. Not the
memory of its process: that grows in a browser which is driven from outside, and not in one that is left alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from playwright.sync_api import CDPSession, Page

from benchmarks.dashboard import browser_page, copy_runs
from benchmarks.figure import Figure, at_most
from benchmarks.server import fresh_server
from tests.browser.sample import Sample, make_sample
from tests.browser.test_accessibility import addresses
from tests.support.live_server import LiveServer

_SECONDS = float(os.environ.get("OPEN_PAGE_SECONDS", "1800"))
_LOOKS = 30
_STORED = 2000
_NEW_RUN_SECONDS = 10.0
_PATIENCE_MS = 30_000
_LOGGING = """
import random, time, labwright
labwright.init()
step = 0
while True:
    labwright.log({"train/loss": random.random(), "train/accuracy": step % 97}, step=step)
    print(f"\\033[32mstep {step}\\033[0m " + "x" * 100, flush=True)
    step += 1
    time.sleep(0.1)
"""
_SCROLL = """async () => {
    const boxes = document.querySelectorAll(".table, .log, main");
    for (const by of [90, -90]) for (let frame = 0; frame < 20; frame += 1) {
        for (const box of boxes) box.scrollTop += by;
        await new Promise(requestAnimationFrame);
    }
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    heap_mb: float
    nodes: float
    listeners: float


def measure() -> list[Figure]:
    with fresh_server(LABWRIGHT_MAX_PARALLEL="8") as server:
        sample = make_sample(server)
        server.stop()
        copy_runs(server, sample.failed, _STORED)
        server.start(cold=True)
        with _logging_runs(server) as logging, browser_page(server) as page:
            looks = _spend_the_time(page, server, _places(sample, logging))
    return [_growth("heap", "MB", looks, lambda look: look.heap_mb, 2), *_others(looks)]


def _others(looks: list[tuple[float, Look]]) -> Iterator[Figure]:
    yield _growth("nodes", "", looks, lambda look: look.nodes, 500)
    yield _growth("listeners", "", looks, lambda look: look.listeners, 50)


def _growth(
    name: str, unit: str, looks: list[tuple[float, Look]], figure: Callable[[Look], float], bound: float
) -> Figure:
    values = [figure(look) for _, look in looks]
    quarter = len(values) // 4
    early, late = median(values[quarter : 2 * quarter]), median(values[-quarter:])
    how = f"median of the second quarter {early:.1f}, of the last {late:.1f}; {_SECONDS / 60:g} minutes"
    return Figure(
        name=f"open page: {name}, growth",
        unit=unit,
        rounds=tuple(values),
        ours=late - early,
        how=how,
        target=at_most(bound),
    )


@contextmanager
def _logging_runs(server: LiveServer) -> Iterator[list[str]]:
    """Two runs that log ten times a second each."""
    (server.project / "endless.py").write_text(_LOGGING)
    logging = [server.submit("python3 endless.py", name=f"endless {n}")["id"] for n in range(2)]
    for run_id in logging:
        server.wait_for_status(run_id, "running")
    try:
        yield logging
    finally:
        for run_id in logging:
            server.post(f"/runs/{run_id}/stop")


def _places(sample: Sample, logging: list[str]) -> list[str]:
    """Every page and tab once, the ones that change most between them, and home at the end."""
    live = [f"#/runs/{run_id}" for run_id in logging]
    return ["#/runs", *live, f"#/compare?runs={','.join(logging)}", *addresses(sample).values(), "#/runs", *live, "#/"]


def _spend_the_time(page: Page, server: LiveServer, places: list[str]) -> list[tuple[float, Look]]:
    """Going round the pages and scrolling each; back home once a minute to look."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    looks: list[tuple[float, Look]] = []
    began = time.monotonic()
    started = 0
    while len(looks) < _LOOKS:
        for place in places:
            _visit(page, place)
            now = time.monotonic() - began
            while started * _NEW_RUN_SECONDS < now:
                server.submit("echo hello", name=f"short {started}")
                started += 1
        if now >= (len(looks) + 1) * _SECONDS / _LOOKS:
            looks.append((now / 60, _look(session)))
            print(f"{now / 60:5.1f} min  {looks[-1][1]}", file=sys.stderr, flush=True)
    return looks


def _visit(page: Page, place: str) -> None:
    page.evaluate("(hash) => { location.hash = hash }", place)
    page.get_by_role("heading", level=1).first.wait_for(timeout=_PATIENCE_MS)
    page.locator("[aria-busy=true]").first.wait_for(state="detached", timeout=_PATIENCE_MS)
    page.evaluate(_SCROLL)


def _look(session: CDPSession) -> Look:
    session.send("HeapProfiler.collectGarbage")
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return Look(
        heap_mb=found["JSHeapUsedSize"] / 1e6,
        nodes=found["Nodes"],
        listeners=found["JSEventListeners"],
    )
