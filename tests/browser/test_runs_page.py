"""The runs table: live updates, filters, keyboard."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Visitor
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


def row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def test_an_empty_list_shows_the_first_command(server: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(server)
    page = visitor.sign_in()
    expect(page.get_by_text("labwright run -- python train.py")).to_be_visible()
    visitor.picture("runs-empty")
    server.submit("true", name="the-first")
    expect(row(page, "the-first")).to_contain_text("finished")


def test_a_run_appears_and_finishes_without_a_reload(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in()
    page.evaluate("window.here = true")
    gate = lab.project / "gate"
    lab.submit(f"until [ -e {gate} ]; do sleep 0.1; done; exit 3", name="live-one")
    expect(row(page, "live-one")).to_contain_text("running")
    gate.touch()
    expect(row(page, "live-one")).to_contain_text("failed")
    expect(row(page, "live-one")).to_contain_text("exit 3")
    assert page.evaluate("window.here")


def test_no_new_run_is_missed_during_a_burst(visitor: Visitor, lab: LiveServer) -> None:
    """Two sweeps create runs in a burst: the second shifts the list while it is being read."""
    page = visitor.sign_in("#/runs?q=burst")
    expect(page.get_by_text("No matching runs")).to_be_visible()
    made: list[str] = []

    def make_more(route: Route) -> None:
        if len(made) < 2:
            made.append(_sweep_of_sixty(lab))
        route.continue_()

    page.route(re.compile(r"/runs\?limit=\d+$"), make_more)
    made.append(_sweep_of_sixty(lab))
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "121")
    assert len(made) == 2


def _sweep_of_sixty(lab: LiveServer) -> str:
    wanted = {"name": "burst", "base_command": "true burst {lr}", "parameters": {"lr": list(range(60))}, "again": True}
    return str(lab.post("/sweeps", wanted)["id"])


def test_a_rerun_from_the_table_appears_in_it(visitor: Visitor, lab: LiveServer) -> None:
    """The response arrives before the event of the new run."""
    lab.wait_for_end(lab.submit("true", name="twice")["id"])
    page = visitor.sign_in("#/runs?q=twice")
    page.get_by_role("checkbox", name="Select twice").check()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Rerun").click()
    page.get_by_role("heading", name="Runs", level=1).hover()  # rows do not move under the pointer
    expect(row(page, "twice")).to_have_count(2)


def test_metric_columns_update_live(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("sleep 30", name="measured")
    page = visitor.sign_in("#/runs?q=measured")
    for step, loss in ((1, 0.123456), (2, "NaN")):
        lab.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "val/loss", "step": step, "value": loss}]})
        shown = "0.1235" if step == 1 else "NaN"
        expect(row(page, "measured").locator("[data-key='val/loss']")).to_have_text(shown)
    lab.post(f"/runs/{run['id']}/stop")
    expect(row(page, "measured")).to_contain_text("stopped")


def test_rows_do_not_move_under_the_pointer(visitor: Visitor, lab: LiveServer) -> None:
    lab.wait_for_end(lab.submit("true", name="calm-1")["id"])
    page = visitor.sign_in("#/runs?q=calm")
    row(page, "calm-1").hover()
    lab.submit("true", name="calm-2")
    offer = page.get_by_role("button", name="Show 1 new run")
    expect(offer).to_be_visible()
    expect(row(page, "calm-2")).to_have_count(0)
    offer.click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("calm-2")


def test_filters_by_text_and_status_are_in_the_address(visitor: Visitor, lab: LiveServer) -> None:
    ids = [lab.submit(command, name=f"sift-{command}")["id"] for command in ("true", "false")]
    for run_id in ids:
        lab.wait_for_end(run_id)
    page = visitor.sign_in()
    page.get_by_label("Filter runs").fill("sift-")
    expect(row(page, "sift-true")).to_be_visible()
    page.get_by_role("button", name="Failed").click()
    expect(row(page, "sift-true")).to_have_count(0)
    expect(row(page, "sift-false")).to_be_visible()
    page.reload()
    expect(row(page, "sift-false")).to_be_visible()
    expect(page.get_by_label("Filter runs")).to_have_value("sift-")
    page.get_by_label("Filter runs").fill("nothing-like-this")
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_label("Filter runs")).to_have_value("")


def test_works_with_the_keyboard_alone(visitor: Visitor, lab: LiveServer) -> None:
    for name in ("keys-a", "keys-b"):
        lab.wait_for_end(lab.submit("echo said by $LABWRIGHT_RUN_ID", name=name)["id"])
    page = visitor.sign_in()
    press = page.keyboard.press
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    press("/")
    page.keyboard.type("keys-")
    expect(page.get_by_role("row")).to_have_count(3)
    press("Escape")
    press("j")
    press("j")
    expect(page.get_by_role("link", name="keys-a", exact=True)).to_be_focused()
    press("k")
    expect(page.get_by_role("link", name="keys-b", exact=True)).to_be_focused()
    press("Enter")
    expect(page.get_by_role("heading", name="keys-b")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    press("g")
    press("a")
    expect(page.get_by_role("heading", name="Alerts")).to_be_visible()
    press("g")
    press("r")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()


def test_only_visible_rows_are_in_the_page(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server().start()
    made = server.wait_for_end(server.submit("true", name="pattern")["id"])
    server.stop()
    copy_run(server, made["id"], 3_000)
    server.start()
    visitor = make_visitor(server)
    page = visitor.sign_in()
    expect(row(page, "copy 3000")).to_be_visible()

    def scrolled_to_the_oldest() -> bool:
        page.locator(".table").evaluate("box => box.scrollTop = box.scrollHeight")
        assert page.get_by_role("row").count() < 90
        return "pattern" in page.get_by_role("row").last.inner_text()

    wait_until(scrolled_to_the_oldest, "the oldest of all", timeout=60)


def copy_run(server: LiveServer, run_id: str, count: int) -> None:
    """Write runs into the database of a stopped server; the API would take half a minute."""
    with sqlite3.connect(server.state / "labwright.db") as db:
        (record,) = db.execute("SELECT record FROM runs WHERE id = ?", (run_id,)).fetchone()
        names = ((f"run-{n:010d}", f"copy {n}") for n in range(1, count + 1))
        db.executemany(
            "INSERT INTO runs (id, record) VALUES (?1, json_set(?3, '$.id', ?1, '$.name', ?2))",
            ((new_id, name, record) for new_id, name in names),
        )
    db.close()
