"""A real browser and a real server. Console errors, dialogs and foreign requests fail the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.browser.sample import Sample, make_sample
from tests.support.live_server import ENDED, LiveServer

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PATIENCE_MS = 30_000  # generous for a busy machine
expect.set_options(timeout=PATIENCE_MS)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
# The browser logs every failed request. Tests that expect one allow this message.
FAILED_REQUEST = "Failed to load resource"

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
    console.error(`CSP: ${violatedDirective} ${blockedURI}`))
"""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Close before other tests: Playwright runs an event loop in this thread, and they may need their own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """One browser window at one server, with a record of its errors."""

    def __init__(self, context: BrowserContext, server: LiveServer) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.faults: list[str] = []
        self.allowed: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("dialog", self._on_dialog)
        self.page.on("request", self._on_request)
        self.page.add_init_script(REPORT_VIOLATIONS)

    def allow(self, *texts: str) -> None:
        self.allowed += texts

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.allowed):
            self.faults.append(f"console {message.type}: {message.text}")

    def _on_dialog(self, dialog: Any) -> None:
        if dialog.type == "beforeunload":  # the browser's warning about unsaved text
            dialog.accept()
            return
        self.faults.append(f"a script opened a dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if request.url.startswith(("blob:", "data:")):  # from memory
            return
        if urlsplit(request.url).netloc != urlsplit(self.server.url).netloc:
            self.faults.append(f"a request left the origin: {request.url}")

    def sign_in(self, path: str = "#/runs") -> Page:
        self.page.goto(f"{self.server.url}/#token={self.server.token}")
        self.page.get_by_role("navigation").wait_for()
        return self.open(path)

    def open(self, path: str) -> Page:
        self.page.evaluate("(hash) => { location.hash = hash }", path)
        return self.page

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture
def make_visitor(browser: Browser, make_server: object, lab: object) -> Iterator[Callable[..., Visitor]]:
    """Depends on the servers, so that pages close before the servers stop."""
    made: list[tuple[Visitor, BrowserContext]] = []

    def make(server: LiveServer, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        visitor = Visitor(context, server)
        made.append((visitor, context))
        return visitor

    yield make
    for _, context in made:
        context.close()
    assert [fault for visitor, _ in made for fault in visitor.faults] == []


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for all tests that tolerate runs of other tests."""
    project = tmp_path_factory.mktemp("browser") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="8").start()
    yield server
    for run in server.all_runs():
        if run["status"] not in ENDED:
            server.call("POST", f"/runs/{run['id']}/stop")
    server.stop()


@pytest.fixture(scope="session")
def sample(lab: LiveServer) -> Sample:
    return make_sample(lab)


@pytest.fixture
def visitor(lab: LiveServer, make_visitor: Callable[..., Visitor]) -> Visitor:
    return make_visitor(lab)
