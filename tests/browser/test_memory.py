"""Memory of a page that is open all day."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import CDPSession, expect

from tests.browser.conftest import Visitor
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

# One update per second for half an hour would be 1,800. The test sends them faster.
UPDATES = int(os.environ.get("LABWRIGHT_TEST_UPDATES", "1800"))
ROUNDS = 6
SCRIPT = """
import sys, time, labwright
labwright.init()
step = 0
for line in sys.stdin:
    for _ in range(int(line)):
        labwright.log({"loss": 1 / (step + 1), "accuracy": step}, step=step)
        print(f"\\033[32mstep {step}\\033[0m " + "x" * 100, flush=True)
        step += 1
        time.sleep(0.002)
"""


def held(session: CDPSession) -> dict[str, float]:
    """Return the heap size after garbage collection."""
    session.send("HeapProfiler.collectGarbage")
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    wanted = ("JSHeapUsedSize", "Nodes", "JSEventListeners")
    return {metric["name"]: metric["value"] for metric in found if metric["name"] in wanted}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["run", "runs"])
def test_an_open_page_does_not_leak_memory(place: str, lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    (lab.project / "endless.py").write_text(SCRIPT)
    run = lab.wait_for_status(lab.submit("python3 endless.py", name=f"endless {place}")["id"], "running")
    page = make_visitor(lab).sign_in(f"#/runs/{run['id']}" if place == "run" else "#/runs?q=endless")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    each, seen = UPDATES // ROUNDS, []
    for number in range(1, ROUNDS + 1):
        _feed(lab, run["id"], each)
        last = number * each - 1
        shown = page.get_by_text(f"step {last} ") if place == "run" else _cell(page, run["id"], last)
        expect(shown).to_be_visible(timeout=60_000)
        seen.append(held(session))
    lab.post(f"/runs/{run['id']}/stop")
    first, end = seen[1], seen[-1]  # the charts fill up in the first round
    assert end["JSHeapUsedSize"] - first["JSHeapUsedSize"] < 4e6, seen
    assert end["Nodes"] < first["Nodes"] + 1500, seen
    assert end["JSEventListeners"] < first["JSEventListeners"] + 100, seen


def _feed(lab: LiveServer, run_id: str, steps: int) -> None:
    """Add points and lines, and an event for every tenth."""
    before = lab.run(run_id)["summary"].get("accuracy", {}).get("last", -1)
    with open(lab.state / "runs" / run_id / "stdin", "w") as stdin:
        stdin.write(f"{steps}\n")
    for number in range(steps // 10):
        assert lab.call("PATCH", f"/runs/{run_id}", {"notes": f"after {before} and {number}"}).status == 200
    arrived = lambda: lab.run(run_id)["summary"].get("accuracy", {}).get("last") == before + steps  # noqa: E731
    wait_until(arrived, "all points", timeout=120)


def _cell(page: Any, run_id: str, last: int) -> Any:
    row = page.get_by_role("row").filter(has=page.locator(f"a[href$='{run_id}']"))
    return row.locator("[data-key=accuracy]", has_text=str(last))
