"""Plans in the browser: document, format errors, versions, drafts."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import PLAN, Sample
from tests.support.live_server import LiveServer


def test_html_in_a_document_is_shown_as_text(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/plans/{sample.plan}")
    document = page.locator(".markdown")
    expect(document.get_by_role("heading", name="Objective")).to_be_visible()
    expect(document).to_contain_text("<script>alert(1)</script>")
    expect(document.get_by_text("a link")).to_be_visible()
    assert document.locator("a, img, script").count() == 0


def test_format_errors_show_while_typing_and_versions_can_be_compared(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Edited", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    page.get_by_role("button", name="Edit document").click()
    field = page.get_by_role("textbox", name="Document")
    expect(page.get_by_label("Format errors")).to_be_visible()
    before = page.locator(".faults li").count()
    field.fill(f"{PLAN}\n### Approach\n1. **Try** — both widths\n")
    expect(page.locator(".faults li")).not_to_have_count(before)
    page.locator(".faults").get_by_role("button").first.click()
    expect(field).to_be_focused()
    page.get_by_role("button", name="Save version").click()
    expect(page.locator(".toasts")).to_contain_text("Saved as a new version")
    page.get_by_role("tab", name="Versions").click()
    expect(page.locator(".diff .hl-addition", has_text="### Approach")).to_be_visible()
    assert lab.get(f"/plans/{plan['id']}")["version"] == 2


def test_a_plan_is_archived_and_another_deleted(visitor: Visitor, lab: LiveServer) -> None:
    kept, dropped = (
        lab.post("/plans", {"title": title, "goal": "g", "raw_markdown": PLAN}) for title in ("kept", "gone")
    )
    page = visitor.sign_in(f"#/plans/{kept['id']}")
    more = page.locator("main").get_by_role("button", name="More")
    more.click()
    page.get_by_role("button", name="Archive…").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive plan").click()
    expect(page.locator(".run-head .status")).to_have_text("archived")
    visitor.open(f"#/plans/{dropped['id']}")
    more.click()
    visitor.allow(FAILED_REQUEST)  # its page may request the deleted plan once more
    page.get_by_role("button", name="Delete plan…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete plan").click()
    expect(page.get_by_role("heading", name="Plans", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="gone")).to_have_count(0)
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Archived").click()
    expect(page.get_by_role("link", name="kept")).to_be_visible()


UNLOADS = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"  # false if the page asks first


def test_a_cancelled_draft_can_be_restored(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Cancelled", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}?tab=document")
    page.get_by_role("button", name="Edit document").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Edit document")).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)
    page.get_by_role("button", name="Edit document").click()
    page.get_by_role("textbox", name="Document").fill("an hour of work")
    page.get_by_role("button", name="Cancel").click()
    page.locator(".toast", has_text="Draft discarded").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("textbox", name="Document")).to_have_value("an hour of work")


def test_drafts_survive_a_reload(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Reloaded", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}?tab=document")
    page.get_by_role("button", name="Edit document").click()
    page.get_by_role("textbox", name="Document").fill("an hour of work")
    visitor.open("#/chat")
    page.get_by_role("textbox", name="Message").fill("half a sen")
    visitor.open("#/plans")
    page.get_by_label("Goal").fill("find out")
    page.reload()
    expect(page.get_by_label("Goal")).to_have_value("find out")
    visitor.open("#/chat")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a sen")
    visitor.open(f"#/plans/{plan['id']}?tab=document")
    expect(page.get_by_role("textbox", name="Document")).to_have_value("an hour of work")


def test_saving_over_a_newer_version_asks_first(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Two writers", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    page.get_by_role("button", name="Edit document").click()
    assert page.evaluate(UNLOADS), "nothing was written yet"
    page.get_by_role("textbox", name="Document").fill(f"{PLAN}\nmine\n")
    lab.call("PATCH", f"/plans/{plan['id']}", {"raw_markdown": f"{PLAN}\ntheirs\n", "version": 1})
    expect(page.get_by_text("Version 2 was saved while you were editing.")).to_be_visible()
    page.get_by_role("tab", name="Versions").click()
    expect(page.locator(".diff .hl-addition", has_text="theirs")).to_be_visible()
    assert not page.evaluate(UNLOADS), "what was written is lost unasked"
    visitor.open("#/help")
    visitor.open(f"#/plans/{plan['id']}?tab=document")
    expect(page.get_by_role("textbox", name="Document")).to_have_value(f"{PLAN}\nmine\n")
    for answer in ("Cancel", "Save version"):
        assert lab.get(f"/plans/{plan['id']}")["version"] == 2
        page.get_by_role("button", name="Save version").click()
        page.get_by_role("dialog").get_by_role("button", name=answer).click()
    expect(page.locator(".toasts")).to_contain_text("Saved as a new version")
    assert ["mine" in one["raw_markdown"] for one in lab.get(f"/plans/{plan['id']}/versions")] == [True, False, False]
    assert page.evaluate(UNLOADS)


def being_planned(visitor: Visitor, lab: LiveServer, plan_id: str, nodes: dict[str, str], **lights: bool) -> None:
    """Simulate the final checks, which take only a second."""
    progress = [{"node": node, "status": status, "seconds": None, "message": ""} for node, status in nodes.items()]
    lights = {"validated": False, "approved": False, "ready_for_run": False, **lights}
    words = {"status": "compiling", "node": list(nodes)[-1], "error": "", "model": "", "questions": []}
    facts: dict[str, Any] = {"digest": "", "approval": None, "feedback": {}, "progress": progress, "steps": []}
    now = {**lab.get(f"/plans/{plan_id}"), "compiling_by": "person", "planning": {**words, **lights, **facts}}
    visitor.page.route(f"**/plans/{plan_id}", lambda route: route.fulfill(json=now))
    visitor.allow(FAILED_REQUEST)  # it has no workspace


def test_final_checks_do_not_ask_for_approval_again(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "decided", "goal": "g", "raw_markdown": PLAN})
    nodes = {"HumanReview": "finished", "FinalHandoffCheck": "started"}
    being_planned(visitor, lab, plan["id"], nodes, validated=True, approved=True)
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    expect(page.get_by_text("Current step: Final Handoff Check. The plan is approved")).to_be_visible()
    expect(page.get_by_text("before you approve it")).to_have_count(0)


FEEDS = {
    "train": (),
    "summarise": ("train",),
    "choose_best": ("summarise", "train"),
    "compare_with_baseline": ("summarise", "choose_best", "train"),
    "write_table": ("summarise", "train"),
    "clean_rows": ("summarise",),
    "normalise": ("clean_rows",),
    "bootstrap_intervals": ("clean_rows",),
    "effect_size": ("normalise", "bootstrap_intervals"),
    "outliers_of_every_mixed_configuration": ("train", "clean_rows"),
    "plot": ("effect_size", "outliers_of_every_mixed_configuration"),
    "final_report": ("plot", "choose_best", "write_table", "train"),
}
# Edges that cross a foreign box, and names that are wider than their box.
MISLEADING = """svg => {
    const boxes = [...svg.querySelectorAll(".graph-box")].map((box) => ({
        name: box.textContent, place: box.querySelector("rect").getBoundingClientRect(),
        isWide: box.querySelector(".graph-name").getBBox().width > box.querySelector("rect").getBBox().width - 16,
    }));
    const frame = svg.getBoundingClientRect();
    const isIn = ({ x, y }, { place }) => x + frame.left > place.left + 1 && x + frame.left < place.right - 1
        && y + frame.top > place.top + 1 && y + frame.top < place.bottom - 1;
    const through = [...svg.querySelectorAll(".graph-edge")].flatMap((line) => {
        const points = Array.from({ length: 400 }, (_, at) => line.getPointAtLength(at / 399 * line.getTotalLength()));
        return boxes.filter((box) => points.some((point) => isIn(point, box))).map(({ name }) => name);
    });
    return [...through, ...boxes.filter(({ isWide }) => isWide).map(({ name }) => `${name} is too wide`)];
}"""


def test_no_workflow_edge_crosses_a_step(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "twelve steps", "goal": "g", "raw_markdown": PLAN})
    steps = [
        {"id": name, "kind": "python", "inputs": {}, "outputs": {}, "responsibility": name, "command": ""}
        for name in FEEDS
    ]
    grid = {"parameters": [], "seeds": [], "metric": {"name": "loss", "direction": "minimize"}}
    edges = [(source, name) for name, sources in FEEDS.items() for source in sources]
    workflow = {"name": "w", "steps": steps, "edges": edges, "grid": grid}
    visitor.page.route(f"**/plans/{plan['id']}/workflow", lambda route: route.fulfill(json=workflow))
    being_planned(visitor, lab, plan["id"], {"CompileTaskIR": "finished", "ValidateWorkspace": "started"})
    page = visitor.sign_in(f"#/plans/{plan['id']}?tab=workflow")
    graph = page.locator(".graph")
    expect(graph.locator(".graph-box")).to_have_count(len(FEEDS))
    expect(graph.locator(".graph-edge")).to_have_count(len(edges))
    assert graph.evaluate(MISLEADING) == []
    visitor.picture("plan-twelve-steps")
