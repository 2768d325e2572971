"""The real adapters over real HTTP, against servers that behave as Anthropic's and OpenAI's do, with and without
faults.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.tools import TOOLS
from labwright.llm import (
    CallPiece,
    ChatMessage,
    ChatPiece,
    ChatRequest,
    EndPiece,
    TextPiece,
    ThinkingPiece,
    Tier,
    ToolCall,
    ToolSpec,
    Usage,
    faults,
)
from labwright.llm.chat import Reply, read_reply
from labwright.llm.models import Models
from labwright.paths import ProjectPaths
from labwright.settings import Settings
from tests.support.model_server import ModelServer, Turn, model_server
from tests.support.models import KEY, endpoint, provider

pytestmark = pytest.mark.parametrize("wire", ["anthropic", "openai"])
LOOK = ToolSpec(
    name="look",
    description="Look at a run.",
    schema={"type": "object", "properties": {"run": {"type": "string"}}, "required": ["run"]},
)
QUESTION = ChatRequest(system="Be brief.", messages=(ChatMessage(role="user", text="How is it going?"),), tools=(LOOK,))
HELLO = Turn(text=("Hello",))


def ask(server: ModelServer, wire: str, request: ChatRequest = QUESTION, **patience: Any) -> Reply:
    return asyncio.run(read_reply(provider(server, wire, **patience), request))


def test_reply_streams_thoughts_text_calls_and_usage(wire: str) -> None:
    turn = Turn(thinking="hm", text=("It ", "goes."), calls=(("look", '{"run": "r-1"}'), ("look", "{}")), cached=40)

    async def pieces(server: ModelServer) -> list[ChatPiece]:
        return [piece async for piece in provider(server, wire).stream(QUESTION)]

    with model_server(wire, turn) as server:
        found = asyncio.run(pieces(server))
    assert found[:3] == [ThinkingPiece("hm"), TextPiece("It "), TextPiece("goes.")]
    calls = [piece.call for piece in found if isinstance(piece, CallPiece)]
    assert [(call.name, call.arguments) for call in calls] == [("look", {"run": "r-1"}), ("look", {})]
    assert len({call.id for call in calls}) == 2
    cost = (60 * 10 + 40 * 1 + 20 * 100) / 1e6
    usage = Usage(tokens_in=100, tokens_out=20, cache_read=40, cost_usd=pytest.approx(cost))
    assert found[-1] == EndPiece(usage, "fake:default-model", "calls")


def test_tier_selects_its_model_and_the_key_is_only_in_the_header(wire: str) -> None:
    with model_server(wire) as server:
        ask(server, wire, ChatRequest(system="", messages=QUESTION.messages, tier=Tier.HEAVY, max_tokens=77))
    (asked,) = server.asked
    assert (asked.body["model"], asked.body["max_tokens"]) == ("heavy-model", 77)
    assert asked.headers["authorization"] == f"Bearer {KEY}" and KEY not in str(asked.body)


def test_openai_gets_its_own_fields_and_others_the_common_ones(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = ChatRequest(system="", messages=QUESTION.messages, tools=(LOOK,), max_tokens=77)
    with model_server(wire) as server:
        chat = provider(server, wire)
        asyncio.run(read_reply(chat, request))
        monkeypatch.setattr("labwright.llm.sdk.KNOWN", {"openai": endpoint(server, wire)})
        asyncio.run(read_reply(chat, request))
    other, own = (asked.body for asked in server.asked)
    assert other["max_tokens"] == 77 and own["max_completion_tokens" if wire == "openai" else "max_tokens"] == 77


@pytest.mark.parametrize(("tool", "argument"), [("create_run", "params"), ("create_sweep", "parameters")])
def test_free_form_arguments_stay_open_on_every_wire(wire: str, tool: str, argument: str) -> None:
    request = ChatRequest(system="", messages=QUESTION.messages, tools=(TOOLS[tool].spec,))
    with model_server(wire) as server:
        ask(server, wire, request)
    (sent,) = server.asked[0].body["tools"]
    schema = sent["input_schema"] if wire == "anthropic" else sent["function"]["parameters"]
    assert schema["properties"][argument]["additionalProperties"] is True
    assert schema["additionalProperties"] is False


def test_conversation_with_calls_is_sent_back_complete(wire: str) -> None:
    calls = (ToolCall(id="c-1", name="look", arguments={"run": "a"}), ToolCall(id="c-2", name="look", malformed="{x"))
    conversation = (
        ChatMessage(role="user", text="Compare."),
        ChatMessage(role="assistant", text="Looking.", calls=calls),
        ChatMessage(role="tool", call_id="c-1", text="0.91"),
        ChatMessage(role="tool", call_id="c-2", text="The arguments are not JSON."),
        ChatMessage(role="user", text="Go on."),
    )
    with model_server(wire) as server:
        ask(server, wire, ChatRequest(system="s", messages=conversation, tools=(LOOK,)))
    sent = server.asked[0].body["messages"]
    roles = [message["role"] for message in sent]
    if wire == "anthropic":
        assert roles == ["user", "assistant", "user"]
        results = [block for block in sent[2]["content"] if block["type"] == "tool_result"]
        assert [block["tool_use_id"] for block in results] == ["c-1", "c-2"]
    else:
        assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
        assert [message["tool_call_id"] for message in sent[3:5]] == ["c-1", "c-2"]
    assert "0.91" in str(sent) and "Looking." in str(sent) and "Go on." in str(sent)


def test_stable_parts_are_marked_for_the_cache_if_supported(wire: str) -> None:
    with model_server(wire) as server:
        ask(server, wire)
        ask(server, wire, ChatRequest(system="s", messages=QUESTION.messages, tools=(LOOK,), must_call=True))
    talk, once = (asked.body for asked in server.asked)
    if wire == "anthropic":
        marked = [talk["system"][-1], talk["tools"][-1], talk["messages"][-1]["content"][-1]]
        assert all(block["cache_control"]["type"] == "ephemeral" for block in marked)
    assert "cache_control" not in str(once)
    assert once["tool_choice"] == ({"type": "any"} if wire == "anthropic" else "required")


def test_malformed_json_arguments_are_passed_on_as_text(wire: str) -> None:
    with model_server(wire, Turn(calls=(("look", '{"run": '), ("look", "[1]")))) as server:
        reply = ask(server, wire)
    assert [(call.arguments, call.malformed) for call in reply.calls] == [({}, '{"run": '), ({}, "[1]")]


def test_arguments_that_cannot_be_stored_are_malformed(wire: str) -> None:
    deep = f'{{"run": {"[" * 5000}{"]" * 5000}}}'
    sent = ('{"run": NaN}', '{"run": 1e999}', f'{{"run": 1{"0" * 400}}}', deep, f'{{"run": {"[" * 40}{"]" * 40}}}')
    with model_server(wire, Turn(calls=tuple(("look", text) for text in sent))) as server:
        reply = ask(server, wire)
    assert [(call.arguments, call.malformed) for call in reply.calls] == [({}, text[:2000]) for text in sent]


def test_half_characters_are_joined_or_replaced_everywhere(wire: str) -> None:
    calls = (("look", r'{"run": "\ud83d\ude00 \ud800", "\ud800": 1}'), ("look\ud800", "{\ud800"))
    turn = Turn(thinking="\ud800", text=("half \ud83d", "\ude00 and \ud800 alone\ud83d"), calls=calls)
    with model_server(wire, turn) as server:
        reply = ask(server, wire)
    assert reply.text == "half 😀 and � alone�"
    assert reply.calls[0].arguments == {"run": "😀 �", "�": 1}
    assert (reply.calls[1].name, reply.calls[1].malformed) == ("look_", "{�")


def test_tool_names_are_accepted_by_every_provider(wire: str) -> None:
    with model_server(wire, Turn(calls=(("", "{}"), ("run it!", "{}"), ("z" * 999, "{}")))) as server:
        reply = ask(server, wire)
    assert [call.name for call in reply.calls] == ["unnamed", "run_it_", "z" * 64]


def test_reply_at_its_length_limit_says_so(wire: str) -> None:
    stop = "max_tokens" if wire == "anthropic" else "length"
    with model_server(wire, Turn(text=("Once upon",), stop=stop)) as server:
        assert ask(server, wire).end.why == "length"


def test_endless_reply_is_cut_off(wire: str) -> None:
    with model_server(wire, Turn(text=("y" * 100_000,) * 11)) as server, pytest.raises(faults.AnswerCut):
        ask(server, wire)


def test_withheld_answer_raises_an_error(wire: str) -> None:
    stop = "refusal" if wire == "anthropic" else "content_filter"
    with model_server(wire, Turn(stop=stop)) as server, pytest.raises(faults.AnswerWithheld):
        ask(server, wire)


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_server_error_is_retried(wire: str, status: int) -> None:
    with model_server(wire, Turn(status=status), Turn(status=status), HELLO) as server:
        assert ask(server, wire).text == "Hello"
    assert len(server.asked) == 3


def test_error_after_all_retries_reveals_no_secret(wire: str) -> None:
    broken = Turn(status=500, error={"error": {"message": f"boom\n\x1b{KEY}"}})
    with model_server(wire, broken) as server, pytest.raises(faults.Overloaded, match="boom …") as fault:
        ask(server, wire, retries=1)
    assert len(server.asked) == 2 and KEY not in str(fault.value)
    assert fault.value.__cause__ is None  # the SDK's message, which would contain the key


def test_rate_limit_waits_as_long_as_the_provider_asks(wire: str) -> None:
    limited = Turn(status=429, headers={"Retry-After": "1"}, error={"error": {"message": "slow down"}})
    began = time.monotonic()
    with model_server(wire, limited, HELLO) as server:
        assert ask(server, wire).text == "Hello"
    assert time.monotonic() - began >= 1.0  # a lower bound, not a speed: the requested delay was kept


def test_one_hour_rate_limit_is_reported_instead_of_waited_out(wire: str) -> None:
    limited = Turn(status=429, headers={"Retry-After": "3600"}, error={"error": {"message": "come back later"}})
    with model_server(wire, limited) as server, pytest.raises(faults.RateLimited, match="come back later") as fault:
        ask(server, wire)
    assert (len(server.asked), fault.value.wait_seconds) == (1, 3600)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (Turn(status=401, error={"error": {"message": f"Incorrect key {KEY}"}}), faults.KeyRefused),
        (Turn(status=402, error={"error": {"message": "no credit"}}), faults.QuotaUsedUp),
        (Turn(status=404, error={"error": {"type": "not_found_error", "message": "?"}}), faults.NoSuchModel),
        (Turn(status=400, error={"error": {"message": "bad schema"}}), faults.Rejected),
        (
            Turn(
                status=400,
                error={
                    "error": {
                        "message": "prompt is too long: 300000 tokens > 200000 maximum",
                        "type": "invalid_request_error",
                        "code": "context_length_exceeded",
                    }
                },
            ),
            faults.ConversationTooLong,
        ),
        (Turn(status=307, headers={"Location": "http://127.0.0.1:9/"}), faults.ModelFault),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_permanent_errors_are_reported_without_retry(wire: str, turn: Turn, kind: type[faults.ModelFault]) -> None:
    with model_server(wire, turn) as server, pytest.raises(kind) as fault:
        ask(server, wire)
    assert type(fault.value) is kind and len(server.asked) == 1
    assert KEY not in f"{fault.value} {fault.value.hint}" and fault.value.message.startswith("fake:default-model: ")


def test_connection_cut_before_the_first_word_is_retried(wire: str) -> None:
    with model_server(wire, Turn(text=("a",), cut_after=1), HELLO) as server:
        assert ask(server, wire).text == "Hello"


@pytest.mark.parametrize("cleanly", [True, False])
def test_reply_cut_in_the_middle_is_an_error_not_a_short_answer(wire: str, cleanly: bool) -> None:
    after = 5 if wire == "anthropic" else 3
    turn = Turn(text=("one ", "two ", "three"), cut_after=after, cut_cleanly=cleanly)
    with model_server(wire, turn) as server, pytest.raises(faults.AnswerCut):
        ask(server, wire)
    assert len(server.asked) == 1


def test_event_that_is_not_json_ends_the_reply_with_an_error(wire: str) -> None:
    with model_server(wire, Turn(text=("one",), garble=True)) as server, pytest.raises(faults.AnswerCut):
        ask(server, wire)


def test_error_event_inside_a_reply_counts_like_any_other_error(wire: str) -> None:
    with model_server(wire, Turn(fails=True), HELLO) as server:
        assert ask(server, wire).text == "Hello"
    broken = Turn(text=("one",), fails=True)
    with model_server(wire, broken) as server, pytest.raises(faults.AnswerCut, match="Overloaded"):
        ask(server, wire)
    assert len(server.asked) == 1


def test_silent_provider_times_out(wire: str) -> None:
    with model_server(wire, Turn(text=("one", "two"), hang_after=0)) as server, pytest.raises(faults.Unreachable):
        ask(server, wire, silence=0.2, retries=1)
    assert len(server.asked) == 2
    middle = 4 if wire == "anthropic" else 2
    with model_server(wire, Turn(text=("one", "two"), hang_after=middle)) as server, pytest.raises(faults.AnswerCut):
        ask(server, wire, silence=0.2)


def test_dripping_provider_times_out_though_never_silent(wire: str) -> None:
    with model_server(wire, Turn(text=("one",), drip_seconds=0.02)) as server, pytest.raises(faults.TooSlow):
        ask(server, wire, answer=0.5)
    assert len(server.asked) == 1


def test_closing_the_stream_disconnects_at_once(wire: str) -> None:
    middle = 4 if wire == "anthropic" else 2

    async def first_words(server: ModelServer) -> str:
        async with aclosing(provider(server, wire).stream(QUESTION)) as pieces:
            async for piece in pieces:
                assert isinstance(piece, TextPiece)
                return piece.text
        return ""

    with model_server(wire, Turn(text=("one ", "two"), hang_after=middle)) as server:
        assert asyncio.run(asyncio.wait_for(first_words(server), 10)) == "one "


def test_cancelling_the_reader_disconnects_too(wire: str) -> None:
    async def cancelled(server: ModelServer) -> None:
        task = asyncio.create_task(read_reply(provider(server, wire), QUESTION))
        while not server.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with model_server(wire, Turn(text=("one ", "two"), hang_after=0)) as server:
        asyncio.run(asyncio.wait_for(cancelled(server), 10))


def test_unreachable_provider_error_says_what_to_check(wire: str) -> None:
    with model_server(wire) as server:
        pass
    with pytest.raises(faults.Unreachable) as fault:
        ask(server, wire, retries=0)
    assert "labwright models" in fault.value.hint


def test_own_rate_limit_spaces_requests(wire: str) -> None:
    async def three(server: ModelServer) -> float:
        chat = provider(server, wire, per_minute=600)
        await read_reply(chat, QUESTION)
        began = time.monotonic()
        await asyncio.gather(read_reply(chat, QUESTION), read_reply(chat, QUESTION), read_reply(chat, QUESTION))
        return time.monotonic() - began

    with model_server(wire) as server:
        assert asyncio.run(three(server)) >= 0.2  # a lower bound: requests are a tenth of a second apart
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("turn", "words", "fix"),
    [
        (HELLO, "answers, 120 tokens", ""),
        (Turn(status=401, error={"error": {"message": f"bad {KEY}"}}), "does not accept the key", "Create a new key"),
        (Turn(status=404, error={"error": {"type": "not_found_error"}}), "no model with that name", "Compare the name"),
        (Turn(status=500), "is overloaded", "Try again later"),
    ],
)
def test_check_is_one_small_request_that_reports_the_problem(
    tmp_path: Path, wire: str, turn: Turn, words: str, fix: str
) -> None:
    with model_server(wire, turn) as server:
        environ = {f"{wire.upper()}_BASE_URL": server.url, f"{wire.upper()}_API_KEY": KEY, "HOME": "/nonexistent"}
        (checked,) = Models(ProjectPaths(tmp_path), Settings(model=f"{wire}:x"), environ).check()
    assert len(server.asked) == 1 and server.asked[0].body["max_tokens"] == 16
    assert words in checked.said and fix in checked.hint and checked.ok is (turn is HELLO)
    assert KEY not in f"{checked}" and list(tmp_path.iterdir()) == []
