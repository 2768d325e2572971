"""All tabs of a browser share one connection and lose nothing when its tab closes."""

from __future__ import annotations

from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import Visitor
from tests.support.live_server import LiveServer


def test_tabs_share_one_stream_and_pass_it_on(visitor: Visitor, lab: LiveServer) -> None:
    first = visitor.sign_in("#/runs?q=shared-")
    streams: list[Page] = []

    def note(request: Request) -> None:
        if request.url.endswith("/events/stream"):
            streams.append(request.frame.page)

    context = first.context
    context.on("request", note)
    others = [context.new_page() for _ in range(2)]
    for page in others:
        page.goto(f"{lab.url}/#/runs?q=shared-")
        expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    lab.submit("true", name="shared-one")
    for page in (first, *others):
        expect(page.get_by_role("row").filter(has_text="shared-one")).to_contain_text("finished")
    assert streams == [], "a second tab opened a stream of its own"

    first.close()
    lab.submit("true", name="shared-two")
    for page in others:
        expect(page.get_by_role("row").filter(has_text="shared-two")).to_contain_text("finished")
    assert len(streams) == 1


def test_a_visible_tab_replaces_a_hanging_leader(visitor: Visitor, lab: LiveServer) -> None:
    first = visitor.sign_in("#/runs?q=unheard")
    expect(first.get_by_role("heading", name="No matching runs")).to_be_visible()
    second = first.context.new_page()
    second.clock.install()
    second.goto(f"{lab.url}/#/runs?q=unheard")
    expect(second.get_by_role("heading", name="No matching runs")).to_be_visible()
    first.evaluate("BroadcastChannel.prototype.postMessage = () => {}")  # it stops broadcasting
    lab.submit("true", name="unheard")
    streams: list[str] = []
    second.on("request", lambda request: "/events/stream" in request.url and streams.append(request.url))
    second.clock.run_for(60_000)
    expect(second.get_by_role("link", name="unheard")).to_be_visible()
    assert len(streams) == 1
    lab.submit("true", name="unheard too")
    for page in (first, second):
        expect(page.get_by_role("link", name="unheard too")).to_be_visible()


def test_signing_out_applies_to_all_tabs(visitor: Visitor, lab: LiveServer) -> None:
    first = visitor.sign_in("#/")
    second = first.context.new_page()
    second.goto(lab.url)
    expect(second.get_by_role("heading", name="Home")).to_be_visible()
    second.get_by_role("button", name="Sign out").click()
    expect(first.get_by_label("Token")).to_be_visible()
