"""Outages: the server stops and comes back while a page is open."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.support.live_server import LiveServer

OWN_PORTS = range(20_000, 32_000)  # below the ephemeral range: no one takes the port while its server is down


def free_port() -> str:
    first = os.getpid() * 7 % len(OWN_PORTS)
    for port in (*OWN_PORTS[first:], *OWN_PORTS[:first]):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return str(port)
    raise AssertionError("no port is free")


def test_the_page_recovers_from_a_server_restart(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server(LABWRIGHT_PORT=free_port()).start()  # the same port again, as with `labwright up`
    gate = server.project / "gate"
    long = server.submit(f"echo before; until [ -e {gate} ]; do sleep 0.1; done; echo after", name="long")
    visitor = make_visitor(server)
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in("#/runs")
    expect(page.get_by_role("link", name="long", exact=True)).to_be_visible()
    visitor.open(f"#/runs/{long['id']}")
    page.evaluate("window.here = true")
    expect(page.get_by_role("log")).to_contain_text("before")

    server.kill()
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    visitor.picture("server-gone")
    gate.touch()  # the run continues and ends without a server
    visitor.open("#/runs")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    visitor.open(f"#/runs/{long['id']}")
    expect(page.get_by_role("log")).to_be_attached()
    expect(page.get_by_role("log")).to_have_text("")  # not "No output": that is unknown

    server.start()
    expect(page.get_by_role("alert")).to_have_count(0, timeout=60_000)
    expect(page.locator(".run-head .status")).to_contain_text("finished", timeout=60_000)
    expect(page.get_by_role("log")).to_contain_text("after")
    server.submit("true", name="made later")
    visitor.open("#/runs")
    expect(page.get_by_role("row").filter(has_text="made later")).to_contain_text("finished")
    assert page.evaluate("window.here"), "the page was loaded anew"


def test_requests_during_an_outage_are_retried_on_reconnect(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server(LABWRIGHT_PORT=free_port()).start()
    other = server.wait_for_end(server.submit("true", name="other")["id"])
    going = server.submit("echo still here; sleep 300", name="going")
    server.wait_for_status(going["id"], "running")
    visitor = make_visitor(server)
    visitor.allow(FAILED_REQUEST, "WebSocket connection")
    page = visitor.sign_in(f"#/runs/{going['id']}?tab=terminal")
    screen = page.locator(".terminal .xterm-rows")
    expect(screen).to_contain_text("still here")
    others = [page.context.new_page() for _ in range(3)]
    for one in others:
        one.goto(f"{server.url}/#/help")
        expect(one.get_by_role("heading", name="Help")).to_be_visible()

    server.kill()
    wanted = ("#/runs", f"#/runs/{other['id']}", f"#/compare?runs={going['id']},{other['id']}")
    for one, hash_ in zip(others, wanted, strict=True):
        expect(one.get_by_role("alert")).to_contain_text("The server does not respond")
        one.evaluate("(hash) => { location.hash = hash }", hash_)
        expect(one.get_by_role("heading", name="Help")).to_have_count(0)
    expect(page.get_by_role("button", name="Reconnect")).to_be_visible()

    server.start()
    runs, run, compare = others
    expect(runs.get_by_role("link", name="going", exact=True)).to_be_visible(timeout=60_000)
    expect(run.get_by_role("heading", name="other", exact=True)).to_be_visible()
    expect(compare.get_by_role("heading", name="Compare 2 runs")).to_be_visible()
    expect(page.get_by_role("button", name="Reconnect")).to_have_count(0)
    expect(screen).to_contain_text("still here")
    server.post(f"/runs/{going['id']}/stop")


def test_a_comparison_opened_during_an_outage_loads_on_reconnect(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server(LABWRIGHT_PORT=free_port()).start()
    runs = [server.wait_for_end(server.submit("true", name=name)["id"])["id"] for name in ("one", "another")]
    visitor = make_visitor(server)
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in("#/compare")
    expect(page.get_by_role("heading", name="Choose runs to compare")).to_be_visible()
    visitor.open("#/help")
    server.kill()
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    visitor.open(f"#/compare?runs={','.join(runs)}")
    expect(page.get_by_role("heading", name="The server does not respond.")).to_be_visible()
    visitor.picture("compare-server-gone")
    server.start()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible(timeout=60_000)


def test_a_filter_changed_during_an_outage_applies_on_reconnect(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server(LABWRIGHT_PORT=free_port()).start()
    for name in ("one", "another"):
        server.wait_for_end(server.submit("true", name=name)["id"])
    visitor = make_visitor(server)
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in("#/runs")
    expect(page.get_by_role("link", name="another", exact=True)).to_be_visible()
    server.kill()
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    page.get_by_label("Filter runs").fill("one")
    server.start()
    expect(page.get_by_role("link", name="another", exact=True)).to_have_count(0, timeout=60_000)
    expect(page.get_by_role("link", name="one", exact=True)).to_be_visible()


def test_a_silent_connection_is_reported(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    """Like a hanging tunnel: the connection is open, but no data arrives."""
    server = make_server().start()
    visitor = make_visitor(server)
    visitor.allow(FAILED_REQUEST)
    visitor.page.clock.install()
    page = visitor.sign_in("#/help")
    expect(page.get_by_role("heading", name="Help")).to_be_visible()
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        page.clock.fast_forward(41_000)
        expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    finally:
        server.process.send_signal(signal.SIGCONT)
    expect(page.get_by_role("alert")).to_have_count(0)
