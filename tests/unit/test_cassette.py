"""Recorded model replies can be played back. A request without a recording is a clear error."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.domain.errors import Invalid
from labwright.llm import ChatMessage, ChatPiece, ChatRequest, Request, ScriptedChat, ThinkingPiece, ToolCall
from labwright.llm.answering import TOOL, ChatAnswers
from labwright.llm.cassette import NotOnCassette, RecordingChat, ReplayingChat
from labwright.llm.chat import ChatModel
from labwright.llm.faults import AnswerCut

QUESTION = ChatRequest(system="s", messages=(ChatMessage(role="user", text="How is it going?"),))
CALL = ToolCall(id="c-1", name="look", arguments={"run": "r-1"})


def pieces(chat: ChatModel, request: ChatRequest = QUESTION) -> list[ChatPiece]:
    async def gather() -> list[ChatPiece]:
        return [piece async for piece in chat.stream(request)]

    return asyncio.run(gather())


def test_same_pieces_are_replayed_in_order(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    recorder = RecordingChat(ScriptedChat([[ThinkingPiece("hm"), "It ", "goes.", CALL], ["Still."]]), path)
    first, second = pieces(recorder), pieces(recorder)
    player = ReplayingChat(path)
    assert (pieces(player), pieces(player)) == (first, second)
    with pytest.raises(NotOnCassette, match="no reply left for a request with 1 messages, the last 'How is it going"):
        pieces(player)


def test_unrecorded_request_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    pieces(RecordingChat(ScriptedChat([["It goes."]]), path))
    with pytest.raises(NotOnCassette) as missing:
        pieces(ReplayingChat(path), replace(QUESTION, system="other"))
    assert "RecordingChat" in missing.value.hint


def test_structured_answers_are_recorded_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    request = Request(node="Judge", value_type=dict[str, int], given={"goal": "x"})
    script = ScriptedChat([[ToolCall(id="c", name=TOOL, arguments={"a": 1})]])
    recorded = ChatAnswers(RecordingChat(script, path), {"Judge": "Judge."}).answer(request)
    assert ChatAnswers(ReplayingChat(path), {"Judge": "Judge."}).answer(request) == recorded


def test_cassette_is_a_readable_file_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    shown = replace(QUESTION, messages=(ChatMessage(role="user", text="env says KEY=sk-123"),))
    pieces(RecordingChat(ScriptedChat([["You said sk-123."]]), path, secrets=["sk-123", ""]), shown)
    text = path.read_text()
    assert "sk-123" not in text and "KEY=[secret]" in text
    assert len(text.splitlines()) > 10 and json.loads(text)["entries"][0]["asked"]["system"] == "s"


def test_cut_reply_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    recorder = RecordingChat(ScriptedChat([["half", AnswerCut()], ["whole"]]), path)
    with pytest.raises(AnswerCut):
        pieces(recorder)
    pieces(recorder)
    assert len(json.loads(path.read_text())["entries"]) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"cassette": 1, "entries": [{"asked": {}, "said": [{"song": "x"}]}]}'])
def test_invalid_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "talk.json"
    path.write_text(text)
    with pytest.raises(Invalid, match="is not a cassette"):
        ReplayingChat(path)
    with pytest.raises(NotOnCassette, match="There is no cassette"):
        ReplayingChat(tmp_path / "other.json")
