"""Create runs and sweeps in the browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.test_accessibility import serious_faults
from tests.browser.test_look import is_inside
from tests.support.live_server import LiveServer


def test_a_run_is_created_from_the_table(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/runs")
    page.get_by_role("button", name="New run").first.click()  # the empty table has a second button
    form = page.get_by_role("dialog", name="New run")
    form.get_by_role("button", name="Start run").click()
    expect(form).to_be_visible()  # an empty form is not sent
    form.get_by_label("Command").fill("echo begun-$((40 + 2))")
    form.get_by_label("Name").fill("typed in")
    form.get_by_label("Tags").fill("by hand, try")
    visitor.picture("new-run")
    assert serious_faults(page) == []
    form.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("heading", name="typed in", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Output")).to_contain_text("begun-42")
    run = lab.get("/runs?q=begun-&limit=1")[0]
    assert (run["tags"], run["created_by"]) == (["by hand", "try"], "person")


def test_a_sweep_is_created_from_the_palette_and_errors_show_in_the_form(visitor: Visitor, lab: LiveServer) -> None:
    visitor.allow(FAILED_REQUEST)  # a sweep that is refused
    page = visitor.sign_in("#/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("new sw")
    expect(palette.get_by_role("option").first).to_contain_text("New sweep")
    page.keyboard.press("Enter")
    form = page.get_by_role("dialog", name="New sweep")
    form.get_by_label("Name").fill("typed question")
    form.get_by_label("Command").fill("true {rate} {kind}")
    form.get_by_label("Parameters").fill("rate 0.1")
    form.get_by_role("button", name="Start sweep").click()
    expect(form.get_by_role("alert")).to_contain_text("lr: 0.1, 0.01")
    form.get_by_label("Parameters").fill("rate: 0.1, 0.1")
    form.get_by_role("button", name="Start sweep").click()
    expect(form.get_by_role("alert")).not_to_be_empty()  # the server's message
    form.get_by_label("Parameters").fill("rate: 0.1, 1e-2\nkind = adam, sgd")
    form.get_by_label("Seeds").fill("2")
    form.get_by_label("Metric").fill("acc")
    form.get_by_label("Goal").select_option("maximize")
    form.get_by_role("button", name="Start sweep").click()
    expect(page.get_by_role("heading", name="typed question", level=1)).to_be_visible()
    sweep = next(one for one in lab.get("/sweeps") if one["name"] == "typed question")
    assert sweep["parameters"] == {"rate": [0.1, 0.01], "kind": ["adam", "sgd"]}
    assert (sweep["seeds"], sweep["metric"]["key"], sweep["metric"]["goal"]) == ([0, 1], "acc", "max")


def test_a_half_filled_form_survives_a_reload_but_not_a_cancel(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/runs")
    page.get_by_role("button", name="New run").first.click()
    form = page.get_by_role("dialog", name="New run")
    form.get_by_label("Command").fill("echo half-$((20 + 1))")
    form.get_by_label("Tags").fill("kept")
    page.reload()
    expect(form.get_by_label("Command")).to_have_value("echo half-$((20 + 1))")
    expect(form.get_by_label("Tags")).to_have_value("kept")
    form.get_by_role("button", name="Cancel").click()
    expect(form).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(form.get_by_label("Tags")).to_have_value("kept")
    form.get_by_role("button", name="Start run").click()
    expect(page.get_by_role("region", name="Output")).to_contain_text("half-21")

    visitor.open("#/sweeps")
    page.get_by_role("button", name="New sweep").first.click()
    form = page.get_by_role("dialog", name="New sweep")
    expect(form.get_by_label("Command")).to_have_value("")
    form.get_by_label("Goal").select_option("maximize")
    page.reload()
    expect(form.get_by_label("Goal")).to_have_value("max")
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="New sweep")).to_be_visible()
    expect(form).to_have_count(0)


def test_new_work_fits_a_phone(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/sweeps")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="New sweep").first.click()
    expect(page.get_by_role("button", name="Start sweep")).to_be_in_viewport(ratio=1)
    is_inside(visitor, "new sweep")
    visitor.picture("new-sweep-phone")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
