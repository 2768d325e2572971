"""Sign-in with the printed link or a typed token, and sign-out."""

from __future__ import annotations

import contextlib
import re

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.browser.conftest import FAILED_REQUEST, Visitor


def home_is_shown(page: Page) -> None:
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()


def test_the_printed_link_signs_in_and_leaves_no_token_in_the_address(visitor: Visitor) -> None:
    page = visitor.sign_in("#/")
    home_is_shown(page)
    assert visitor.server.token not in page.url
    page.go_back()
    assert visitor.server.token not in page.url


def test_a_printed_link_can_open_a_page(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.server.url}/#token={visitor.server.token}&/runs?q=slow")
    expect(visitor.page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    assert visitor.page.url.endswith("/#/runs?q=slow")


def test_it_stays_signed_in_after_a_reload_and_in_a_second_tab(visitor: Visitor) -> None:
    page = visitor.sign_in("#/")
    page.reload()
    home_is_shown(page)
    second = page.context.new_page()
    second.goto(visitor.server.url)
    home_is_shown(second)


def test_typing_the_token_signs_in(visitor: Visitor) -> None:
    visitor.page.goto(visitor.server.url)
    expect(visitor.page.get_by_label("Token")).to_be_focused()
    visitor.picture("sign-in")
    visitor.page.keyboard.type(visitor.server.token)
    visitor.page.keyboard.press("Enter")
    home_is_shown(visitor.page)


def test_a_wrong_token_shows_an_error_and_can_be_corrected(visitor: Visitor) -> None:
    visitor.allow(FAILED_REQUEST)
    page = visitor.page
    page.goto(f"{visitor.server.url}/#token=wrong")
    expect(page.get_by_role("alert")).to_contain_text("is invalid or has expired")
    for wrong in ("still-wrong", "schlüssel ✂"):
        page.get_by_label("Token").fill(wrong)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(re.compile("token"))
    page.get_by_label("Token").fill(f"  {visitor.server.token}\n")
    page.get_by_role("button", name="Sign in").click()
    home_is_shown(page)


def test_an_expired_token_opens_the_sign_in_page(visitor: Visitor) -> None:
    visitor.allow(FAILED_REQUEST)
    short = mint(visitor.server.token, Scope.VIEWER, "guest", 5.0)
    page = visitor.page
    page.goto(f"{visitor.server.url}/#token={short}")
    visitor.open("#/runs")
    with contextlib.suppress(PlaywrightTimeout):  # the sign-in page has no such button
        for name in ["Failed", "All"] * 20:
            page.get_by_role("button", name=name, exact=True).click(timeout=2000)
            page.wait_for_timeout(250)
    expect(page.get_by_role("alert")).to_contain_text("expired")


def test_signing_out_forgets_the_token(visitor: Visitor) -> None:
    page = visitor.sign_in("#/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("JSON.stringify(localStorage)").count(visitor.server.token) == 0


def test_signing_out_deletes_drafts_in_every_tab(visitor: Visitor) -> None:
    words = "not for who comes next"
    page = visitor.sign_in("#/")
    second = page.context.new_page()
    second.goto(visitor.server.url)
    for one in (page, second):
        one.get_by_label("Goal").fill(words)
        assert words in one.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_role("button", name="Sign out").click()
    for one in (page, second):
        expect(one.get_by_label("Token")).to_be_visible()
        assert words not in one.evaluate("JSON.stringify(sessionStorage)")
    page.get_by_label("Token").fill(visitor.server.token)
    page.get_by_role("button", name="Sign in").click()
    for one in (page, second):
        home_is_shown(one)
        expect(one.get_by_label("Goal")).to_have_value("")


def test_signing_out_closes_toasts_and_dialogs(visitor: Visitor) -> None:
    page = visitor.sign_in("#/runs")
    asked = visitor.server.submit("true", name="asked about")
    visitor.server.wait_for_end(asked["id"])
    second = page.context.new_page()
    second.goto(f"{visitor.server.url}/#/runs/{asked['id']}")
    second.get_by_role("button", name="More", exact=True).click()
    second.get_by_role("button", name="Delete").click()
    expect(second.get_by_role("dialog")).to_be_visible()
    third = page.context.new_page()
    third.goto(f"{visitor.server.url}/#/runs")
    third.get_by_role("button", name="New run").first.click()
    page.get_by_role("button", name="New run").first.click()
    page.get_by_label("Command").fill("echo not for who comes next")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    for one in (second, third):
        expect(one.get_by_label("Token")).to_be_visible()
    page.get_by_label("Token").fill(visitor.server.token)
    page.get_by_role("button", name="Sign in").click()
    for one in (page, second, third):
        expect(one.get_by_role("navigation")).to_be_visible()
        expect(one.get_by_role("button", name="Undo")).to_have_count(0, timeout=1)
        expect(one.get_by_role("dialog")).to_have_count(0, timeout=1)


def test_an_expired_token_keeps_drafts(visitor: Visitor) -> None:
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in("#/")
    page.get_by_label("Goal").fill("half a thought")
    page.goto(f"{visitor.server.url}/#token=expired")
    expect(page.get_by_role("alert")).to_contain_text("is invalid or has expired")
    page.get_by_label("Token").fill(visitor.server.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Goal")).to_have_value("half a thought")
