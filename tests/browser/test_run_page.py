"""The run page: live charts, output and actions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.sample import Sample
from tests.support.live_server import LiveServer


def log_lines(page: Page) -> Any:
    return page.get_by_role("log").locator(".line")


def log_points(lab: LiveServer, run_id: str, key: str, values: list[Any], first: int = 0) -> None:
    points = [{"key": key, "step": first + at, "value": value} for at, value in enumerate(values)]
    answer = lab.call("POST", f"/runs/{run_id}/metrics", {"points": points})
    assert answer.status == 202, answer.body


def test_output_and_charts_grow_live(visitor: Visitor, lab: LiveServer) -> None:
    gate = lab.project / "more-output"
    run = lab.submit(f"echo one; until [ -e {gate} ]; do sleep 0.1; done; echo two; sleep 30", name="grows")
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page)).to_have_text(["one"])
    gate.touch()
    expect(log_lines(page)).to_have_text(["one", "two"])

    log_points(lab, run["id"], "train/loss", [1.0, 0.5])
    chart = page.get_by_role("img", name="train/loss: last 0.5 at step 1")
    expect(chart.locator("canvas")).to_be_visible()
    before = chart.locator("canvas").evaluate("canvas => canvas.toDataURL()")
    log_points(lab, run["id"], "train/loss", [0.25, 0.125], first=2)
    chart = page.get_by_role("img", name="train/loss: last 0.125 at step 3")
    assert chart.locator("canvas").evaluate("canvas => canvas.toDataURL()") != before
    lab.post(f"/runs/{run['id']}/stop")
    expect(page.get_by_role("banner").or_(page.locator(".run-head"))).to_contain_text("stopped")


def test_a_single_metric_gets_no_group(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")  # has train/loss, train/grad_norm and val/acc
    groups = page.locator("div.chart-group")
    expect(groups.locator(".chart canvas")).to_have_count(3)
    expect(groups.get_by_role("heading", level=3)).to_have_text(["train"])
    expect(groups.nth(0).locator("canvas")).to_have_count(1)


def test_escape_shrinks_a_large_chart_before_it_leaves_the_page(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/runs")
    visitor.open(f"#/runs/{sample.running}")
    page.get_by_role("button", name="Larger").first.click()
    expect(page.locator(".chart-big")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".chart-big")).to_have_count(0)
    expect(page.get_by_role("heading", name="resnet18 warm-up")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_output_removed_by_gc_shows_a_message(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo word", name="spoke")["id"])
    folder = lab.state / "runs" / run["id"]
    (folder / "output.removed").touch()
    (folder / "output.log").unlink()
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(page.get_by_role("log")).to_contain_text("labwright gc removed")


def test_stop_asks_for_confirmation(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("sleep 300", name="to-be-stopped")
    lab.wait_for_status(run["id"], "running")
    page = visitor.sign_in(f"#/runs/{run['id']}")
    page.get_by_role("button", name="Stop run").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert lab.run(run["id"])["status"] == "running"
    page.get_by_role("button", name="Stop run").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop run").click()
    expect(page.locator(".run-head .status")).to_contain_text("stopped")
    assert lab.wait_for_end(run["id"])["status"] == "stopped"


def test_rerun_opens_the_new_run_and_archive_can_be_undone(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo again", name="once-more")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("button", name="Unarchive")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    page.get_by_role("button", name="Rerun").click()
    origin = page.locator(".facts").get_by_role("link", name="once-more")
    expect(origin).to_have_attribute("href", f"#/runs/{run['id']}")
    assert run["id"] not in page.url
    expect(page.locator(".run-head .status")).to_contain_text("finished")


def test_an_alert_is_answered_by_its_buttons(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("sleep 300", name="alarming")
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(page.get_by_role("heading", name="alarming")).to_be_visible()
    asked = {"message": "Loss went up.", "choices": ["ignore", "stop"], "severity": "critical"}
    lab.post(f"/runs/{run['id']}/alerts", asked)
    alert = page.get_by_role("article").filter(has_text="Loss went up.")
    expect(alert).to_contain_text("critical")
    visitor.open("#/alerts")
    expect(alert.get_by_role("link", name="alarming")).to_be_visible()
    alert.get_by_role("button", name="stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop run").click()
    expect(page.get_by_label("Answered")).to_contain_text("Loss went up.")
    assert lab.wait_for_end(run["id"])["status"] == "stopped"


def test_progress_bars_fold_and_colours_show(visitor: Visitor, lab: LiveServer) -> None:
    said = r"\033[32mgreen\033[0m plain\n" + r"".join(rf"\r{n}%%" for n in range(0, 101, 10)) + r"\nend\r\n"
    run = lab.wait_for_end(lab.submit(f"printf '{said}'", name="colours")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page)).to_have_text(["green plain", re.compile("^100%"), "end"])
    expect(page.get_by_role("log").locator(".ansi-2")).to_have_text("green")


def test_terminal_control_sequences_are_hidden(visitor: Visitor, lab: LiveServer) -> None:
    said = r"\033[?25l\033[?2004h\033[>4;2mbusy\033[?25h\033[2 q\033(B\033=\nend\n"
    run = lab.wait_for_end(lab.submit(f"printf '{said}'", name="cursorless")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page)).to_have_text(["busy", "end"])


def test_a_long_output_shows_its_end_first_and_earlier_parts_on_the_way_up(visitor: Visitor, lab: LiveServer) -> None:
    (lab.project / "long.py").write_text(
        "print('\\n'.join(f'line {n} ü' for n in range(100_000)))\n"
        "print('RuntimeError: here it broke')\n"
        "print('\\n'.join(f'after {n}' for n in range(40_000)))\n"
    )
    run = lab.wait_for_end(lab.submit("python3 long.py", name="long")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page).last).to_have_text("after 39999")
    box = page.get_by_role("log")
    for _ in range(30):
        box.evaluate("box => box.scrollTop = 0")
        page.wait_for_timeout(20)
    expect(log_lines(page).first).not_to_have_text(re.compile(r"after 39\d{3}"))
    assert log_lines(page).count() < 120
    assert "\ufffd" not in box.inner_text()

    page.get_by_role("button", name="First error").click()
    expect(page.locator(".line-marked")).to_have_text("RuntimeError: here it broke")
    page.get_by_label("Search output").fill("line 99998 ")
    page.keyboard.press("Enter")
    expect(page.locator(".line-marked")).to_have_text("line 99998 ü")
    page.get_by_label("Search output").fill("LINE 7 ")
    expect(page.locator(".log-count")).to_have_text(re.compile(r"^0 lines in the [\d.]+ [kM]B loaded$"))
    page.get_by_label("Search output").press("Enter")  # not in the loaded part: searches everything
    expect(log_lines(page)).to_have_text(["line 7 ü"])
    page.get_by_label("Search output").fill("line ")
    page.get_by_role("button", name="Search everything").click()
    expect(page.locator(".log-count")).to_have_text("the newest 500 lines")
    page.get_by_role("button", name="End").click()
    expect(log_lines(page).last).to_have_text("after 39999")
    assert log_lines(page).count() < 120


def test_first_error_is_found_after_the_gap_of_capped_output(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true", name="cut")["id"])
    before, gap = b"before\n" * 700_000, bytes(200_000)
    behind = "".join(f"behind {n} ü\n" for n in range(2000)).encode()
    folder = Path(run["run_dir"])
    (folder / "output.log").write_bytes(before + gap + behind + b"RuntimeError: here\n" + b"after\n" * 800_000)
    cut = {"start": len(before), "end": len(before) + len(gap)}
    (folder / "output.gap.json").write_text(json.dumps(cut))
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page).last).to_have_text("after")
    page.get_by_role("button", name="First error").click()
    expect(page.locator(".line-marked")).to_have_text("RuntimeError: here")
    box = page.get_by_role("log")
    box.evaluate("box => box.scrollTop = 0")
    expect(log_lines(page).filter(has_text="before").first).to_be_visible()
    while "behind 0 " not in box.inner_text():
        box.evaluate("box => box.scrollTop += 300")
    expect(log_lines(page).filter(has_text="left out here")).to_have_count(1)
    expect(log_lines(page).filter(has_text="behind 0 ")).to_have_count(1)


def test_output_without_an_error_shows_a_message(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo fine", name="without an error")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    expect(log_lines(page)).to_have_text(["fine"])
    page.get_by_role("button", name="First error").click()
    expect(page.get_by_role("status")).to_contain_text("No error found in this output.")


def test_text_typed_during_the_error_search_is_searched(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo warm; echo 'ValueError: no'; exit 1", name="typed meanwhile")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    held: list[Route] = []
    page.route("**/logs/first-error", lambda route: held.append(route))
    with page.expect_request("**/logs/first-error"):
        page.get_by_role("button", name="First error").click()
    page.get_by_label("Search output").fill("warm")
    held[0].continue_()
    expect(page.locator(".line-marked")).to_have_text("ValueError: no")
    expect(page.get_by_role("log").locator("mark")).to_have_text("warm")
    page.get_by_role("button", name="First error").click()
    expect(page.get_by_label("Search output")).to_have_value("")


def test_numbers_that_cannot_be_drawn_do_not_hang_the_page(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true", name="edge-numbers")["id"])
    edge: dict[str, list[Any]] = {
        "one": [3], "flat": [0, 0], "next": [1, 1 + 2.3e-16], "huge": [1e308, -1e308], "tiny": [5e-324, 1e-320],
        "span": [1e-300, 1e300], "strange": ["NaN", "Infinity", "-Infinity"], "mixed": [1, "NaN", -2],
    }  # fmt: skip
    for key, values in edge.items():
        log_points(lab, run["id"], key, values)
    log_points(lab, run["id"], "far", [1, 2], first=2**53 - 2)
    page = visitor.sign_in(f"#/runs/{run['id']}")
    for control in (None, page.get_by_label("Log y"), page.get_by_role("button", name="time")):
        if control:
            control.click()
        expect(page.locator(".chart canvas")).to_have_count(len(edge) + 1)
    page.get_by_label("Smoothing").fill("0.9")
    expect(page.get_by_text("3 NaN or infinite")).to_be_visible()
    expect(page.get_by_role("figure", name="Chart of huge").get_by_text("2 too large to draw")).to_be_visible()
    page.get_by_role("button", name="epoch").click()
    expect(page.get_by_text("No epochs. Log a metric named epoch.").first).to_be_visible()
    log_points(lab, run["id"], "epoch", [0.5], first=1)
    page.reload()
    chart = page.get_by_role("figure", name="Chart of tiny")
    expect(chart.get_by_text("1 before the first epoch")).to_be_visible()
    chart.locator(".u-over").hover()
    expect(chart.get_by_text("epoch 0.5")).to_be_visible()


def test_an_unknown_run_shows_a_message(visitor: Visitor) -> None:
    visitor.allow("404")
    page = visitor.sign_in("#/runs/run-zzzzzzzzzz")
    expect(page.get_by_role("heading", name=re.compile("There is no run"))).to_be_visible()
    expect(page.locator("main")).to_contain_text("It was deleted or belongs to another project.")
    expect(page.locator("main").get_by_role("link", name="Runs")).to_have_attribute("href", "#/runs")
    visitor.open("#/nowhere")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()


@pytest.mark.parametrize("box", [".chat-scroll", ".log-lines"])
def test_a_scroll_event_after_the_page_was_left_is_harmless(box: str, visitor: Visitor, sample: Sample) -> None:
    """The browser sends the event in the next frame, when the page may be closed."""
    place = f"#/chat/{sample.conversation}" if box == ".chat-scroll" else f"#/runs/{sample.failed}"
    page = visitor.sign_in(place)
    left = page.locator(box).element_handle()
    visitor.open("#/help")
    expect(page.get_by_role("heading", name="Help", level=1)).to_be_visible()
    left.evaluate("box => box.dispatchEvent(new Event('scroll'))")  # an exception would fail this test


FILLED = """async () => {
    const { LogBuffer } = await import("./dashboard/run/log_reader.js");
    const piece = `${"x".repeat(9_999)}\\n`.repeat(100);
    const buffers = [new LogBuffer(), new LogBuffer()];
    buffers[1].clear(20 * piece.length);
    for (let n = 1; n <= 20; n += 1) {
        buffers[0].append(piece, n * piece.length);
        buffers[1].prepend(piece, (20 - n) * piece.length);
    }
    return buffers.map(({ lines, start, end }) => [lines.length, start, end]);
}"""


def test_the_log_buffer_bounds_long_lines_in_both_directions(visitor: Visitor) -> None:
    page = visitor.sign_in("#/help")
    assert page.evaluate(FILLED) == [[400, 16_000_000, 20_000_000], [400, 0, 4_000_000]]
