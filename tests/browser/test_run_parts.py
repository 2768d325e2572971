"""The other tabs of the run page: details, code, files, events, terminal."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import SVG, Sample
from tests.support.live_server import LiveServer


def test_parameters_are_compared_with_the_parent(visitor: Visitor, lab: LiveServer) -> None:
    parent = lab.wait_for_end(lab.submit("true", name="parent", params={"lr": 0.1, "depth": 3})["id"])
    child = lab.submit("true", name="child", params={"lr": 0.2, "depth": 3}, parent_run_id=parent["id"])
    page = visitor.sign_in(f"#/runs/{child['id']}?tab=details")
    expect(page.locator(".facts").get_by_role("link", name="parent", exact=True)).to_be_visible()
    page.get_by_label("Compare parameters with").select_option("Compare with parent")
    expect(page.locator("tr.differs")).to_have_count(1)
    expect(page.locator("tr.differs")).to_have_text("lr0.20.1")


def test_notes_name_and_command_are_changed_and_a_run_is_deleted(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("echo first", name="to-be-changed")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}")
    page.get_by_role("tab", name="Details").click()
    page.get_by_role("button", name="Edit notes").click()
    page.get_by_label("Notes").fill("looks odd <b>here</b>")
    page.get_by_role("button", name="Save notes").click()
    expect(page.locator(".notes")).to_have_text("looks odd <b>here</b>")
    more = page.locator("main").get_by_role("button", name="More")
    more.click()
    expect(page.get_by_role("link", name="Ask about this run")).to_have_css("border-top-width", "0px")
    page.get_by_role("button", name="Rename…").click()
    page.get_by_label("Name", exact=True).fill("changed")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("heading", name="changed", level=1)).to_be_visible()
    more.click()
    page.get_by_role("button", name="Rerun with another command…").click()
    command = page.get_by_role("textbox", name="Command")
    command.fill("echo second")
    visitor.allow(FAILED_REQUEST)
    page.route("**/rerun", lambda route: route.abort(), times=1)
    page.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(page.locator(".toasts")).not_to_be_empty()
    expect(command).to_have_value("echo second")
    page.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("log")).to_contain_text("second")
    visitor.open(f"#/runs/{run['id']}")
    more.click()
    page.get_by_role("button", name="Delete run…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete run").click()
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    assert lab.call("GET", f"/runs/{run['id']}").status == 404


def test_images_show_and_an_svg_script_does_not_run(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.artist}?tab=artifacts")
    for name in ("sixteen samples", "a drawing"):
        page.get_by_role("button", name=name).click()
        shown = page.get_by_role("dialog").get_by_role("img", name=name)
        expect(shown).to_be_visible()
        assert shown.evaluate("picture => picture.naturalWidth") > 0
        assert re.match(r"^(blob|data):", shown.get_attribute("src") or "")
        with page.expect_download() as saved:
            page.get_by_role("dialog").get_by_role("button", name="Download").click()
        assert saved.value.suggested_filename.endswith(("png", "svg"))
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
    assert Path(saved.value.path()).read_text() == SVG
    assert page.locator("iframe, object, embed, main svg script").count() == 0


def test_an_invalid_image_is_shown_as_a_file(visitor: Visitor, lab: LiveServer) -> None:
    (lab.project / "torn.png").write_text("the disk was full")
    (lab.project / "torn.py").write_text(
        "import labwright\nlabwright.init()\nlabwright.log({'torn': labwright.Image('torn.png')}, step=1)\n"
    )
    run = lab.wait_for_end(lab.submit("python3 torn.py", name="torn")["id"])
    page = visitor.sign_in(f"#/runs/{run['id']}?tab=artifacts")
    tile = page.get_by_role("button", name="torn")
    icon = tile.locator(".artifact-icon")
    expect(icon).to_be_visible()
    inside = "(tile) => tile.clientWidth - 2 * parseFloat(getComputedStyle(tile).paddingLeft)"
    assert icon.evaluate("(icon) => icon.clientWidth") == tile.evaluate(inside), "not as wide as its tile"
    tile.click()
    expect(page.get_by_role("dialog")).to_contain_text("cannot be shown as an image")
    expect(page.get_by_role("dialog").get_by_role("img")).to_have_count(0)


def test_only_the_start_of_a_large_file_is_fetched(visitor: Visitor, lab: LiveServer) -> None:
    (lab.project / "large.py").write_text(
        "import labwright\nrun = labwright.init()\n"
        "labwright.log({'weights': labwright.Histogram([1, 2]), 'gone': labwright.Histogram([3])}, step=1)\n"
    )
    run = lab.wait_for_end(lab.submit("python3 large.py", name="large files")["id"])
    files = {item["key"]: Path(run["run_dir"]) / item["path"] for item in lab.get(f"/runs/{run['id']}/artifacts")}
    files["weights"].write_text("7" * 2_000_000)
    files["gone"].unlink()
    sizes = {item["key"]: item["size"] for item in lab.get(f"/runs/{run['id']}/artifacts")}
    assert sizes == {"weights": 2_000_000, "gone": None}
    page = visitor.sign_in(f"#/runs/{run['id']}?tab=artifacts")
    with page.expect_response(re.compile("/artifacts/weights")) as fetched:
        page.get_by_role("button", name="weights").click()
    assert int(fetched.value.headers["content-length"]) < 400_000
    expect(page.get_by_role("dialog")).to_contain_text("2.0 MB · first 300 kB")
    with page.expect_download() as saved:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    assert Path(saved.value.path()).stat().st_size == 2_000_000
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="gone")).to_have_count(0)


def test_events_show_their_actor(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")
    page.get_by_role("tab", name="Events").click()
    events = page.get_by_label("Events", exact=True)
    expect(events.get_by_role("listitem").filter(has_text="run.created")).to_contain_text("person")
    expect(events.get_by_role("listitem").filter(has_text="→ failed")).to_contain_text("system")


def test_the_code_tab_shows_what_changed_since_submit(visitor: Visitor, lab: LiveServer) -> None:
    script = lab.project / "model.py"
    script.write_text("width = 64\n")
    run = lab.wait_for_end(lab.submit("true", name="code-of-then")["id"])
    script.write_text("width = 128\n")
    page = visitor.sign_in(f"#/runs/{run['id']}?tab=code")
    expect(page.locator(".hl-addition", has_text="+width = 128")).to_be_visible()
    expect(page.locator(".hl-deletion", has_text="-width = 64")).to_be_visible()


def test_charts_are_zoomed_with_keys(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")
    reset = page.get_by_role("button", name="Reset zoom")
    page.locator(".chart .u-over").first.wait_for()
    page.locator(".chart-plot").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart-value", has_text="step")).to_have_count(3)  # every chart shows its value
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(reset).to_be_visible()
    page.keyboard.press("-")
    expect(reset).to_be_visible()
    page.keyboard.press("-")
    expect(reset).to_have_count(0)
    page.keyboard.press("+")
    expect(reset).to_be_visible()
    page.keyboard.press("0")
    expect(reset).to_have_count(0)


def test_charts_zoom_together_grow_large_and_are_saved(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")
    charts = page.locator(".chart canvas")
    expect(charts).to_have_count(3)
    box = charts.first.bounding_box()
    assert box
    page.mouse.move(box["x"] + 120, box["y"] + 60)
    expect(page.locator(".chart-value", has_text="step").first).to_be_visible()
    page.mouse.down()
    page.mouse.move(box["x"] + 220, box["y"] + 60, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Reset zoom").click()
    expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)
    page.get_by_role("button", name="Larger").first.click()
    expect(page.locator(".chart-big")).to_have_count(1)
    page.get_by_label("Log x").check()
    page.get_by_role("button", name="time", exact=True).click()
    expect(charts).to_have_count(3)
    page.get_by_label("Log x").uncheck()
    page.get_by_role("button", name="Download train/loss").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="All points (CSV)").click()
    assert Path(saved.value.path()).read_text().startswith("key,step,time,value")
    page.get_by_role("button", name="Download train/loss").click()
    with page.expect_download() as drawn:
        page.get_by_role("button", name="Image (PNG)").click()
    expect(page.get_by_role("button", name="Image (PNG)")).to_have_count(0)
    picture = Path(drawn.value.path()).read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (960, 440 + 56), "large enough to show to others, with its name and its run above it"


def test_small_negative_ticks_keep_their_sign(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("sleep 300", name="tiny")
    points = [{"key": "advantage", "step": step, "value": -0.000975 - step * 1e-6} for step in range(60)]
    lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points})
    page = visitor.sign_in(f"#/runs/{run['id']}")
    plot = page.get_by_label("Chart of advantage").locator(".u-over")
    plot.wait_for()
    widest = page.evaluate(
        "(pen => (pen.font = '11px system-ui, sans-serif', pen.measureText('-0.00098').width))"
        "(document.createElement('canvas').getContext('2d'))"
    )
    assert plot.evaluate("(over) => over.offsetLeft") > widest + 6, "a label is cut off at its sign"
    lab.post(f"/runs/{run['id']}/stop")


def test_a_tty_run_gets_the_window_size(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("trap 'echo now $(stty size).' WINCH; while :; do sleep 0.1; done", name="sized", tty=True)
    lab.wait_for_status(run["id"], "running")
    page = visitor.sign_in(f"#/runs/{run['id']}?tab=terminal")
    screen = page.locator(".terminal .xterm-rows")
    rows = screen.locator("> div")
    expect(rows.first).to_be_attached()
    expect(screen).to_contain_text(f"now {rows.count()} ")
    wide = rows.count()
    page.set_viewport_size({"width": 700, "height": 500})
    expect(rows).not_to_have_count(wide)
    expect(screen).to_contain_text(f"now {rows.count()} ")
    lab.post(f"/runs/{run['id']}/stop")


def test_the_terminal_shows_output_and_sends_input(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.submit("echo ready; read answer; echo you said $answer; sleep 300", name="talks")
    lab.wait_for_status(run["id"], "running")
    page = visitor.sign_in(f"#/runs/{run['id']}")
    page.get_by_role("tab", name="Terminal").click()
    screen = page.locator(".terminal .xterm-rows")
    expect(screen).to_contain_text("ready")
    page.keyboard.type("hello there\n")
    expect(screen).to_contain_text("you said hello there")
    visitor.picture("terminal")
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("tab", name="Terminal")).to_be_focused()  # the terminal does not trap the keyboard
    page.get_by_role("tab", name="Overview").click()
    assert lab.run(run["id"])["status"] == "running", "closing the terminal ends nothing"
    visitor.open(f"#/runs/{run['id']}?tab=terminal")
    expect(screen).to_contain_text("you said hello there")
    lab.post(f"/runs/{run['id']}/stop")
    expect(page.locator(".run-head .status")).to_contain_text("stopped")
