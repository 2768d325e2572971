"""The skills and memory pages."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import Sample
from tests.browser.test_hostile_content import IMAGE, SCRIPT
from tests.support.live_server import LiveServer

SKILL = f"""---
name: house-rules
description: How we work here. {SCRIPT}
metadata:
  variables: experiment_context, goal
---
# House rules

{SCRIPT} {IMAGE} [x](javascript:alert(1))

{{{{experiment_context}}}}

The goal: {{{{goal}}}}
"""


def test_a_skill_is_created_previewed_edited_and_deleted(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    visitor.allow(FAILED_REQUEST)  # drafts that the server refuses
    page = visitor.sign_in("#/skills")
    page.get_by_role("button", name="New skill").click()
    field = page.get_by_role("textbox", name="SKILL.md")
    field.fill("no skill at all")
    expect(page.get_by_role("alert")).to_contain_text("The skill has no frontmatter")
    field.fill(SKILL)
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("The goal: {{goal}}")  # not filled in yet
    field.fill(f"{SKILL}{{{{")
    expect(preview).to_contain_text("Preview of the last valid text:")
    expect(preview).to_contain_text("The goal: {{goal}}")
    field.fill(SKILL)
    expect(preview).not_to_contain_text("last valid")
    page.get_by_role("button", name="Save skill").click()
    expect(page.get_by_role("heading", name="house-rules", level=1)).to_be_visible()
    page.get_by_text("Variables: experiment_context, goal").click()
    page.get_by_label("goal").fill("less loss")
    shown = page.get_by_role("article")
    expect(shown).to_contain_text("The goal: less loss")
    expect(shown).to_contain_text(re.compile(r"runs: .*\d+ finished"))
    expect(shown).to_contain_text(SCRIPT)
    assert shown.locator("a, img, script").count() == 0
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="SKILL.md").fill(SKILL.replace("The goal:", "We want:"))
    page.get_by_role("button", name="Save skill").click()
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_role("region", name="SKILL.md")).to_contain_text("We want:")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete skill").click()
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="house-rules", level=1)).to_be_visible()
    assert lab.get("/prompt-skills/house-rules")["text"] == SKILL.replace("The goal:", "We want:")


def test_a_built_in_skill_is_overridden_and_restored(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/skills/plan-mode")
    expect(page.get_by_text("built-in")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("button", name="Override").click()
    field = page.get_by_role("textbox", name="SKILL.md")
    field.fill(f"{field.input_value()}\nAlways name a baseline.\n")
    page.get_by_role("button", name="Save skill").click()
    expect(page.get_by_text("overrides", exact=True)).to_be_visible()
    expect(page.get_by_role("article")).to_contain_text("Always name a baseline.")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete skill").click()
    expect(page.get_by_text("built-in", exact=True)).to_be_visible()
    assert lab.get("/prompt-skills/plan-mode")["source"] == "built-in"


def test_notes_are_added_accepted_edited_deleted_and_restored(visitor: Visitor, lab: LiveServer) -> None:
    agent = mint(lab.token, Scope.AGENT, "outside", 600)
    proposed = lab.call("POST", "/memories", {"text": f"proposed {SCRIPT}{IMAGE}"}, token=agent).json
    session = lab.post("/sessions", {})["id"]
    lab.say(session, "remember warm-up helps")
    page = visitor.sign_in("#/memory")
    said = page.get_by_role("listitem").filter(has_text="warm-up helps")
    expect(said).to_contain_text("agent in a conversation")
    expect(said.get_by_role("link")).to_have_attribute("href", f"#/chat/{session}")
    waits = page.get_by_label("Proposed by agents").get_by_role("listitem").filter(has_text="proposed")
    expect(waits).to_contain_text(SCRIPT)
    waits.get_by_role("button", name="Accept").click()
    told = page.get_by_label("Used in every conversation").get_by_role("listitem")
    expect(told.filter(has_text=SCRIPT)).to_be_visible()
    assert lab.call("GET", "/memories?accepted=true").json[0]["id"] == proposed["id"]
    page.get_by_label("Note").fill("batch 256 fits")
    page.get_by_label("Note").press("Enter")
    note = told.filter(has_text="batch 256 fits")
    note.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("Note").fill("batch 256 fits on one card")
    page.get_by_role("button", name="Save note").click()
    note = told.filter(has_text="batch 256 fits on one card")
    note.get_by_role("button", name="Delete").click()
    expect(note).to_have_count(0)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(note).to_be_visible()


def test_an_unsaved_note_is_not_lost(visitor: Visitor, lab: LiveServer) -> None:
    visitor.allow(FAILED_REQUEST)
    lab.post("/memories", {"text": "dropout hurts"})
    page = visitor.sign_in("#/memory")
    page.get_by_label("Note").fill("half a note")
    page.reload()
    expect(page.get_by_label("Note")).to_have_value("half a note")
    page.get_by_role("listitem").filter(has_text="dropout hurts").get_by_role("button", name="Edit").click()
    field = page.get_by_role("dialog").get_by_label("Note")
    too_long = "dropout hurts " * 400
    field.fill(too_long)
    page.get_by_role("button", name="Save note").click()
    expect(page.locator(".toasts")).not_to_be_empty()
    expect(field).to_have_value(too_long)
