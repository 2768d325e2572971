"""Conversations in the browser, with fixed rules and with a simulated model provider."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.sample import Sample
from tests.browser.test_accessibility import serious_faults
from tests.browser.test_connection import free_port
from tests.support.live_server import LiveServer
from tests.support.model_server import Asked, ModelServer, Turn, model_server
from tests.support.waiting import wait_until

HOSTILE = (
    "<img src=x onerror=alert()> [x](javascript:alert()) <script>alert()</script> \ue000\ue101 [y](https://a.b/0.5)"
)
CODE = 'It is 0.91.\n\n```python\nloss = 0.77  # not 0.66\n```\n\n```\nloss 0.55\n```\n\n[curve](https://a.b "of 0.31")'


def said(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name="Message")
    field.fill(text)
    field.press("Enter")


def test_evidence_in_a_response_links_to_the_metric(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/chat")
    said(page, f"metrics of @{sample.failed}")
    answer = page.locator(".answer").last
    expect(answer).to_contain_text("train/loss")
    expect(page.get_by_text("no model used")).to_be_visible()
    expect(page.locator(".said .mention")).to_have_attribute("href", f"#/runs/{sample.failed}")
    call = page.locator(".fold").first
    expect(call).not_to_have_attribute("open", "")
    call.locator("summary").click()
    expect(call.get_by_role("region", name="Result of get_metrics")).to_contain_text("train/loss")
    answer.get_by_role("link", name=re.compile("^E[0-9]+$")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("resnet18 breaks")
    expect(page.locator(".chart-big")).to_be_in_viewport()


def test_enter_after_a_complete_id_sends_the_message(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/chat")
    field = page.get_by_role("textbox", name="Message")
    field.fill(f"metrics of @{sample.failed}")
    expect(page.get_by_role("listbox", name="Mentions")).to_be_visible()
    field.press("Enter")
    expect(page.locator(".answer").last).to_contain_text("train/loss")


def test_mentions_are_completed_with_the_keyboard(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in(f"#/runs/{sample.failed}")
    page.get_by_label("Ask about train/loss").click()
    field = page.get_by_role("textbox", name="Message")
    expect(field).to_have_value(f"@{sample.failed} `train/loss` ")
    field.fill("show ")
    field.press_sequentially("@breaks")
    option = page.get_by_role("option", name="resnet18 breaks")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(field).to_have_value(f"show @{sample.failed} ")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text(sample.failed)
    page.get_by_role("button", name="Mention").click()
    expect(page.get_by_role("option", name="newest run")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)


def test_a_draft_about_a_run_survives_a_reload_and_replaces_no_other_draft(visitor: Visitor, sample: Sample) -> None:
    page = visitor.sign_in("#/chat")
    field = page.get_by_role("textbox", name="Message")
    field.fill("written before")
    visitor.open(f"#/runs/{sample.failed}")
    page.get_by_label("Ask about train/loss").click()
    brought = f"@{sample.failed} `train/loss` "
    expect(field).to_have_value(brought)
    field.press_sequentially("why so high")
    page.reload()
    expect(field).to_have_value(f"{brought}why so high")
    page.get_by_role("link", name="New", exact=True).click()
    expect(field).to_have_value("written before")


def test_text_typed_while_a_message_is_sent_is_kept(visitor: Visitor) -> None:
    page = visitor.sign_in("#/chat")
    page.get_by_role("button", name="gpus").click()
    expect(page.locator(".answer")).to_be_visible()
    held: list[Route] = []
    page.route("**/chat", lambda route: held.append(route), times=1)
    field = page.get_by_role("textbox", name="Message")
    field.fill("alerts")
    with page.expect_request("**/chat"):
        field.press("Enter")
    field.press_sequentially(" and what is running?")
    field.press("Enter")  # ignored: it would send the first message again
    expect(field).to_have_value("alerts and what is running?")
    held[0].continue_()
    expect(field).to_have_value("and what is running?")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    field.press("Enter")
    expect(page.locator(".said-text")).to_have_text(["gpus", "alerts", "and what is running?"])


def test_text_typed_while_a_conversation_is_created_is_kept(visitor: Visitor) -> None:
    page = visitor.sign_in("#/chat")
    held: list[Route] = []
    page.route("**/chat", lambda route: held.append(route))
    with page.expect_request("**/chat"):
        said(page, "gpus")
    field = page.get_by_role("textbox", name="Message")
    field.press_sequentially(" and alerts")
    field.press("Enter")
    held[0].continue_()
    expect(page.locator(".said-text")).to_have_text(["gpus"])
    expect(field).to_have_value("and alerts")
    assert len(held) == 1


def test_an_approval_is_answered_in_the_conversation(visitor: Visitor, lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true", "name": "not-yours"})
    page = visitor.sign_in("#/chat")
    said(page, "stop not-yours")
    asked = page.get_by_role("group", name="Approval")
    expect(asked).to_contain_text("stop_run")
    expect(page.get_by_role("link", name=re.compile("stop not-yours.*needs approval"))).to_be_visible()
    assert lab.run(run["id"])["status"] == "ready"
    asked.get_by_label("Reason").fill("not needed")
    asked.get_by_role("button", name="Approve").click()
    expect(page.locator(".answer").last).to_contain_text(run["id"])
    expect(asked).to_contain_text("approved by person")
    wait_until(lambda: lab.run(run["id"])["status"] == "stopped", "the run to be stopped")


def test_a_conversation_is_renamed_switched_to_planning_and_deleted(visitor: Visitor, lab: LiveServer) -> None:
    page = visitor.sign_in("#/chat")
    page.get_by_role("button", name="gpus").click()
    expect(page.locator(".answer")).to_be_visible()
    more = page.locator(".chat-head").get_by_role("button", name="More")
    more.click()
    page.get_by_role("button", name="Rename…").click()
    page.get_by_label("Title").fill("the machine")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("heading", name="the machine", level=1)).to_be_visible()
    page.get_by_role("button", name="plan", exact=True).click()
    expect(page.get_by_role("button", name="plan", exact=True)).to_have_attribute("aria-pressed", "true")
    (session,) = [one for one in lab.get("/sessions") if one["title"] == "the machine"]
    assert session["mode"] == "plan"
    more.click()
    page.get_by_role("button", name="Delete conversation…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete conversation").click()
    expect(page.get_by_role("heading", name="Chat", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="the machine")).to_have_count(0)


def test_a_conversation_deleted_elsewhere_shows_a_message(visitor: Visitor, lab: LiveServer) -> None:
    session = lab.post("/sessions", {})["id"]
    lab.say(session, "gpus")
    page = visitor.sign_in(f"#/chat/{session}")
    expect(page.locator(".answer")).to_be_visible()
    page.get_by_label("Message").fill("half a thought")
    lab.call("DELETE", f"/sessions/{session}")
    expect(page.get_by_role("heading", name="This conversation was deleted")).to_be_visible()
    assert "half a thought" not in page.evaluate("JSON.stringify(sessionStorage)")  # it could not be sent any more
    page.get_by_role("link", name="Start a new conversation").click()
    expect(page.get_by_role("heading", name="Chat", level=1)).to_be_visible()


def test_a_waiting_conversation_continues_by_itself(visitor: Visitor, lab: LiveServer, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = lab.submit(f"until [ -e {gate} ]; do sleep 0.05; done", name="slow-one")
    page = visitor.sign_in("#/chat")
    said(page, "tell me when slow-one is done")
    expect(page.locator(".notice-line")).to_contain_text("Waiting for slow-one")
    expect(page.get_by_role("button", name="Stop waiting")).to_be_visible()
    gate.touch()
    expect(page.locator(".answer").last).to_contain_text(f"{run['id']} finished")


def test_a_viewer_can_read_but_not_write(visitor: Visitor, lab: LiveServer, sample: Sample) -> None:
    page = visitor.page
    page.goto(f"{lab.url}/#token={mint(lab.token, Scope.VIEWER, 'guest', 600.0)}")
    page.get_by_role("navigation").wait_for()
    visitor.open(f"#/chat/{sample.conversation}")
    expect(page.get_by_role("log")).to_contain_text("Only a person can answer this.")
    expect(page.get_by_text("Only a person can write here.")).to_be_visible()
    for address, heading in (("#/memory", "Memory"), ("#/wild", "Wild"), ("#/settings", "Settings")):
        visitor.open(address)
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        expect(page.locator("main").get_by_role("button", name=re.compile("Save|Add note|Start|Delete"))).to_have_count(
            0
        )


# With a model


def script(asked: Asked) -> Turn:
    told = [message for message in asked.body["messages"] if message["role"] in ("tool", "user")]
    last = told[-1]
    words = str(last.get("content"))
    if "story" in words:
        return Turn(text=("Once upon", " a time"), hang_after=2)
    if "bit by bit" in str(told) and last["role"] == "tool":
        return Turn(text=("So far",), hang_after=2)
    if "hostile" in words:
        return Turn(text=(HOSTILE,))
    if "in code" in words:
        return Turn(text=(CODE,))
    if last["role"] == "user":
        return Turn(
            thinking="Look first.", text=("Let me ", "look."), calls=(("get_metrics", json.dumps({"run": "base"})),)
        )
    return Turn(text=("The **loss** is 0.25 [E1], ", "not 0.75. 🎲 Nor 0.9."), thinking="Easy.")


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with model_server("openai", script) as made:
        yield made


@pytest.fixture(scope="module")
def talker(provider: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("talk") / "project"
    project.mkdir()
    wire = {"LABWRIGHT_MODEL": "openai:x", "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-fake"}
    server = LiveServer(project, LABWRIGHT_PORT=free_port(), **wire).start()
    run = server.post("/runs", {"command": "true", "name": "base", "auto_start": True})
    server.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "loss", "step": 1, "value": 0.25}]})
    server.wait_for_end(run["id"])
    server.call("POST", "/chat", {"message": "hello"})  # load the large provider libraries first
    yield server
    server.stop()


def test_a_response_streams_with_thoughts_and_unsupported_claims(
    talker: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    visitor = make_visitor(talker)
    page = visitor.sign_in("#/chat")
    said(page, "How good is @base?")
    answer = page.locator(".answer").last
    expect(answer).to_contain_text("The loss is 0.25 E1, not 0.75")
    expect(answer.locator("strong")).to_have_text("loss")
    marked = answer.locator("mark")
    expect(marked).to_have_count(2)
    expect(marked.first).to_contain_text("0.75")
    expect(marked.last).to_contain_text("0.9")
    expect(marked.first).to_have_attribute("title", re.compile("mismatch: E1 shows"))
    page.get_by_text("Thought").first.click()
    expect(page.get_by_text("Look first.")).to_be_visible()
    expect(page.locator(".chat-cost")).to_contain_text("240 tokens")
    assert serious_faults(page) == []
    visitor.picture("chat-answer")
    said(page, "hostile")
    expect(page.locator(".answer").last).to_contain_text("<script>alert()</script>")
    assert page.locator(".answer").last.locator("img, script, a:not([href='https://a.b/0.5'])").count() == 0


def test_unsupported_claims_in_code_are_marked_with_their_reasons(
    talker: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    page = make_visitor(talker).sign_in("#/chat")
    said(page, "Say it in code")
    answer = page.locator(".answer")
    note = answer.get_by_role("group").filter(has_text="not supported")
    expect(note).to_contain_text("5 claims are not supported")
    assert [one.evaluate("mark => mark.firstChild.textContent") for one in answer.locator("mark").all()] == [
        "0.91",
        "0.77",
        "0.66",
        "0.55",
    ]
    expect(answer.locator(".hl-comment mark")).to_contain_text("0.66")
    note.locator("summary").click()
    expect(note.get_by_role("listitem")).to_have_text(
        [f"{value} no source: no evidence is cited for it" for value in ("0.91", "0.77", "0.66", "0.55", "0.31")]
    )
    assert serious_faults(page) == []


def test_the_cost_is_updated_during_a_turn(talker: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    page = make_visitor(talker).sign_in("#/chat")
    said(page, "Tell me a story")
    expect(page.locator(".answer")).to_have_text("Once upon")
    expect(page.get_by_text("no model used")).to_have_count(0)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("link", name="New").click()
    said(page, "How good is @base? Tell me bit by bit.")
    expect(page.locator(".answer").last).to_have_text("So far")
    expect(page.locator(".chat-cost")).to_have_text("120 tokens")
    page.get_by_role("button", name="Stop", exact=True).click()


def test_a_killed_server_repeats_no_text(talker: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(talker)
    visitor.allow(FAILED_REQUEST)
    page = visitor.sign_in("#/chat")
    said(page, "Tell me a story")
    answer = page.locator(".answer")
    expect(answer).to_have_text("Once upon")
    page.evaluate("window.here = true")
    talker.kill()
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond")
    talker.start()
    expect(page.get_by_role("alert")).to_have_count(0, timeout=60_000)
    expect(page.get_by_text("interrupted the answer")).to_be_visible()
    expect(answer).to_have_text("Once upon", timeout=60_000)  # requested again, shown once
    expect(page.locator(".said")).to_have_count(1)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".notice-line").last).to_contain_text("Stopped by person")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert page.evaluate("window.here"), "the page was loaded anew"
    session = page.url.rsplit("/", 1)[-1]
    kinds = [piece["kind"] for piece in _pieces(talker, session)]
    assert kinds.count("user") == 1


def _pieces(server: LiveServer, session: str) -> Any:
    return server.get(f"/sessions/{session}/pieces")
