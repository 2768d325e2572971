"""Screenshots of every page (light, dark, phone) in build/, and layout checks at 390 px."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.browser.test_accessibility import addresses
from tests.support.live_server import LiveServer

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", **PHONE},
    "phone-dark": {"color_scheme": "dark", **PHONE},
}
# The vertical gaps between the tick labels of each axis.
GAPS = """
svg => [...svg.querySelectorAll("g")].flatMap((axis) => {
    const places = [...axis.querySelectorAll(".tick")].map((word) => Number(word.getAttribute("y")));
    places.sort((a, b) => a - b);
    return places.slice(1).map((place, at) => place - places[at]);
})
"""


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_fits_its_window(
    sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor], look: str
) -> None:
    visitor = make_visitor(lab, **LOOKS[look])
    page = visitor.sign_in("#/")
    for name, address in addresses(sample).items():
        visitor.open(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        is_inside(visitor, name)
        visitor.picture(f"{name.replace(' ', '-') or 'home'}-{look}")


def test_first_error_scrolls_into_view(sample: Sample, visitor: Visitor, lab: LiveServer) -> None:
    broken = lab.submit("for n in $(seq 200); do echo line $n; done; python3 -c 'raise RuntimeError(1)'", name="errs")
    lab.wait_for_end(broken["id"])
    page = visitor.sign_in(f"#/runs/{broken['id']}")
    page.get_by_role("button", name="First error").click()
    expect(page.locator(".line-marked")).to_be_in_viewport()


def test_the_phone_menu_lists_every_page(sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(lab, **LOOKS["phone"])
    page = visitor.sign_in("#/")
    page.get_by_role("button", name="More").click()
    places = page.locator(".bar > :visible")
    assert len({round(box["width"]) for one in places.all() if (box := one.bounding_box())}) == 1, "not side by side"
    for word in places.locator("span:not(.count)").all():
        assert word.evaluate("one => one.getClientRects().length") == 1, f"{word.inner_text()} is broken in two"
    page.get_by_role("link", name="Cluster").click()
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    page.get_by_role("button", name="More").click()
    visitor.open(f"#/runs/{sample.running}")
    expect(page.get_by_role("link", name="Settings")).to_have_count(0)


def test_runs_are_selected_by_touch(sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    page = make_visitor(lab, **LOOKS["phone"]).sign_in(f"#/runs?sweep={sample.sweep}")
    ticks = page.locator(".row:not(.row-head)").get_by_role("checkbox")
    for tick in (ticks.nth(0), ticks.nth(1)):
        tick.tap()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Compare").tap()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()


def test_charts_zoom_and_scroll_by_touch(sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    page = make_visitor(lab, **LOOKS["phone"]).sign_in(f"#/runs/{sample.failed}")
    reset = page.get_by_role("button", name="Reset zoom")
    chart = page.locator(".chart .u-over").first
    swipe(page, chart, to=(120, 0))
    expect(reset).to_be_visible()
    expect(page.locator(".chart-value", has_text="step")).to_have_count(3)  # every chart follows the finger
    reset.click()  # a tap may be too slow on a busy machine
    expect(reset).to_have_count(0)
    swipe(page, chart, to=(0, -120))
    expect(reset).to_have_count(0)
    swipe(page, chart, to=(120, 0))
    expect(reset).to_be_visible()


def swipe(page: Page, target: Locator, to: tuple[int, int]) -> None:
    """Simulate a swipe: Playwright only has taps."""
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    assert box
    session = page.context.new_cdp_session(page)
    x, y = box["x"] + 60, box["y"] + box["height"] / 2
    for part in range(9):
        point = {"x": x + to[0] * part / 8, "y": y + to[1] * part / 8}
        session.send(
            "Input.dispatchTouchEvent", {"type": "touchMove" if part else "touchStart", "touchPoints": [point]}
        )
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def test_nothing_is_cut_off_or_wrapped(sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(lab, viewport={"width": 1440, "height": 900})
    page = visitor.sign_in("#/runs")
    tops = [
        page.get_by_role(role, name=name).bounding_box()["y"]  # type: ignore[index]
        for role, name in (("searchbox", "Filter runs"), ("button", "New run"))
    ]
    assert abs(tops[0] - tops[1]) < 10
    visitor.open(f"#/runs/{sample.running}")
    page.get_by_role("button", name="More").click()
    for item in page.locator(".menu-item").all():
        assert item.evaluate("one => one.scrollWidth - one.clientWidth") <= 0, item.inner_text()
    visitor.open(f"#/sweeps/{sample.sweep}")
    figure = page.locator("svg.parallel")
    expect(figure).to_be_visible()
    assert min(figure.evaluate(GAPS)) >= 12, "two figures stand on one another"


def test_long_tags_and_choices_fit_a_phone(
    make_server: Callable[..., LiveServer], make_visitor: Callable[..., Visitor]
) -> None:
    server = make_server().start()
    run = server.post("/runs", {"command": "true", "name": "n" * 90, "tags": ["tag" * 30]})["id"]
    choices = ["ignore", "stop it and start again with a tenth of the rate", "c" * 60]
    server.post(f"/runs/{run}/alerts", {"message": "What now?", "choices": choices, "severity": "warning"})
    visitor = make_visitor(server, **LOOKS["phone"])
    visitor.sign_in()
    for path in ("#/", "#/alerts", f"#/runs/{run}"):
        visitor.open(path)
        for choice in visitor.page.get_by_role("group", name="Answer").get_by_role("button").all():
            expect(choice).to_be_in_viewport(ratio=0.99)
        expect(visitor.page.get_by_text("What now?")).to_be_visible()
        assert visitor.page.locator("main *").evaluate_all(BEYOND) == [], path


def test_a_phone_shows_the_metric_and_the_open_tab(
    sample: Sample, lab: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    visitor = make_visitor(lab, **LOOKS["phone"])
    page = visitor.sign_in(f"#/runs?sweep={sample.sweep}")
    loss = page.locator(".row:not(.row-head) [data-key='train/loss']").first
    expect(loss).to_be_visible()
    expect(loss).not_to_be_empty()
    visitor.open("#/settings?tab=browser")
    expect(page.get_by_role("tab", name="This browser")).to_be_in_viewport(ratio=0.95)
    expect(page.locator(".bar-toggle")).to_have_class(re.compile("bar-here"))
    visitor.open(f"#/compare?runs={','.join(sample.seeds[:4])}&tab=scatter")
    letters = page.locator("svg.figure .tick").first
    expect(letters).to_be_visible()
    assert letters.evaluate("one => one.getBoundingClientRect().height") > 9


# Elements whose right edge is outside the window, except those in a scrolling box.
BEYOND = """(parts) => parts
    .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
    .filter((part) => !part.closest(".tabs, .table, .tags, .chips, .log-lines, pre"))
    .map((part) => part.outerHTML.slice(0, 80))"""


def is_inside(visitor: Visitor, name: str) -> None:
    """The page is not larger than its window, and every button is large enough."""
    wide = visitor.page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    main = visitor.page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('main'))")
    tall = visitor.page.evaluate("document.scrollingElement.scrollHeight - innerHeight")
    assert (wide, main, tall) == (0, 0, 0), name
    heights = visitor.page.evaluate(
        "[...document.querySelectorAll('main button, nav a')].map((one) => one.offsetHeight)"
    )
    assert min(height for height in heights if height) >= 18, name
