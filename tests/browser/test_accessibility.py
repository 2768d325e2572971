"""Accessibility: axe-core finds nothing serious on any page, in light and dark, and the keyboard is enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.support.live_server import LiveServer

AXE = Path(__file__).with_name("axe.min.js")
SERIOUS = ("serious", "critical")
SETTINGS = ("limits", "notifications", "storage", "server", "browser")
PLAIN = ("", "sweeps", "plans", "chat", "cluster", "alerts", "skills", "memory", "settings", "help")


def addresses(sample: Sample) -> dict[str, str]:
    run, sweep, plan = f"#/runs/{sample.failed}", f"#/sweeps/{sample.sweep}", f"#/plans/{sample.plan}"
    compare = f"#/compare?runs={','.join(sample.seeds[:4])}"
    return {
        **{name: f"#/{name}" for name in PLAIN},
        "runs": f"#/runs?sweep={sample.sweep}",
        "grouped": f"#/runs?sweep={sample.sweep}&group=config",
        "run": run,
        **{f"run {tab}": f"{run}?tab={tab}" for tab in ("details", "code", "events")},
        "artifacts": f"#/runs/{sample.artist}?tab=artifacts",
        "compare": compare,
        **{f"compare {tab}": f"{compare}&tab={tab}" for tab in ("table", "scatter")},
        "sweep": sweep,
        **{f"sweep {tab}": f"{sweep}?tab={tab}" for tab in ("configurations", "runs", "details")},
        "conversation": f"#/chat/{sample.conversation}",
        "skill": f"#/skills/{sample.skill}",
        "skill text": "#/skills/agent-mode?tab=text",
        "plan": plan,
        "versions": f"{plan}?tab=versions",
        **{f"settings {tab}": f"#/settings?tab={tab}" for tab in SETTINGS},
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_serious_accessibility_violation(
    lab: LiveServer, sample: Sample, make_visitor: Callable[..., Visitor], scheme: str
) -> None:
    visitor = make_visitor(lab, color_scheme=scheme)
    page = visitor.sign_in("#/")
    faults: dict[str, Any] = {}
    for name, address in addresses(sample).items():
        visitor.open(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        if found := serious_faults(page):
            faults[name] = found
    assert faults == {}


def serious_faults(page: Page) -> list[Any]:
    """Run axe-core. The debugger injects it, because the content security policy forbids other scripts."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text() + "; undefined")
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        (fault["id"], [(node["html"][:160], node["any"][:1]) for node in fault["nodes"][:3]])
        for fault in found["violations"]
        if fault["impact"] in SERIOUS
    ]


def test_sign_in_and_dialogs_have_no_serious_accessibility_violation(
    visitor: Visitor, lab: LiveServer, sample: Sample
) -> None:
    visitor.page.goto(lab.url)
    expect(visitor.page.get_by_label("Token")).to_be_visible()
    assert serious_faults(visitor.page) == []
    page = visitor.sign_in(f"#/runs/{sample.running}")
    page.get_by_role("button", name="Stop run").click()
    assert serious_faults(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    assert serious_faults(page) == []


def test_every_page_works_with_the_keyboard_alone(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    places = {"r": "Runs", "s": "Sweeps", "p": "Plans", "m": "Compare", "c": "Cluster", "a": "Alerts"}
    places |= {"k": "Skills", "e": "Memory", ",": "Settings"}
    for key, heading in places.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Help", level=1)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Find")).to_be_focused()
    page.keyboard.press("Escape")
    visitor.open(f"#/runs/{sample.failed}")
    expect(page.get_by_role("log")).to_contain_text("Training")
    page.keyboard.press("/")
    expect(page.get_by_label("Search output")).to_be_focused()
    page.keyboard.press("Escape")

    visitor.open("#/sweeps")
    expect(page.get_by_role("link", name="learning rate and width")).to_be_visible()
    page.keyboard.press("j")
    page.get_by_role("link", name="learning rate and width").focus()  # sweeps of other tests may be above it
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Overview")).to_be_visible()
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Configurations")).to_be_focused()
    expect(page.get_by_role("tab", name="Configurations")).to_have_attribute("aria-selected", "true")

    visitor.open(f"#/runs?sweep={sample.sweep}")
    expect(page.get_by_role("row")).to_have_count(9)
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    bar = page.get_by_role("toolbar", name="Selected runs")
    expect(bar).to_contain_text("2 runs")
    bar.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()


def test_focus_returns_after_a_confirmation(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.running}")
    stop = page.get_by_role("button", name="Stop run")
    for way_back in (["Escape"], ["Shift+Tab", "Enter"]):
        stop.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog").get_by_role("button", name="Stop run")).to_be_focused()
        for key in way_back:
            page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(stop).to_be_focused()
