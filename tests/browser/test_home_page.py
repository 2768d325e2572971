"""The home page, alerts, the window title and the palette."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Route, expect

from labwright.sim.slurm import SimulatedSlurm
from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.support.live_server import LiveServer


def test_home_shows_running_failed_and_open_items(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/")
    expect(page.get_by_label("Running", exact=True).get_by_role("link", name="resnet18 warm-up")).to_be_visible()
    expect(page.get_by_label("Recent failures").get_by_role("link", name="resnet18 breaks")).to_be_visible()
    expect(page.get_by_label("Needs attention")).to_contain_text("critical")
    expect(page.get_by_label("Machine")).to_contain_text("no GPU")
    expect(page.get_by_label("Plans").get_by_role("link", name="Does width help?")).to_be_visible()
    page.get_by_label("Running", exact=True).get_by_role("link", name="resnet18 warm-up").click()
    expect(page.get_by_role("heading", name="resnet18 warm-up")).to_be_visible()


def test_counts_are_hidden_until_they_are_known(visitor: Visitor, sample: Sample) -> None:
    page = visitor.page
    held: list[Route] = []
    page.route("**/cluster", lambda route: held.append(route))
    visitor.sign_in("#/")
    expect(page.get_by_label("Running", exact=True)).to_contain_text("resnet18 warm-up")
    expect(page.get_by_text("0 running")).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute("**/cluster")
    expect(page.locator(".tally")).to_contain_text("running")


def test_pending_slurm_jobs_count_as_waiting(
    slurm: SimulatedSlurm, make_slurm_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_slurm_server(slurm).start()
    server.submit("true", name="in its queue", slurm={"extra": ["--begin=now+1hour"]})
    page = make_visitor(server).sign_in("#/")
    line = page.get_by_label("Waiting", exact=True).get_by_role("listitem").filter(has_text="in its queue")
    expect(line.locator(".run-line-why")).to_contain_text("Slurm: pending")
    expect(page.locator(".tally")).to_contain_text("0 running · 1 waiting")


def test_an_alert_is_answered_and_leads_to_a_rerun(visitor: Visitor, lab: LiveServer) -> None:
    """alert → answer → rerun"""
    run = lab.wait_for_end(lab.submit("false", name="asks for a rerun")["id"])
    page = visitor.sign_in("#/alerts")
    alert = page.get_by_role("article").filter(has=page.get_by_role("link", name="asks for a rerun")).first
    alert.get_by_role("button", name="rerun").click()
    expect(page.get_by_role("status")).to_contain_text("Answered: rerun")
    visitor.open("#/runs?q=asks for a rerun")
    expect(page.get_by_role("row").filter(has_text="asks for a rerun")).to_have_count(2)
    (again,) = [one for one in lab.all_runs() if one["parent_run_id"] == run["id"]]
    visitor.open(f"#/runs/{again['id']}")
    origin = page.locator(".facts").get_by_role("link", name="asks for a rerun")
    expect(origin).to_have_attribute("href", f"#/runs/{run['id']}")


def test_the_tab_title_shows_unseen_failures(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.evaluate("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })")
    lab.submit("false", name="unseen")
    expect(page).to_have_title(re.compile(r"^\d+ failed · "))
    icon = page.locator("link[rel=icon]")
    expect(icon).to_have_attribute("href", "assets/favicon-failed.svg")
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).not_to_have_title(re.compile("failed"))
    expect(icon).not_to_have_attribute("href", "assets/favicon-failed.svg")


def test_the_first_run_from_an_empty_page(server: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    """first run"""
    page = make_visitor(server).sign_in("#/")
    expect(page.get_by_text("labwright run -- python train.py")).to_be_visible()
    gate = server.project / "gate"
    server.submit(f"echo hello; until [ -e {gate} ]; do sleep 0.1; done", name="my first")
    page.get_by_label("Running", exact=True).get_by_role("link", name="my first").click()
    expect(page.get_by_role("log")).to_contain_text("hello")
    expect(page).to_have_title(f"1 running · my first · running · {server.project.name} · Labwright")
    assert page.locator("link[rel=icon]").get_attribute("href") == "assets/favicon-running.svg"
    gate.touch()
    expect(page.locator(".run-head .status")).to_contain_text("finished")
    expect(page).to_have_title(f"my first · finished · {server.project.name} · Labwright")


def test_the_palette_finds_a_run_a_sweep_a_plan_and_a_page(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/")
    for words, heading in (
        ("warm-up", "resnet18 warm-up"),
        ("learning rate and", "learning rate and width"),
        ("width help", "Does width help?"),
        ("clust", "Cluster"),
    ):
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox", name="Find")).to_be_focused()
        page.keyboard.type(words)
        expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text(heading)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.keyboard.press("Control+k")
    page.keyboard.type("nothing has this name")
    expect(page.get_by_text("No matches")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
