"""Models that follow a script, and nothing beyond it."""

from __future__ import annotations

import asyncio

import pytest

from labwright.llm import ChatMessage, ChatRequest, Request, ScriptedChat, ScriptedModel, ToolCall
from labwright.llm.chat import read_reply
from labwright.llm.faults import AnswerCut


def ask(model: ScriptedModel, node: str) -> str:
    return model.answer(Request(node=node, value_type=str)).value


def test_answers_come_in_order_for_each_node_and_requests_are_recorded() -> None:
    model = ScriptedModel({"Draft": ["one", "two"], "Check": ["three"]})
    assert [ask(model, "Draft"), ask(model, "Check"), ask(model, "Draft")] == ["one", "three", "two"]
    assert [request.node for request in model.asked] == ["Draft", "Check", "Draft"]


def test_after_the_script_another_model_answers_or_an_error_is_raised() -> None:
    last = ScriptedModel({"Draft": ["from the other"]})
    model = ScriptedModel({"Draft": [ValueError("no JSON")]}, fallback=last)
    with pytest.raises(ValueError, match="no JSON"):
        ask(model, "Draft")
    assert ask(model, "Draft") == "from the other"
    with pytest.raises(LookupError, match="no answer left for Draft"):
        ask(model, "Draft")


def test_scripted_chat_plays_its_turns_and_ends_each() -> None:
    call = ToolCall(id="c-1", name="look")
    chat = ScriptedChat([["Looking", call], ["Done."], [AnswerCut()]])
    question = ChatRequest(system="s", messages=(ChatMessage(role="user", text="?"),))
    first, second = asyncio.run(read_reply(chat, question)), asyncio.run(read_reply(chat, question))
    assert (first.text, first.calls, first.end.why) == ("Looking", (call,), "calls")
    assert (second.text, second.end.why, chat.asked) == ("Done.", "end", [question, question])
    with pytest.raises(AnswerCut):
        asyncio.run(read_reply(chat, question))
    with pytest.raises(LookupError, match="no turn left"):
        asyncio.run(read_reply(chat, question))
