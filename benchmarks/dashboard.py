"""The dashboard in a real browser: first rows, scrolling, many charts, live updates, a 1 GB log, sizes, memory."""

from __future__ import annotations

import gzip
import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.figure import Figure, at_most, median_of
from benchmarks.logs import write_log
from benchmarks.server import fresh_server
from labwright.paths import ProjectPaths
from labwright.server.routes.dashboard import FOLDER
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.live_server import LiveServer

_RUNS = 10_000
_ROUNDS = 5
_FRAMES = 240
_CHARTS, _CURVES, _POINTS = 20, 10, 1000
_RATE, _LIVE_SECONDS = 200, 20
_HERE = "(hash) => { location.hash = hash }"
# When so many things that answer to a selector are in the page, and drawn.
_WATCH = """([selector, count]) => new Promise((resolve) => {
    const drawn = () => requestAnimationFrame(() => resolve(performance.now()));
    const look = () => document.querySelectorAll(selector).length >= count && drawn();
    new MutationObserver(look).observe(document, { childList: true, subtree: true });
    look();
})"""
_SCROLL = """async (frames) => {
    const box = document.querySelector(".table");
    let worst = 0;
    let before = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < frames; frame += 1) {
        box.scrollTop += 90;
        const now = await new Promise(requestAnimationFrame);
        worst = Math.max(worst, now - before);
        before = now;
    }
    return worst;
}"""


def measure() -> list[Figure]:
    return [*_table(), *_charts_and_live(), _log(), _sizes()]


@contextmanager
def browser_page(server: LiveServer) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--enable-precise-memory-info"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{server.url}/#token={server.token}")
        page.get_by_role("navigation").wait_for()
        yield page
        browser.close()


def _table() -> list[Figure]:
    with fresh_server() as server:
        run_id = server.wait_for_end(server.submit("true", name="pattern")["id"])["id"]
        server.stop()
        copy_runs(server, run_id, _RUNS)
        server.start(cold=True)
        with browser_page(server) as page:
            page.evaluate(_HERE, "#/runs")
            first, first_work = _with_work(page, lambda: _first_rows(page))
            worst, scroll_work = _with_work(page, lambda: float(page.evaluate(_SCROLL, _FRAMES)))
    frame = [work / _FRAMES for work in scroll_work]
    return [
        median_of(f"dashboard: first rows of {_RUNS:,} runs", "ms", first, "a reload, to drawn rows", at_most(1000)),
        median_of("dashboard: longest frame while scrolling", "ms", worst, f"{_FRAMES} frames a round", at_most(50)),
        median_of("dashboard: first rows, processor time", "ms", first_work, "of the browser, all its processes", None),
        median_of("dashboard: a frame, processor time", "ms", frame, "of the browser, all its processes", None),
    ]


def _with_work(page: Page, deed: Callable[[], float]) -> tuple[list[float], list[float]]:
    """What each round answered, and the processor time it took: that hardly depends on what else the machine does."""
    answers, work = [], []
    for _ in range(_ROUNDS):
        before = _browser_work(page)
        answers.append(deed())
        work.append(_browser_work(page) - before)
    return answers, work


def _browser_work(page: Page) -> float:
    """In milliseconds, of all processes of the browser so far."""
    assert page.context.browser is not None
    session = page.context.browser.new_browser_cdp_session()
    found = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return float(sum(process["cpuTime"] for process in found)) * 1e3


def copy_runs(server: LiveServer, run_id: str, count: int) -> None:
    """Into the database of a server that is not running."""
    with sqlite3.connect(server.state / "labwright.db") as database:
        (record,) = database.execute("SELECT record FROM runs WHERE id = ?", (run_id,)).fetchone()
        names = ((f"run-{n:010d}", f"copy {n}", record) for n in range(count))
        database.executemany("INSERT INTO runs (id, record) VALUES (?1, json_set(?3, '$.id', ?1, '$.name', ?2))", names)
    database.close()


def _first_rows(page: Page) -> float:
    page.reload(wait_until="commit")
    return float(page.evaluate(_WATCH, [".row .cell-name a", 1]))


def _charts_and_live() -> list[Figure]:
    with fresh_server() as server:
        ids = [_run_with_curves(server, seed) for seed in range(_CURVES)]
        with browser_page(server) as page:
            drawn = [_open_compare(page, ids) for _ in range(_ROUNDS)]
            lag, growth = _live(server, page, ids[0])
    shape = f"{_CHARTS} charts × {_CURVES} runs × {_POINTS:,} points"
    return [
        median_of(f"dashboard: {shape}", "ms", drawn, "from the click to the last canvas", at_most(1000)),
        median_of(
            "dashboard: behind at 200 updates/s", "ms", [lag], f"after {_LIVE_SECONDS} s of updates", at_most(2500)
        ),
        median_of("dashboard: heap growth under updates", "MB", [growth], f"over {_LIVE_SECONDS} s", at_most(10)),
    ]


def _run_with_curves(server: LiveServer, seed: int) -> str:
    run_id: str = server.wait_for_end(server.submit("true", params={"width": seed}, seed=seed)["id"])["id"]
    for chart in range(_CHARTS):
        points = [
            {"key": f"metric/{chart:02d}", "step": step, "value": math.sin(step / 50 + seed) + chart}
            for step in range(_POINTS)
        ]
        assert server.call("POST", f"/runs/{run_id}/metrics", {"points": points}).status == 202
    return run_id


def _open_compare(page: Page, ids: list[str]) -> float:
    """All of them in view at once, so that none waits to be scrolled to."""
    page.set_viewport_size({"width": 1280, "height": 2400})
    page.evaluate(_HERE, "#/help")
    page.get_by_role("heading", name="Help").wait_for()
    page.evaluate("localStorage.setItem('labwright.mean', 'false')")
    began = time.perf_counter()
    page.evaluate(_HERE, f"#/compare?runs={','.join(ids)}")
    page.evaluate(_WATCH, [".chart canvas", _CHARTS])
    return (time.perf_counter() - began) * 1e3


def _live(server: LiveServer, page: Page, run_id: str) -> tuple[float, float]:
    """How long after the last of many points its value is on the page; and what the page's memory grew by meanwhile."""
    page.evaluate(_HERE, f"#/runs/{run_id}")
    page.locator(".chart canvas").first.wait_for()
    before = _heap(page)
    step, due = _POINTS, time.perf_counter()
    for _ in range(_LIVE_SECONDS * 10):
        points = [{"key": "metric/00", "step": step + at, "value": float(step + at)} for at in range(_RATE // 10)]
        server.call("POST", f"/runs/{run_id}/metrics", {"points": points})
        step += _RATE // 10
        due += 0.1
        time.sleep(max(0.0, due - time.perf_counter()))
    began = time.perf_counter()
    page.get_by_role("img", name=f"metric/00: last {step - 1} at step {step - 1}").wait_for()
    return (time.perf_counter() - began) * 1e3, _heap(page) - before


def _heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(page.evaluate("performance.memory.usedJSHeapSize")) / 1e6


def _log() -> Figure:
    with fresh_server(LABWRIGHT_LOG_CAP_MB="0") as server:
        run_id = server.wait_for_end(server.submit("true")["id"])["id"]
        write_log(Path(ProjectPaths(server.project).run(run_id).output))
        with browser_page(server) as page:
            shown = []
            for _ in range(_ROUNDS):
                page.evaluate(_HERE, "#/help")
                page.get_by_role("heading", name="Help").wait_for()
                began = time.perf_counter()
                page.evaluate(_HERE, f"#/runs/{run_id}")
                page.evaluate(_WATCH, [".log .line", 5])
                shown.append((time.perf_counter() - began) * 1e3)
    return median_of("dashboard: page of a 1 GB log", "ms", shown, "from the click to its last lines", at_most(300))


def _sizes() -> Figure:
    files = [path for path in FOLDER.rglob("*") if path.suffix in (".js", ".css", ".html")]
    total = sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000
    return median_of("dashboard: all assets, compressed", "kB", [total], f"{len(files)} files, gzip each", at_most(900))
