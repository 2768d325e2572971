"""The compare page."""

from __future__ import annotations

import struct
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import Sample
from tests.browser.test_run_page import log_points
from tests.support.live_server import LiveServer


def test_runs_are_compared_as_curves_bands_table_and_scatter(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/compare?runs={','.join(sample.seeds)}")
    expect(page.get_by_role("heading", name="Compare 8 runs")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(3)
    swatches = page.locator(".legend .swatch")
    colours = "boxes => new Set(boxes.map((box) => box.style.background)).size"
    assert swatches.evaluate_all(colours) == 4, "runs that differ only in their seed share a colour"
    page.locator(".chart .u-over").first.hover()
    expect(page.locator(".reading").first).to_contain_text("mean of 2: lr=0.03 width=64")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download image of train/loss").click()
    width, height = struct.unpack(">II", Path(saved.value.path()).read_bytes()[16:24])
    assert (width, height) == (960, 440 + 16 + 5 * 20), "with its name and what each of the four curves is"
    page.get_by_role("button", name="Larger").first.click()
    expect(page.locator(".chart-big")).to_have_count(1)
    page.get_by_role("button", name="Smaller").click()
    page.get_by_label("Mean ± std over seeds").uncheck()
    expect(page.locator(".chart canvas")).to_have_count(3)
    assert swatches.evaluate_all(colours) == 8
    page.locator(".chart .u-over").first.hover()
    expect(page.locator(".reading-line")).to_have_count(3 * 8)  # every chart follows the pointer

    page.get_by_role("tab", name="Table").click()
    width = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="width", exact=True))
    expect(width).to_have_class("differs")
    page.get_by_label("Only differences").check()
    page.get_by_role("tab", name="Scatter").click()
    page.get_by_label("X axis", exact=True).select_option("width")
    page.get_by_label("Y axis", exact=True).select_option("train/loss")
    expect(page.locator("circle.dot")).to_have_count(8)
    page.get_by_label("Log x").check()
    expect(page.locator("circle.dot")).to_have_count(8)

    page.get_by_role("button", name="Remove").first.click()
    expect(page.get_by_role("heading", name="Compare 7 runs")).to_be_visible()


def test_the_scatter_plot_starts_with_a_varying_parameter(visitor: Visitor, lab: LiveServer) -> None:
    runs = [lab.submit("true", name=f"lr {lr}", params={"batch": 128, "lr": lr})["id"] for lr in (0.1, 0.2)]
    for run in runs:
        lab.wait_for_end(run)
        log_points(lab, run, "loss", [2, 1])
    page = visitor.sign_in(f"#/compare?runs={','.join(runs)}&tab=scatter")
    expect(page.get_by_label("X axis", exact=True)).to_have_value("p:lr")
    expect(page.locator(".axis-name")).to_have_text(["lr", "loss"])


def test_two_commands_with_the_same_parameters_are_two_curves(visitor: Visitor, lab: LiveServer) -> None:
    params = {"lr": 0.1}
    runs = [lab.submit(f"true --model {model}", name=model, params=params)["id"] for model in ("small", "large")]
    for run in runs:
        lab.wait_for_end(run)
        log_points(lab, run, "loss", [2, 1])
    page = visitor.sign_in(f"#/compare?runs={','.join(runs)}")
    page.locator(".chart .u-over").hover()
    expect(page.locator(".reading-line")).to_contain_text(["small", "large"])
    colours = page.locator(".legend .swatch").evaluate_all("boxes => boxes.map((box) => box.style.background)")
    assert len(set(colours)) == 2


def test_an_empty_comparison_explains_how_to_choose_runs(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/compare")
    expect(page.get_by_role("heading", name="Choose runs to compare")).to_be_visible()
    page.get_by_role("button", name="Compare the last 5 finished runs").click()
    expect(page.get_by_role("heading", name="Compare 5 runs")).to_be_visible()


def test_a_chart_reports_values_that_it_cannot_draw(visitor: Visitor, lab: LiveServer) -> None:
    runs = [lab.wait_for_end(lab.submit("true", name=f"edge-{index}")["id"])["id"] for index in range(2)]
    for run in runs:
        log_points(lab, run, "huge", [1e308, -1e308])
        log_points(lab, run, "mixed", [1, "NaN", 2])
    page = visitor.sign_in(f"#/compare?runs={','.join(runs)}")
    expect(page.get_by_role("figure", name="Chart of huge").get_by_text("4 too large to draw")).to_be_visible()
    expect(page.get_by_role("figure", name="Chart of mixed").get_by_text("2 NaN or infinite")).to_be_visible()


def test_parameters_named_like_object_properties_have_no_false_values(visitor: Visitor, lab: LiveServer) -> None:
    plain = lab.submit("true", name="plain")["id"]
    odd = lab.submit("true", name="odd", params={"__proto__": "mine", "constructor": "too"})["id"]
    page = visitor.sign_in(f"#/compare?runs={odd},{plain}&tab=table")
    for name, value in (("__proto__", "mine"), ("constructor", "too")):
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))
        expect(row.get_by_role("cell")).to_have_text([value, ""])


def test_a_comparison_of_deleted_runs_shows_a_message(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])["id"]
    assert lab.call("DELETE", f"/runs/{run}").status == 204
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in(f"#/compare?runs={run}")
    expect(page.get_by_role("heading", name="These runs no longer exist")).to_be_visible()
