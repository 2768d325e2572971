"""A turn: what is asked, done, shown, stopped, and what survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent import approvals, keeper, sessions
from labwright.agent.offline import RulesChat
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, Actor, Scope
from labwright.domain.errors import Conflict, Forbidden, NotFound, StorageFailed
from labwright.domain.run import RunStatus
from labwright.domain.session import Mode, PieceKind, SessionStatus
from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece, TextPiece
from labwright.llm.faults import KeyRefused
from labwright.llm.ledger import BudgetReached
from labwright.llm.model import Usage
from labwright.services import runs
from labwright.store import runs as stored_runs
from tests.support.chatting import Silent, Talk, call, script, talking
from tests.support.lab import ended_run, lab_in, make_run, move
from tests.support.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def running_run(lab: Lab, name: str = "job") -> str:
    run = make_run(lab, name)
    return move(lab, run, RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.RUNNING).id


def end(lab: Lab, run_id: str) -> None:
    move(lab, runs.get(lab, run_id), RunStatus.FINISHED, exit_code=0)


def test_a_turn_calls_tools_until_the_model_only_speaks(lab: Lab) -> None:
    run = ended_run(lab, "base", series={"accuracy": [0.9]})
    model = script(["Let me look.", call("show_metrics", run="base")], ["Accuracy is 0.9 [E1]."])
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


def test_a_lie_is_marked_in_the_stream_and_in_the_stored_message(lab: Lab) -> None:
    with talking(lab, script(["It reached 0.99, trust me."])):
        talk = Talk(lab)
        talk.say("How good is it?")
    (mark,) = talk.last(PieceKind.MESSAGE)["marks"]
    assert (mark["text"], mark["fault"]) == ("0.99", "no_source")


LIES = (
    "It reached 0.99, trust me.",
    "{a} ended at an accuracy of 0.95 [E1].",
    "{b} ended at an accuracy of 0.9 [E1].",
    "The loss of {a} is 0.9 [E1].",
    "On average they reach 0.86 [E1] [E3].",
    "{a} leads by 0.2 [E1] [E3].",
    "{b} is better than {a} [E4].",
    "Accuracy 0.9 [E77].",
    "See run-0000000000, which is better.",
    "It took 12 minutes.",
    "It was about 1 [E1].",
)


def test_a_model_that_lies_in_many_ways_is_marked_each_time_and_an_honest_one_never(lab: Lab) -> None:
    a = ended_run(lab, "first", series={"accuracy": [0.5, 0.9], "loss": [0.3]})
    b = ended_run(lab, "second", series={"accuracy": [0.5, 0.8]})
    looks = [call("show_metrics", run="first"), call("compare", runs_or_names=["first", "second"], key="accuracy")]
    honest = "{a} ended at 0.9 [E1], {b} at 0.8 [E3]; {a} is better than {b} by 0.1 [E6]."
    said = [text.format(a=a.id, b=b.id) for text in (*LIES, honest)]
    with talking(lab, script(looks, *[[text] for text in said])):
        talk = Talk(lab)
        for _ in said:
            talk.say("How good are they?")
    answers = [piece.data for piece in talk.pieces(PieceKind.MESSAGE) if piece.data["text"]]
    assert [answer["text"] for answer in answers if not answer["marks"]] == said[-1:]


class Chatty:
    name = "chatty"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        for _ in range(2000):
            yield TextPiece("a ")
        yield EndPiece(Usage(), self.name, "end")


def test_text_that_arrives_fast_is_gathered_and_stored_whole(lab: Lab) -> None:
    with talking(lab, Chatty()):
        talk = Talk(lab)
        talk.say("Speak!")
    parts = talk.pieces(PieceKind.TEXT)
    assert len(parts) < 200
    assert "".join(part.data["text"] for part in parts) == talk.last(PieceKind.MESSAGE)["text"] == "a " * 2000


def test_stop_ends_a_turn_at_once_and_nothing_is_written_after_it(lab: Lab) -> None:
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


def test_several_sessions_are_at_work_at_a_time(lab: Lab) -> None:
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


def test_a_turn_has_so_many_rounds_and_no_more(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project", agent_max_rounds=3) as lab:
        model = script(*[[call("list_runs")] for _ in range(9)])
        with talking(lab, model):
            said = Talk(lab).say("Go on for ever")
        assert said[-1].data["why"] == "rounds"
        assert len(model.asked) == 3


def test_no_result_is_longer_than_it_may_be(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project", agent_result_chars=1000) as lab:
        output = "\n".join(f"line {n} {'x' * 400}" for n in range(5000))
        ended_run(lab, "noisy", output=output, status=RunStatus.FAILED)
        model = script([call("log_digest", run="noisy"), call("grep_log", run="noisy", pattern="line")], ["Done."])
        with talking(lab, model):
            talk = Talk(lab)
            talk.say("What does it say?")
        assert all(len(text) <= 1000 for text in talk.results())
        assert len(talk.results()) == 2


def test_bad_arguments_and_unknown_tools_are_answered_in_words(lab: Lab) -> None:
    calls = [call("show_run"), call("show_run", run="x", more=1), call("approve"), call("list_runs", limit="many")]
    with talking(lab, script(calls, ["I see."])):
        talk = Talk(lab)
        talk.say("Try")
    told = [json.loads(text)["refused"] for text in talk.results()]
    assert told == [
        "The argument 'run' is missing.",
        "There is no argument 'more'.",
        "There is no tool 'approve' in this mode.",
        "limit must be of type integer, not 'many'.",
    ]


def test_arguments_without_measure_are_refused_at_once_and_files_that_are_none_are_told(lab: Lab) -> None:
    (lab.paths.project / "folder").mkdir()
    calls = [
        call("start_run", command="x" * 1_000_000),
        call("start_run", command="true", name="n" * 300),
        call("start_sweep", name="s", command="true", parameters={"lr": list(range(30_000))}),
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
        "parameters is too large: 30002 characters and values, of 20000 at most.",
        "There is no file folder.",
        "The machine refused that: File name too long.",
    ]


def test_a_model_that_fails_is_told_as_the_end_of_the_turn(lab: Lab) -> None:
    with talking(lab, script([KeyRefused(model="anthropic:x")])):
        talk = Talk(lab)
        talk.say("Hello")
    assert talk.last(PieceKind.END)["why"] == "failed"
    assert "does not accept the key" in talk.last(PieceKind.END)["error"]["message"]


def test_a_full_disk_asks_no_model_and_the_turn_goes_on_when_there_is_room(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setattr(keeper, "_RETRY_SECONDS", 0.05)
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
        talk.wait_for_rest()
    assert talk.last(PieceKind.MESSAGE)["text"] == "All is well."


# Waiting


def test_waiting_asks_no_model_until_the_event(lab: Lab) -> None:
    run_id = running_run(lab)
    model = script([call("wait_for", run_ids=[run_id], note="tell them")], ["It has finished."])
    with talking(lab, model):
        talk = Talk(lab)
        said = talk.say("Tell me when it is done")
        assert said[-1].data["why"] == "waiting"
        assert len(model.asked) == 1
        other = running_run(lab, "another")
        end(lab, other)  # events that are not waited for wake nobody
        assert talk.session.status is SessionStatus.IDLE
        end(lab, run_id)
        wait_until(lambda: talk.session.turn == 2, "the session to wake")
        talk.wait_for_rest(2)
    assert len(model.asked) == 2
    assert run_id in model.asked[1].messages[-1].text
    assert talk.session.waits == ()


def test_rules_run_the_command_and_not_the_wish_to_be_told(lab: Lab) -> None:
    with talking(lab, RulesChat()):
        talk = Talk(lab)
        said = talk.say("run python train.py --note 'a and b' and tell me when it is done.")
        assert said[-1].data["why"] == "waiting"
        (run,) = stored_runs.with_status(lab.db.reader(), RunStatus.QUEUED)
        assert run.command == "python train.py --note 'a and b'"


def test_what_happens_while_no_server_is_there_wakes_at_the_next_start(lab: Lab) -> None:
    run_id = running_run(lab)
    with talking(lab, script([call("wait_for", run_ids=[run_id])])):
        talk = Talk(lab)
        talk.say("Tell me when it is done")
    end(lab, run_id)
    assert talk.session.turn == 1
    with talking(lab, script(["It has finished."])):
        wait_until(lambda: talk.session.turn == 2, "the session to wake")
        talk.wait_for_rest(2)
    assert talk.last(PieceKind.MESSAGE)["text"] == "It has finished."


def test_a_person_can_speak_while_a_session_waits(lab: Lab) -> None:
    run_id = running_run(lab)
    with talking(lab, script([call("wait_for", run_ids=[run_id])], ["Hello!"], ["Finished."])):
        talk = Talk(lab)
        talk.say("Tell me when it is done")
        talk.say("Hello?")
        assert len(talk.session.waits) == 1
        end(lab, run_id)
        wait_until(lambda: talk.session.turn == 3, "the session to wake")
        talk.wait_for_rest(3)


# Approvals


def test_stopping_anothers_run_waits_for_a_person(lab: Lab) -> None:
    run_id = running_run(lab)
    with talking(lab, script([call("stop_run", run=run_id)], ["It is being stopped."])):
        talk = Talk(lab)
        talk.say("Stop it")
        assert talk.session.status is SessionStatus.ASKING
        assert not runs.get(lab, run_id).stop_requested
        (asked,), _ = approvals.page(lab, "pending", None, 10, None)
        with pytest.raises(Conflict):
            sessions.say(lab, talk.id, "And?", None, PERSON)
        with pytest.raises(Forbidden):
            approvals.respond(lab, asked.id, approved=True, reason="", actor=Actor(Scope.AGENT, talk.id))
        approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
        talk.wait_for_rest()
        with pytest.raises(Conflict):
            approvals.respond(lab, asked.id, approved=False, reason="", actor=PERSON)
    assert runs.get(lab, run_id).stop_requested
    assert talk.last(PieceKind.END)["why"] == "done"


def test_a_denied_call_is_not_carried_out_and_the_turn_goes_on(lab: Lab) -> None:
    run = ended_run(lab, "precious")
    model = script([call("delete_run", run="precious")], ["Then it stays."])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Delete it")
        (asked,), _ = approvals.page(lab, None, talk.id, 10, None)
        approvals.respond(lab, asked.id, approved=False, reason="I need it", actor=PERSON)
        talk.wait_for_rest()
    assert runs.get(lab, run.id)
    assert "I need it" in model.asked[1].messages[-1].text


def test_an_approval_outlives_the_server(lab: Lab) -> None:
    run = ended_run(lab, "old")
    with talking(lab, script([call("delete_run", run="old")])):
        talk = Talk(lab)
        talk.say("Delete it")
    (asked,), _ = approvals.page(lab, "pending", None, 10, None)
    approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
    with talking(lab, script(["Deleted."])):
        talk.wait_for_rest()
    with pytest.raises(NotFound):
        runs.get(lab, run.id)
    assert talk.last(PieceKind.MESSAGE)["text"] == "Deleted."


def test_stopping_a_session_withdraws_what_it_asked_for(lab: Lab) -> None:
    ended_run(lab, "old")
    with talking(lab, script([call("delete_run", run="old")])):
        talk = Talk(lab)
        talk.say("Delete it")
        sessions.stop(lab, talk.id, PERSON)
    (asked,), _ = approvals.page(lab, None, None, 10, None)
    assert asked.status == "withdrawn"


def test_a_session_that_has_spent_its_budget_asks_for_more(lab: Lab) -> None:
    spent = BudgetReached("s", "usd", 10.0, 10.0)
    with talking(lab, script([spent], [spent], ["On."])) as chats:
        talk = Talk(lab)
        talk.say("Go on")
        assert talk.session.status is SessionStatus.ASKING
        (asked,), _ = approvals.page(lab, "pending", None, 10, None)
        approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
        talk.wait_for_rest()
        assert chats.allowed == [talk.id]
    assert talk.last(PieceKind.MESSAGE)["text"] == "On."


# Kills

_VICTIM = """
import sys
from pathlib import Path
from labwright.agent import sessions
from labwright.domain.actor import PERSON
from labwright.domain.session import PieceKind
from tests.support.chatting import Silent, Talk, call, script, talking
from tests.support.lab import lab_in
from tests.support.waiting import wait_until

class Model:
    name = "victim"
    def __init__(self):
        self.first = True
    async def stream(self, request):
        source = script([call("start_run", command="echo hello", name="once")]) if self.first else Silent()
        self.first = False
        async for piece in source.stream(request):
            yield piece

with lab_in(Path(sys.argv[1])) as lab:
    talk = Talk(lab)
    with talking(lab, Model()):
        sessions.say(lab, talk.id, "Start one", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT), "the words")
        print(talk.id, flush=True)
        wait_until(lambda: False, "the kill", 60)
"""


def test_a_server_killed_in_mid_turn_keeps_the_conversation_and_finishes_the_turn(tmp_path: Path) -> None:
    project = tmp_path / "project"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _VICTIM, str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, text=True) as victim:
        assert victim.stdout is not None
        session_id = victim.stdout.readline().strip()
        os.kill(victim.pid, signal.SIGKILL)
    with lab_in(project) as lab:
        talk = Talk(lab, session_id)
        assert talk.session.status is SessionStatus.WORKING
        before = talk.pieces()
        model = script(["One run was started."])
        with talking(lab, model):
            talk.wait_for_rest()
        after = talk.pieces()
        assert after[: len(before)] == before
        assert [piece.kind for piece in after[len(before) :]] == ["notice", "text", "message", "end"]
        assert [message.role for message in model.asked[0].messages] == ["user", "assistant", "tool"]
        assert len(lab.db.reader().execute("SELECT id FROM runs").fetchall()) == 1


def test_a_call_that_was_cut_off_is_carried_out_once(lab: Lab) -> None:
    """The run was made, and the server killed before the result was written."""
    with talking(lab, Silent()):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Start one", None, PERSON)
        wait_until(lambda: talk.pieces(PieceKind.TEXT), "the words")
    made = call("start_run", command="echo hello", name="once")
    with talking(lab, script([made], ["Started."])):
        talk.wait_for_rest()
    with lab.db.transaction() as tx:  # as if the last three pieces had never been written
        result = talk.pieces(PieceKind.RESULT)[-1]
        tx.execute("DELETE FROM pieces WHERE seq >= :seq", seq=result.seq)
        session = talk.session.evolve(status=SessionStatus.WORKING, last_seq=result.seq - 1)
        tx.execute("UPDATE sessions SET record = :record", record=json.dumps(session.to_dict()))
    with talking(lab, script(["Started."])):
        talk.wait_for_rest()
    assert len(lab.db.reader().execute("SELECT id FROM runs").fetchall()) == 1
    assert talk.last(PieceKind.END)["why"] == "done"


# Modes


def test_planning_cannot_write_and_says_so_on_every_turn(lab: Lab) -> None:
    start = {"command": "echo hello"}
    model = script([call("start_run", **start)], ["I only plan."], [call("start_run", **start)], ["On it."])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Start it", Mode.PLAN)
        assert lab.db.reader().execute("SELECT count(*) FROM runs").fetchone()[0] == 0
        assert "start_run" not in {tool.name for tool in model.asked[0].tools}
        assert "You are planning" in model.asked[0].system
        talk.say("Now do it", Mode.AGENT)
    assert "You are planning" not in model.asked[2].system
    assert lab.db.reader().execute("SELECT count(*) FROM runs").fetchone()[0] == 1


def test_what_the_conversation_did_itself_needs_no_other_evidence(lab: Lab) -> None:
    calls = [call("start_run", command=f"echo {number}") for number in range(2)]
    with talking(lab, script(calls, ["I started 2 runs."], ["I started 3 runs."])):
        talk = Talk(lab)
        talk.say("Start two")
        assert talk.last(PieceKind.MESSAGE)["marks"] == []
        talk.say("How many?")
        assert [mark["text"] for mark in talk.last(PieceKind.MESSAGE)["marks"]] == ["3"]


def test_a_run_that_no_tool_showed_is_known_by_its_name_all_the_same(lab: Lab) -> None:
    ended_run(lab, "good", series={"accuracy": [0.9]})
    ended_run(lab, "never looked at")
    words = "`good` reached 0.9 [E1]; `never looked at` reached 0.9 [E1] too, and so did `nobody` 0.9 [E1]."
    with talking(lab, script([call("show_metrics", run="good")], [words])):
        talk = Talk(lab)
        talk.say("How good?")
    assert [mark["fault"] for mark in talk.last(PieceKind.MESSAGE)["marks"]] == ["other_subject"]
