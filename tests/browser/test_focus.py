"""Keyboard focus: it stays in place when its button is removed or disabled."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.support.live_server import LiveServer


def press(button: Locator) -> None:
    button.focus()
    button.press("Enter")


def test_focus_stays_near_a_removed_button(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("sleep 600", name="to be stopped")
    page = visitor.sign_in(f"#/runs/{run['id']}")
    verbs = page.get_by_role("group", name="Run actions")
    press(verbs.get_by_role("button", name="Stop run"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(verbs.get_by_role("button", name="Stop run")).to_be_focused()
    page.keyboard.press("Enter")
    press(page.get_by_role("dialog").get_by_role("button", name="Stop run"))
    expect(verbs.get_by_role("button", name="Archive")).to_be_visible()
    expect(verbs).to_be_focused()
    page.keyboard.press("Tab")
    expect(verbs.get_by_role("button", name="Rerun")).to_be_focused()
    press(verbs.get_by_role("button", name="Archive"))
    expect(verbs.get_by_role("button", name="Unarchive")).to_be_visible()
    expect(verbs).to_be_focused()


def test_focus_moves_to_the_list_after_an_alert_is_answered(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("true", name="told of")
    lab.post(f"/runs/{run['id']}/alerts", {"message": "Is this one right?", "choices": ["ignore"]})
    page = visitor.sign_in("#/alerts")
    waiting = page.get_by_role("article").filter(has_text="Is this one right?").get_by_role("button", name="Ignore")
    press(waiting)
    expect(waiting).to_have_count(0)
    expect(page.get_by_role("region", name="Open")).to_be_focused()


def test_escape_leaves_a_field_for_good(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/runs")
    field = page.locator(".filter input")
    field.focus()
    field.press("Escape")
    run = lab.submit("true", name="a change of the page")
    expect(page.get_by_role("link", name=run["name"])).to_be_visible()
    expect(page.locator("body")).to_be_focused()


def test_focus_leaves_a_button_that_stays_disabled(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/settings")
    form = page.get_by_role("form", name="Model settings")
    form.get_by_label("model_retries").fill("3")
    press(form.get_by_role("button", name="Save changes"))
    expect(form.get_by_role("button", name="Save changes")).to_be_disabled()
    expect(form).to_be_focused()


def test_a_dialog_returns_the_focus_to_its_menu(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")
    more = page.get_by_role("main").get_by_role("button", name="More", exact=True)
    more.press("Enter")
    page.get_by_role("button", name="Rename…").press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
