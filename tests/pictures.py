"""Take the pictures of the docs again, from a real server in a real browser: `make pictures`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS, Visitor
from tests.browser.sample import make_sample
from tests.conftest import stop_all
from tests.support.live_server import LiveServer
from tests.support.planning import QUICK, planning_server

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1120, "height": 700}
TALL = 1180  # for a page whose pictures are further down
PATIENCE_MS = 120_000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="labwright-pictures-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        _take_day(browser, Path(folder) / "cifar10")
        _take_plan(browser, Path(folder))
        browser.close()


def _take_day(browser: Browser, project: Path) -> None:
    project.mkdir()
    with _running(LiveServer(project, LABWRIGHT_MAX_PARALLEL="8")) as server:
        sample = make_sample(server)
        visitor = _visitor(browser, server)
        for name, path, shown in (
            ("home", "#/", ".home-main .status >> nth=0"),
            ("runs", f"#/runs?sweep={sample.sweep}&group=config&sort=m:train/loss", ".row .sparkline >> nth=3"),
            ("run-page", f"#/runs/{sample.running}", "canvas >> nth=1"),
            ("sweep", f"#/sweeps/{sample.sweep}", "svg.parallel"),
        ):
            visitor.page.set_viewport_size({**SIZE, "height": TALL if name == "sweep" else SIZE["height"]})
            visitor.open(path)
            expect(visitor.page.locator(shown)).to_be_visible(timeout=PATIENCE_MS)
            _take(visitor, name)


def _take_plan(browser: Browser, folder: Path) -> None:
    with _running(planning_server(folder)) as server:
        visitor = _visitor(browser, server)
        visitor.page.get_by_label("Goal").fill(QUICK)
        visitor.page.get_by_role("button", name="Make a plan").click()
        expect(visitor.page.get_by_role("button", name="Approve this plan")).to_be_visible(timeout=PATIENCE_MS)
        _take(visitor, "plan-review")


@contextmanager
def _running(server: LiveServer) -> Iterator[LiveServer]:
    server.start()
    try:
        yield server
    finally:
        stop_all(server)
        server.stop()


def _visitor(browser: Browser, server: LiveServer) -> Visitor:
    visitor = Visitor(browser.new_context(viewport=SIZE), server)
    visitor.sign_in("#/")
    return visitor


def _take(visitor: Visitor, name: str) -> None:
    visitor.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
    print(f"{name}.png", flush=True)


if __name__ == "__main__":
    main()
