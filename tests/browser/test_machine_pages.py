"""Cluster, settings and help."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from labwright.sim.gpus import SimulatedGpus
from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.browser.test_accessibility import serious_faults
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


def test_the_cluster_is_detected_and_configured_and_the_queue_shows_reasons(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    server.wait_for_status(server.submit("sleep 300", name="in front")["id"], "running")
    behind = server.submit("true", name="behind")["id"]
    visitor = make_visitor(server)
    page = visitor.sign_in(f"#/runs/{behind}")
    page.locator(".run-reason").get_by_role("link", name="in front").click()
    expect(page.get_by_role("heading", name="in front")).to_be_visible()
    visitor.open("#/runs")
    expect(page.get_by_role("row").filter(has_text="behind")).to_contain_text("in use by in front")
    visitor.open("#/cluster")
    line = page.get_by_label("Queue").get_by_role("listitem").filter(has_text="behind")
    expect(line).to_contain_text("queued")
    expect(line.locator(".run-line-why")).not_to_be_empty()
    page.get_by_role("button", name="Detect").click()
    expect(page.get_by_role("status")).to_contain_text("Detected again")
    page.get_by_role("button", name="Configure manually").click()
    page.get_by_label("Max parallel runs").fill("2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".facts")).to_contain_text("configured manually")
    expect(page.locator(".facts")).to_contain_text("2 (manual)")
    expect(line).to_have_count(0)  # it overrides the setting, so both runs fit
    page.get_by_text("Detection details").click()
    expect(page.locator(".evidence tr").first).to_be_visible()


@pytest.mark.parametrize("runs", [2, 12], ids=["few", "many"])
def test_the_queue_is_ordered_and_its_reasons_are_current(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor], runs: int
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    server.wait_for_status(server.submit("sleep 300", name="in front")["id"], "running")
    values = list(range(runs))
    asked = {"name": "in line", "base_command": "true {x}", "parameters": {"x": values}, "auto_start": True}
    sweep = server.post("/sweeps", asked)["id"]
    page = make_visitor(server).sign_in("#/cluster")
    lines = page.get_by_label("Queue").get_by_role("listitem")
    expect(lines.get_by_role("link")).to_have_text([f"x={value}" for value in values])
    expect(lines.first).to_contain_text("in use by in front")  # by name, although no page has shown it yet
    server.post(f"/sweeps/{sweep}/pause")
    for line in (lines.first, lines.last):
        expect(line).to_contain_text("its sweep is paused")


def test_gpu_history_is_shown_after_a_restart(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor], tmp_path: Path
) -> None:
    cards = SimulatedGpus.create(tmp_path / "sim", 2)
    server = make_server(**cards.environment(os.environ)).start()
    seen = wait_until(lambda: server.get("/cluster/history")["gpus"], "the first sample of the cards")
    first = seen[0]["times"][0]
    server.restart()
    visitor = make_visitor(server)
    page = visitor.sign_in("#/cluster")
    expect(page.locator(".trace-busy")).to_have_count(2, timeout=60_000)  # after the second sample
    assert serious_faults(page) == []
    samples = [json.loads(line)["at"] for line in (server.state / "gpu-history.jsonl").read_text().splitlines()]
    assert len(samples) > 1 and any(abs(at - first) < 0.01 for at in samples), "the sample from before is lost"
    server.submit("sleep 300", name="on a card", gpus=1)
    expect(page.get_by_label("GPUs", exact=True).get_by_role("link", name="on a card")).to_be_visible()
    page.get_by_role("button", name="12 hours").click()
    expect(page.get_by_role("button", name="12 hours")).to_have_attribute("aria-pressed", "true")
    visitor.picture("cluster-gpus")


NOTICES = """
window.noticed = []
window.Notification = class {
    static permission = "granted"
    static requestPermission = async () => "granted"
    constructor(title, { body }) { noticed.push(`${title}: ${body}`) }
}
Object.defineProperty(document, "hidden", { get: () => true })
"""


def test_notifications_come_from_the_tab_that_reads_the_stream(visitor: Visitor, lab: LiveServer) -> None:
    visitor.page.context.add_init_script(NOTICES)
    reads = visitor.sign_in("#/runs")
    lab.wait_for_end(lab.submit("false", name="before")["id"])
    expect(reads.get_by_role("link", name="before").first).to_be_visible()
    other = reads.context.new_page()
    other.goto(f"{lab.url}/#/settings?tab=browser")
    other.get_by_role("tab", name="This browser").click()
    other.get_by_role("button", name="Turn on notifications").click()
    expect(other.get_by_role("button", name="Turn off notifications")).to_be_visible()
    lab.submit("false", name="noticed")
    wait_until(lambda: "noticed: Run failed · Exit code 1" in reads.evaluate("noticed"), "the notice")
    assert len([text for text in reads.evaluate("noticed") if text.startswith("noticed:")]) == 1, "one run, two notices"
    assert other.evaluate("noticed") == []


def test_a_notification_names_a_run_that_is_not_shown(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    visitor.page.context.add_init_script(NOTICES + "localStorage.setItem('labwright.notices', 'true')")
    page = visitor.sign_in("#/help")
    expect(page.get_by_text("ssh -L")).to_be_visible()
    alert = lab.post(f"/runs/{sample.seeds[0]}/alerts", {"message": "loss is NaN", "choices": ["ignore"]})
    wait_until(lambda: page.evaluate("noticed.length") > 0, "the notice")
    assert page.evaluate("noticed") == [f"{lab.get(f'/runs/{sample.seeds[0]}')['name']}: loss is NaN"]
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "ignore"})


def test_settings_storage_and_this_browser(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    page = visitor.sign_in("#/settings?tab=server")
    expect(page.get_by_role("row").filter(has_text="max_parallel")).to_have_class("differs")
    page.get_by_role("tab", name="Notifications").click()
    expect(page.get_by_text("No channels")).to_be_visible()
    page.get_by_role("tab", name="Storage").click()
    page.get_by_role("button", name="Back up now").click()
    expect(page.get_by_role("status")).to_contain_text("Backup written to")
    page.get_by_role("button", name="Estimate free space").click()
    expect(page.get_by_text("Nothing to free with the current retention settings.")).to_be_visible()
    page.get_by_role("tab", name="This browser").click()
    page.context.grant_permissions(["notifications"], origin=lab.url)
    page.get_by_role("button", name="Turn on notifications").click()
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_visible()
    visitor.open("#/help")
    expect(page.get_by_text("ssh -L")).to_be_visible()
