"""A turn: its calls, its output, and how it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.conversation import sessions
from labwright.agent.worker import SessionWorker
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.errors import Conflict, StorageFailed
from labwright.domain.run import RunStatus
from labwright.domain.session import Mode, PieceKind, SessionStatus
from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece, TextPiece
from labwright.llm.faults import KeyRefused
from labwright.llm.model import Usage
from tests.support.chatting import Silent, Talk, call, script, talking
from tests.support.lab import ended_run, lab_in
from tests.support.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def test_turn_calls_tools_until_the_model_only_answers(lab: Lab) -> None:
    run = ended_run(lab, "base", series={"accuracy": [0.9]})
    model = script(["Let me look.", call("get_metrics", run="base")], ["Accuracy is 0.9 [E1]."])
    with talking(lab, model):
        said = Talk(lab).say("How good is base?")
    kinds = [piece.kind for piece in said]
    assert kinds == ["user", "text", "message", "call", "evidence", "result", "text", "message", "end"]
    assert [piece.seq for piece in said] == list(range(1, 10))
    assert said[-2].data["marks"] == []
    assert said[-1].data["why"] == "done"
    asked = model.asked[1].messages
    assert [message.role for message in asked] == ["user", "assistant", "tool"]
    assert run.id in asked[2].text


class Chatty:
    name = "chatty"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        for _ in range(2000):
            yield TextPiece("a ")
        yield EndPiece(Usage(), self.name, "end")


def test_fast_text_is_batched_and_stored_complete(lab: Lab) -> None:
    with talking(lab, Chatty()):
        talk = Talk(lab)
        talk.say("Speak!")
    parts = talk.pieces(PieceKind.TEXT)
    assert len(parts) < 200
    assert "".join(part.data["text"] for part in parts) == talk.last(PieceKind.MESSAGE)["text"] == "a " * 2000


def test_stop_ends_a_turn_at_once_and_nothing_is_written_afterwards(lab: Lab) -> None:
    with talking(lab, Silent()):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Hello", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT), "the first words")
        assert sessions.stop(lab, talk.id, PERSON).status is SessionStatus.IDLE
        assert talk.pieces()[-1].data["why"] == "stopped"
        with pytest.raises(Conflict):
            sessions.stop(lab, talk.id, PERSON)
        sessions.say(lab, talk.id, "Again", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT, after=4), "the next turn to speak")
        sessions.stop(lab, talk.id, PERSON)


def test_several_sessions_work_at_the_same_time(lab: Lab) -> None:
    with talking(lab, Silent()):
        talks = [Talk(lab) for _ in range(3)]
        for talk in talks:
            sessions.say(lab, talk.id, "Hello", None, PERSON)
        for talk in talks:
            wait_until(lambda talk=talk: talk.pieces(PieceKind.TEXT), "each to speak")  # type: ignore[misc]
        with pytest.raises(Conflict):
            sessions.say(lab, talks[0].id, "And?", None, PERSON)
        for talk in talks:
            sessions.stop(lab, talk.id, PERSON)


def test_turn_has_a_limited_number_of_rounds(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project", agent_max_rounds=3) as lab:
        model = script(*[[call("list_runs")] for _ in range(9)])
        with talking(lab, model):
            said = Talk(lab).say("Go on for ever")
        assert said[-1].data["why"] == "rounds"
        assert len(model.asked) == 3


def test_result_never_exceeds_its_limit(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project", agent_result_chars=1000) as lab:
        output = "\n".join(f"line {n} {'x' * 400}" for n in range(5000))
        ended_run(lab, "noisy", output=output, status=RunStatus.FAILED)
        model = script([call("digest_logs", run="noisy"), call("read_logs", run="noisy", grep="line")], ["Done."])
        with talking(lab, model):
            talk = Talk(lab)
            talk.say("What does it say?")
        assert all(len(text) <= 1000 for text in talk.results())
        assert len(talk.results()) == 2


def test_bad_arguments_and_unknown_tools_get_an_error_message(lab: Lab) -> None:
    calls = [call("get_run"), call("get_run", run="x", more=1), call("approve"), call("list_runs", limit="many")]
    with talking(lab, script(calls, ["I see."])):
        talk = Talk(lab)
        talk.say("Try")
    told = [json.loads(text)["refused"] for text in talk.results()]
    assert told == [
        "The argument run_id is missing.",
        "There is no argument more.",
        "There is no tool 'approve' in this mode.",
        "limit must be a whole number.",
    ]


def test_huge_arguments_are_refused_and_invalid_files_reported(lab: Lab) -> None:
    (lab.paths.project / "folder").mkdir()
    calls = [
        call("create_run", command="x" * 1_000_000),
        call("create_run", command="true", name="n" * 300),
        call("create_sweep", name="s", base_command="true", parameters={"lr": list(range(30_000))}),
        call("edit_file", path="folder", new="x"),
        call("read_file", path="y" * 5000),
    ]
    with talking(lab, script(calls, ["I see."])):
        talk = Talk(lab)
        assert talk.say("Try")[-1].data["why"] == "done"
    told = [json.loads(text)["refused"] for text in talk.results()]
    assert told == [
        "command may have 20000 characters at most, not 1000000.",
        "name may have 200 characters at most, not 300.",
        "parameters is too large: 30002 characters and values; 20000 are allowed.",
        "There is no file folder.",
        "The machine refused that: File name too long.",
    ]


def test_model_failure_ends_the_turn_with_a_message(lab: Lab) -> None:
    with talking(lab, script([KeyRefused(model="anthropic:x")])):
        talk = Talk(lab)
        talk.say("Hello")
    assert talk.last(PieceKind.END)["why"] == "failed"
    assert "does not accept the key" in talk.last(PieceKind.END)["error"]["message"]


def test_full_disk_calls_no_model_and_the_turn_continues_later(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setattr(SessionWorker, "retry_seconds", 0.05)
    model = script(["All is well."])
    talk = Talk(lab)
    sessions.say(lab, talk.id, "x" * 100_000, None, PERSON)
    real = lab.db.transaction
    tries: list[int] = []

    def full() -> Any:
        tries.append(1)
        raise StorageFailed

    monkeypatch.setattr(lab.db, "transaction", full)
    with talking(lab, model):
        wait_until(lambda: len(tries) > 2, "it to be tried again")
        assert model.asked == []
        monkeypatch.setattr(lab.db, "transaction", real)
        talk.wait_until_idle()
    assert talk.last(PieceKind.MESSAGE)["text"] == "All is well."


def test_plan_mode_cannot_write_and_says_so_on_every_turn(lab: Lab) -> None:
    start = {"command": "echo hello"}
    model = script([call("create_run", **start)], ["I only plan."], [call("create_run", **start)], ["On it."])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Start it", Mode.PLAN)
        assert lab.db.reader().execute("SELECT count(*) FROM runs").fetchone()[0] == 0
        assert "create_run" not in {tool.name for tool in model.asked[0].tools}
        assert "You are planning" in model.asked[0].system
        talk.say("Now do it", Mode.AGENT)
    assert "You are planning" not in model.asked[2].system
    assert lab.db.reader().execute("SELECT count(*) FROM runs").fetchone()[0] == 1
