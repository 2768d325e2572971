"""The sweep pages: results and actions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import Sample
from tests.browser.test_run_page import log_points
from tests.support.live_server import LiveServer


def test_a_sweep_shows_best_importance_and_configurations(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/sweeps")
    page.get_by_role("link", name="learning rate and width").click()
    expect(page.get_by_role("heading", name="Significance")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(1)
    expect(page.get_by_text("This needs 10 configurations")).to_be_visible()
    expect(page.locator(".parallel-line")).to_have_count(4)
    expect(page.locator(".heat td")).to_have_count(4)
    page.get_by_label("X axis", exact=True).select_option("width")
    expect(page.locator(".heat td")).to_have_count(4)
    page.get_by_role("tab", name="Configurations").click()
    expect(page.get_by_role("row")).to_have_count(5)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download (CSV)").click()
    assert len(Path(saved.value.path()).read_text().splitlines()) == 5
    page.get_by_role("link", name="Runs of configuration 1").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    visitor.open(f"#/runs/{sample.seeds[0]}")
    page.locator(".facts").get_by_role("link", name="learning rate and width").click()
    expect(page.get_by_role("heading", name="learning rate and width", level=1)).to_be_visible()


def test_a_sweep_is_started_paused_resumed_extended_retried_and_stopped(visitor: Visitor, lab: LiveServer) -> None:
    wanted = {"name": "verbs", "base_command": "sleep {wait}; false", "parameters": {"wait": [0, 300]}, "parallel": 2}
    sweep = lab.post("/sweeps", wanted)
    page = visitor.sign_in(f"#/sweeps/{sweep['id']}")
    status = page.locator(".run-head .status")
    button = page.locator(".verbs").get_by_role("button", name="Start")
    button.click()
    expect(status).to_have_text("running")
    page.get_by_role("button", name="Pause").click()
    expect(status).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(status).to_have_text("running")
    page.get_by_role("button", name="Retry 1 failed").click()
    expect(page.get_by_role("status")).to_contain_text("1 new run.")
    page.get_by_role("button", name="Extend…").click()
    extend = page.get_by_role("button", name="Extend sweep")
    expect(extend).to_be_disabled()  # nothing to extend yet
    expect(page.get_by_label("Total seeds")).to_have_count(0)  # a sweep without seeds stays without
    values = page.get_by_label("More values for wait")
    expect(values).to_have_attribute("placeholder", "current: 0, 300")
    values.fill("301")
    extend.click()
    expect(page.locator(".sweep-progress")).to_contain_text("4 runs")
    page.get_by_role("button", name="Stop sweep").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop sweep").click()
    expect(status).to_have_text("stopped")
    page.get_by_role("tab", name="Runs").click()
    expect(page.locator(".run-line")).to_have_count(4)


def test_a_sweep_without_its_metric_lists_the_logged_metrics(visitor: Visitor, lab: LiveServer) -> None:
    asked = {
        "name": "mistyped",
        "base_command": """echo '{"step": 1, "val_accuracy": 0.5}'; true {x}""",
        "parameters": {"x": [1, 2]},
        "metric": {"key": "val_acc", "goal": "max"},
        "auto_start": True,
    }
    sweep = lab.post("/sweeps", asked)["id"]
    page = visitor.sign_in(f"#/sweeps/{sweep}")
    expect(page.get_by_text("2 runs finished, but none logged val_acc.")).to_be_visible()
    expect(page.get_by_text("Logged metrics: val_accuracy", exact=True)).to_be_visible()
    expect(page.get_by_text("labwright.log")).to_contain_text('{"val_acc": value}')
    expect(page.get_by_text("If the script prints val_acc=0.5")).to_contain_text("key_value = true")


def test_a_sweep_without_finite_values_shows_a_message(visitor: Visitor, lab: LiveServer) -> None:
    asked = {
        "name": "diverged",
        "base_command": """echo '{"step": 1, "loss": NaN}'; true {x}""",
        "parameters": {"x": [1, 2]},
        "metric": {"key": "loss", "goal": "min"},
        "auto_start": True,
    }
    page = visitor.sign_in(f"#/sweeps/{lab.post('/sweeps', asked)['id']}")
    expect(page.get_by_text("2 runs finished, but none has a finite value of loss.")).to_be_visible()
    expect(page.get_by_text("Logged metrics:")).to_have_count(0)


def test_the_empty_sweeps_page_shows_an_example_file(server: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(server)
    page = visitor.sign_in("#/sweeps")
    expect(page.get_by_text("base_command: python train.py")).to_be_visible()
    visitor.open("#/plans")
    expect(page.get_by_text("labwright plan save plan.md")).to_be_visible()
    visitor.open("#/cluster")
    expect(page.get_by_text("The queue is empty.")).to_be_visible()


def test_errors_of_a_dialog_are_shown_in_front_of_it(visitor: Visitor, sample: Sample) -> None:
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in(f"#/sweeps/{sample.sweep}")
    page.get_by_role("button", name="Extend…").click()
    page.get_by_label("More values for lr").fill("much")
    page.get_by_role("button", name="Extend sweep").click()
    expect(page.get_by_text('lr has numbers, but "much" is not a number.')).to_be_visible()
    page.get_by_role("button", name="Close").click()  # behind the dialog it could not be clicked
    expect(page.get_by_text('lr has numbers, but "much" is not a number.')).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()


def test_code_in_a_verdict_is_shown_as_code(visitor: Visitor, lab: LiveServer) -> None:
    wanted = {"name": "one seed", "base_command": "true {lr}", "parameters": {"lr": [1, 2]}, "auto_start": True}
    sweep = lab.post("/sweeps", {**wanted, "metric": {"key": "loss", "goal": "min"}})["id"]
    for at, run in enumerate(lab.get(f"/runs?sweep_id={sweep}")):
        lab.wait_for_end(run["id"])
        log_points(lab, run["id"], "loss", [at])
    page = visitor.sign_in(f"#/sweeps/{sweep}")
    expect(page.locator(".verdict code")).to_have_text("seeds: 3")


def test_failed_values_are_in_the_heat_map(visitor: Visitor, lab: LiveServer) -> None:
    wanted = {
        "name": "one value breaks",
        "base_command": "test {lr} != 0.5 && true {width}",
        "parameters": {"lr": [0.1, 0.5], "width": [1, 2]},
        "metric": {"key": "acc", "goal": "max"},
        "auto_start": True,
    }
    sweep = lab.post("/sweeps", wanted)
    for run in lab.get(f"/runs?sweep_id={sweep['id']}"):
        if run["params"]["lr"] == 0.1:
            log_points(lab, run["id"], "acc", [0.1])
        lab.wait_for_end(run["id"])
    page = visitor.sign_in(f"#/sweeps/{sweep['id']}")
    expect(page.locator(".heat thead th")).to_have_text(["width \\ lr", "0.1", "0.5"])
    expect(page.locator(".heat td")).to_have_text(["0.1", "no value"] * 2)
