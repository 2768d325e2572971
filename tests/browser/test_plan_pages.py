"""Plans in the browser: the document with what is wrong with it, its versions."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import PLAN, Sample
from tests.support.live_server import LiveServer


def test_a_document_is_shown_as_text_whatever_is_in_it(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/plans/{sample.plan}")
    document = page.locator(".markdown")
    expect(document.get_by_role("heading", name="Objective")).to_be_visible()
    expect(document).to_contain_text("<script>alert(1)</script>")
    expect(document.get_by_text("a link")).to_be_visible()
    assert document.locator("a, img, script").count() == 0


def test_faults_of_form_show_while_typing_and_versions_can_be_compared(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Edited", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    page.get_by_role("button", name="Edit document").click()
    field = page.get_by_role("textbox", name="Document")
    expect(page.get_by_label("What is wrong with the form")).to_be_visible()
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
    visitor.allow(FAILED_REQUEST)  # its page may ask once more for what is gone
    page.get_by_role("button", name="Delete plan…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete plan").click()
    expect(page.get_by_role("heading", name="Plans", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="gone")).to_have_count(0)
    expect(page.get_by_role("button", name="All", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Archived").click()
    expect(page.get_by_role("link", name="kept")).to_be_visible()


UNLOADS = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"  # unless a page asks first


def test_what_was_written_comes_back_after_it_was_cancelled(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Cancelled", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}?tab=document")
    page.get_by_role("button", name="Edit document").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Edit document")).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)
    page.get_by_role("button", name="Edit document").click()
    page.get_by_role("textbox", name="Document").fill("an hour of work")
    page.get_by_role("button", name="Cancel").click()
    page.locator(".toast", has_text="What you wrote is gone").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("textbox", name="Document")).to_have_value("an hour of work")


def test_what_was_written_is_kept_and_goes_over_no_other_version_unasked(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "Two writers", "goal": "g", "raw_markdown": PLAN})
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    page.get_by_role("button", name="Edit document").click()
    assert page.evaluate(UNLOADS), "nothing was written yet"
    page.get_by_role("textbox", name="Document").fill(f"{PLAN}\nmine\n")
    lab.call("PATCH", f"/plans/{plan['id']}", {"raw_markdown": f"{PLAN}\ntheirs\n", "version": 1})
    expect(page.get_by_text("Version 2 was saved while you wrote.")).to_be_visible()
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


def test_who_has_approved_is_not_asked_to_while_the_last_check_runs(visitor: Visitor, lab: LiveServer) -> None:
    plan = lab.post("/plans", {"title": "decided", "goal": "g", "raw_markdown": PLAN})
    nodes = {"HumanReview": "finished", "FinalHandoffCheck": "started"}
    progress = [{"node": node, "status": status, "seconds": None, "message": ""} for node, status in nodes.items()]
    lights = {"validated": True, "approved": True, "ready_for_run": False, "digest": "", "approval": None}
    words = {"status": "compiling", "node": "FinalHandoffCheck", "error": "", "model": "", "questions": []}
    planning = {**words, **lights, "feedback": {}, "progress": progress, "steps": []}
    now = {**lab.get(f"/plans/{plan['id']}"), "compiling_by": "person", "planning": planning}  # over in a second
    visitor.page.route(f"**/plans/{plan['id']}", lambda route: route.fulfill(json=now))
    visitor.allow(FAILED_REQUEST)  # there is no workspace behind it
    page = visitor.sign_in(f"#/plans/{plan['id']}")
    expect(page.get_by_text("Final Handoff Check is under way. It is approved")).to_be_visible()
    expect(page.get_by_text("before you approve it")).to_have_count(0)
