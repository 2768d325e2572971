"""Hostile names, logs and output are shown as text. Nothing is executed, and no request leaves the origin."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.support.live_server import LiveServer

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
LINK = "javascript:alert(3)//"
OUTSIDE = '<img src="http://example.com/x.png"><link rel=stylesheet href="http://example.com/x.css">'
ESCAPES = "\x1b]8;;javascript:alert(4)\x07click\x1b]8;;\x07 \x1b[31mred\x1b[38;2;1;2;3;url(x)m \x1b[999;<b>m \x00\x08"

RECORD_DRAWN_TEXT = """() => {
    window.drawn = [];
    const pen = CanvasRenderingContext2D.prototype;
    const { fillText } = pen;
    pen.fillText = function (text, ...place) { drawn.push(text); fillText.call(this, text, ...place); };
}"""


@pytest.fixture
def hostile_run(lab: LiveServer) -> dict[str, Any]:
    said = json.dumps(f"{SCRIPT}\n{IMAGE}\n{OUTSIDE}\n{ESCAPES}\nError: {SCRIPT}")
    program = f"import sys; sys.stdout.write({said})"
    run = lab.submit(
        f"python3 -c {shlex.quote(program)}",
        name=f"{SCRIPT}{IMAGE}",
        tags=[IMAGE],
        params={SCRIPT: IMAGE, "__proto__": {"x": 1}, "constructor": LINK},
        notes=OUTSIDE,
        env={"PLAIN": SCRIPT},
    )
    points = [{"key": key, "step": 1, "value": 1} for key in (f"{IMAGE}/a", SCRIPT, "__proto__", "constructor", LINK)]
    assert lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points}).status == 202
    alert = {"message": f"{SCRIPT}{OUTSIDE}", "choices": [IMAGE, SCRIPT[:90]], "severity": "critical"}
    lab.post(f"/runs/{run['id']}/alerts", alert)
    return lab.wait_for_end(run["id"])


def test_text_direction_characters_are_neutralized(visitor: Visitor, lab: LiveServer) -> None:
    """A name with a direction character reads as another name: a program looks like an image."""
    turned = "photo\u202egnp.exe"
    run = lab.submit(f"printf '{turned}'", name=turned, params={"file": f"\u2066{turned}"})
    lab.wait_for_end(run["id"])
    page = visitor.sign_in()
    expect(page.get_by_role("link", name="photo\ufffdgnp.exe").first).to_be_visible()
    visitor.open(f"#/runs/{run['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text("photo\ufffdgnp.exe")
    expect(page.get_by_role("log")).to_contain_text("photo\ufffdgnp.exe")
    expect(page).to_have_title(re.compile("photo\ufffdgnp.exe"))
    page.get_by_role("tab", name="Details").click()
    expect(page.locator("main")).to_contain_text("\ufffdphoto\ufffdgnp.exe")
    assert "\u202e" not in page.content()
    page.get_by_role("button", name="More").last.click()
    page.get_by_role("button", name="Rename…").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value(turned)  # input values stay exact


def test_text_direction_characters_are_neutralized_in_terminal_and_images(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("printf 'photo\u202egnp.exe'; sleep 300", name="photo\u202egnp.exe")
    lab.wait_for_status(run["id"], "running")
    points = [{"key": "loss", "step": step, "value": 1} for step in range(2)]
    assert lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points}).status == 202
    page = visitor.sign_in(f"#/runs/{run['id']}?tab=terminal")
    expect(page.locator(".terminal .xterm-rows")).to_contain_text("photo\ufffdgnp.exe")
    page.get_by_role("tab", name="Overview").click()
    page.evaluate(RECORD_DRAWN_TEXT)
    page.get_by_label("Chart of loss").get_by_role("button", name="Download").click()
    with page.expect_download():
        page.get_by_role("button", name="Image (PNG)").click()
    assert f"photo\ufffdgnp.exe ({run['id']})" in page.evaluate("drawn")
    lab.post(f"/runs/{run['id']}/stop")


def test_hostile_text_is_shown_as_text(visitor: Visitor, hostile_run: dict[str, Any]) -> None:
    page = visitor.sign_in()
    expect(page.get_by_role("link", name=hostile_run["name"], exact=True).first).to_be_visible()
    visitor.open(f"#/runs/{hostile_run['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(hostile_run["name"])
    log = page.get_by_role("log")
    for text in (SCRIPT, IMAGE, OUTSIDE, "click red"):
        expect(log).to_contain_text(text)
    expect(page.locator(".chart canvas").first).to_be_visible()
    page.get_by_role("button", name="First error").click()
    page.get_by_label("Search output").fill("<script>")
    expect(log.locator("mark").first).to_have_text("<script>")
    page.get_by_role("article").get_by_role("button", name=IMAGE).click()
    visitor.open("#/alerts")
    expect(page.get_by_label("Answered")).to_contain_text(OUTSIDE)
    visitor.open(f"#/runs/{hostile_run['id']}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("script:not([src]), img, #app link, iframe").count() == 0


@pytest.mark.parametrize(
    "hash_", [f"#/runs/{SCRIPT}", f"#/{IMAGE}", f"#/runs?q={SCRIPT}", "#/runs/../../x", "#/%ff", "#//"]
)
def test_hostile_addresses_are_shown_as_text(visitor: Visitor, hash_: str) -> None:
    visitor.allow("404")
    page = visitor.sign_in(hash_)
    expect(page.get_by_role("navigation")).to_be_visible()
    expect(page.locator("main")).not_to_be_empty()


def test_the_content_security_policy_is_strict(visitor: Visitor, lab: LiveServer) -> None:
    headers = lab.call("GET", "/", token=None).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    visitor.allow("CSP:", "Content Security Policy", "TrustedHTML", "This document requires")
    page = visitor.sign_in()
    refused = "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'done' } catch { return 'refused' } })()"
    assert page.evaluate(refused) == "refused"


def test_the_api_description_still_opens(visitor: Visitor, lab: LiveServer) -> None:
    visitor.page.goto(f"{lab.url}/docs")
    expect(visitor.page.get_by_text("GET").first).to_be_visible()
