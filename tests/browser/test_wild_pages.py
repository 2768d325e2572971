"""The wild pages, and a loop started from a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.test_accessibility import serious_faults
from tests.browser.test_look import LOOKS, is_inside
from tests.support.live_server import LiveServer

HOSTILE = "lr 0.1 to 0.2 <img src=x onerror=alert()> <script>alert()</script>"
SCRIPT = """
import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
time.sleep(0.4)
while os.path.exists("hold"):
    time.sleep(0.05)
print(f"val_acc={0.6 - abs(args.lr - 0.1) + args.seed * 1e-4:.5f}", flush=True)
"""
SLOTS = 3  # as many as a baseline has seeds
GOAL = "reach val_acc 0.99 by tuning lr"


@pytest.fixture(scope="module")
def wild_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("wild") / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / "eval.py").write_text("LIMIT = 1\n")
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL=str(SLOTS)).start()
    yield server
    for wild in server.get("/wild"):
        server.call("POST", f"/wild/{wild['id']}/stop")
    server.stop()


@pytest.fixture
def hold(wild_lab: LiveServer) -> Iterator[Path]:
    """While this file exists, no run ends by itself."""
    path = wild_lab.project / "hold"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


def test_a_loop_is_started_steered_paused_and_stopped(
    wild_lab: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    visitor = make_visitor(wild_lab)
    visitor.allow(FAILED_REQUEST)  # a goal that is refused
    page = visitor.sign_in("#/wild")
    expect(page.get_by_role("heading", name="No loops yet")).to_be_visible()
    page.get_by_label("Goal").fill("hello")
    page.get_by_role("button", name="Start loop").click()
    expect(page.get_by_role("alert")).not_to_be_empty()
    page.get_by_label("Goal").fill(GOAL)
    page.get_by_text("Budget and limits").click()
    page.get_by_label("Max runs").fill("40")
    page.get_by_label("Protected files").fill("eval.py")
    page.get_by_role("button", name="Start loop").click()
    expect(page.get_by_role("heading", name=GOAL, level=1)).to_be_visible()
    tree = page.get_by_role("list", name="Iterations")
    expect(tree.locator(".tree-node").first).to_contain_text("baseline", timeout=60_000)
    page.get_by_label("Instruction").fill(HOSTILE)
    page.get_by_role("button", name="Steer").click()
    expect(page.get_by_label("Steer", exact=True)).to_contain_text(HOSTILE)
    expect(tree.locator(".tree-node").nth(1)).to_contain_text("lr=", timeout=60_000)
    expect(page.get_by_role("region", name="Budget")).to_contain_text("of 40")
    status = page.locator(".run-head .status").first
    page.get_by_role("button", name="Pause").click()
    expect(status).to_have_text("paused")
    page.get_by_role("button", name="Change budget…").click()
    page.get_by_role("dialog").get_by_label("Max runs").fill("41")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("region", name="Budget")).to_contain_text("of 41")
    visitor.picture("wild-loop")
    assert serious_faults(page) == []
    page.get_by_role("button", name="Stop loop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop loop").click()
    expect(status).to_have_text("stopped")
    page.get_by_role("tab", name="Report").click()
    expect(page.get_by_role("article")).to_contain_text("val_acc")
    assert page.get_by_role("article").locator("img, script").count() == 0
    page.get_by_role("tab", name="Details").click()
    expect(page.get_by_text("eval.py")).to_be_visible()
    visitor.open("#/wild")
    expect(page.get_by_role("link", name=GOAL)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=GOAL, level=1)).to_be_visible()


@pytest.mark.usefixtures("hold")
def test_a_loop_shows_why_its_runs_wait(wild_lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    taken = [wild_lab.submit("sleep 600", name="in front")["id"] for _ in range(SLOTS)]
    for run_id in taken:
        wild_lab.wait_for_status(run_id, "running")
    wild_id = wild_lab.post("/wild/start", {"goal": GOAL})["id"]
    page = make_visitor(wild_lab).sign_in(f"#/wild/{wild_id}")
    expect(page.locator(".run-reason")).to_have_text("Waiting for its runs to start.")
    baseline = page.get_by_role("list", name="Iterations").locator(".tree-node").first
    expect(baseline.locator(".tree-head")).to_contain_text("waiting")
    expect(baseline.locator(".run-line-why").first).to_contain_text("in use by in front")
    wild_lab.post(f"/runs/{taken[0]}/stop")
    expect(page.locator(".run-reason")).to_have_text("Waiting for its runs to end.")
    expect(baseline.locator(".tree-head")).to_contain_text("running")
    wild_lab.post(f"/wild/{wild_id}/stop")
    for run_id in taken[1:]:
        wild_lab.post(f"/runs/{run_id}/stop")
    expect(baseline.locator(".run-line")).to_have_count(0)


def test_a_paused_loop_shows_ended_runs_as_ended(
    wild_lab: LiveServer, make_visitor: Callable[..., Visitor], hold: Path
) -> None:
    wild_id = wild_lab.post("/wild/start", {"goal": GOAL})["id"]
    page = make_visitor(wild_lab).sign_in(f"#/wild/{wild_id}")
    baseline = page.get_by_role("list", name="Iterations").locator(".tree-node").first
    expect(baseline.locator(".run-line", has_text="running")).to_have_count(SLOTS)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".run-head .status").first).to_have_text("paused")
    hold.unlink()
    expect(baseline.locator(".tree-head")).to_contain_text("not decided yet")
    page.get_by_role("button", name="Resume").click()
    expect(baseline.locator(".tree-head")).to_contain_text("baseline")
    wild_lab.post(f"/wild/{wild_id}/stop")


def test_an_alert_shows_the_goal_of_its_loop(wild_lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    goal = "reach val_acc 0.98 by tuning lr"
    wild_id = wild_lab.post("/wild/start", {"goal": goal, "budget": {"runs": 1}})["id"]
    page = make_visitor(wild_lab).sign_in("#/alerts")
    page.get_by_label("Open").get_by_role("link", name=goal).click()
    expect(page.get_by_role("heading", name=goal, level=1)).to_be_visible()
    wild_lab.post(f"/wild/{wild_id}/stop")


def test_a_wild_conversation_links_to_its_loop(wild_lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    page = make_visitor(wild_lab).sign_in("#/chat")
    page.get_by_role("button", name="wild", exact=True).click()
    field = page.get_by_role("textbox", name="Message")
    field.fill(GOAL)
    field.press("Enter")
    expect(page.locator(".notice-line", has_text="continues by itself")).to_be_visible(timeout=60_000)
    field.fill("stop")
    field.press("Enter")
    expect(page.locator(".answer").last).to_contain_text("is stopped", timeout=60_000)
    page.locator(".answer").last.get_by_role("link", name=re.compile("^wild-")).first.click()
    expect(page.locator(".run-head .status").first).to_have_text("stopped")


@pytest.mark.parametrize("look", ["light", "phone-dark"])
def test_wild_pages_fit_and_are_accessible(
    wild_lab: LiveServer, make_visitor: Callable[..., Visitor], look: str
) -> None:
    wild = an_ended_loop(wild_lab)
    visitor = make_visitor(wild_lab, **LOOKS[look])
    page = visitor.sign_in("#/wild")
    addresses = {
        "wild": "#/wild",
        **{f"wild-{tab}": f"#/wild/{wild}?tab={tab}" for tab in ("tree", "report", "details")},
    }
    for name, address in addresses.items():
        visitor.open(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        is_inside(visitor, name)
        assert serious_faults(page) == [], name
        visitor.picture(f"{name}-{look}")


def an_ended_loop(lab: LiveServer) -> str:
    if not lab.get("/wild"):
        lab.post("/wild/start", {"goal": GOAL, "budget": {"runs": 5}})
    wild_id: str = lab.get("/wild")[-1]["id"]
    lab.call("POST", f"/wild/{wild_id}/stop")
    return wild_id
