"""Without a model: ordinary requests are understood, and no answer claims more than its evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.conversation import approvals
from labwright.agent.conversation.history import WOKEN
from labwright.agent.offline.chat import RulesChat
from labwright.agent.offline.grammar import PLANNING_RULES, plain
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.run import REHEARSAL, RunStatus
from labwright.domain.session import Mode, PieceKind, SessionStatus
from labwright.llm.chat import ChatMessage, ChatRequest, ToolSpec, read_reply
from tests.support.chatting import Talk, talking
from tests.support.lab import ended_run, lab_in, make_run, move

USAGE = {"wall_seconds": 210.4}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("offline") / "project") as lab:
        (lab.paths.project / "train.py").write_text("print('training')\n")
        ended_run(lab, "good", series={"accuracy": [0.5, 0.9312], "loss": [2.0, 0.25]}, usage=USAGE)
        ended_run(lab, "poor", series={"accuracy": [0.4, 0.7061], "loss": [3.0, 0.5]})
        ended_run(lab, "as good", series={"f2": [0.5]})
        ended_run(lab, "just as good", series={"f2": [0.5]})
        ended_run(lab, "tried out", series={"accuracy": [0.99]}, tags=(REHEARSAL,))
        ended_run(lab, "bad", status=RunStatus.FAILED, output="ValueError: lr must be above 0\n")
        move(lab, make_run(lab, "slow one"), RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.RUNNING)
        yield lab


@pytest.fixture(scope="module", autouse=True)
def rules(lab: Lab) -> Iterator[None]:
    with talking(lab, RulesChat()):
        yield


ASKED = {
    "Hi, is anything running?": "`slow one`: running",
    "what's running right now?": "`slow one`: running",
    "how many runs failed?": "1 failed, 0 lost",
    "Which runs have failed?": "`bad`",
    "what failed?": "`bad`",
    "show me the failed runs": "`bad`",
    "list my runs": "`poor`: finished",
    "can you show me the run good please": "It took 210.4 s",
    "how is slow one doing?": "is running",
    "why did the bad run fail?": "ValueError: lr must be above 0",
    "what went wrong with bad?": "ValueError: lr must be above 0",
    "what's the accuracy of good?": "accuracy: last 0.9312",
    "show me the loss of the good run": "loss: last 0.25",
    "what is the f1 of good": "It has: `accuracy`, `loss`",
    "how long did good take?": "It took 210.4 s",
    "when will slow one be done?": "I cannot tell",
    "which run is the best?": "By which metric?",
    "What is the best run by accuracy?": "`good`: last accuracy 0.9312",
    "best run by f1": "There are: accuracy, f2, loss",
    "best run by f2": "is one of several with 0.5",
    "which run has the lowest loss?": "Best by loss (lower is better)",
    "which run has the highest loss": "Best by loss (higher is better)",
    "compare good and poor": "Best by loss (lower is better)",
    "compare good vs. poor by loss": "Best by loss (lower is better)",
    "whats running?": "`slow one`: running",
    "is slow one still running?": "is running",
    "what's the status of good?": "is finished",
    "what is on the GPUs?": "0 GPUs",
    "stop it": "Which run?",
    "rerun good with lr 0.2": "I cannot find an option `lr` in its command",
    "show me the code": "`train.py`",
    "show me train.py": "print('training')",
    "what does train.py do?": "I am a set of rules",
    "try learning rates 0.1, 0.2 and 0.4": "labwright plan new 'try learning rates 0.1, 0.2 and 0.4'",
    "please sweep lr over 0.01 and 0.3, 2 seeds": "labwright plan new 'sweep lr over 0.01 and 0.3, 2 seeds'",
    "run train.py with lr 0.2": "Write the whole command: `run python train.py --FLAG VALUE`",
    "what should I try next?": "I am a set of rules",
    "thank you very much!": "You are welcome.",
    "hi": "Hello.",
    "show the last failed run": "`bad` is failed",
    "logs of the last failed run": "ValueError: lr must be above 0",
    "show run 12345": "There is no run 12345.",
    "show run-zzzzzzzzzz": "There is no run run-zzzzzzzzzz.",
    "stop all lost runs": "Nothing is running.",
    "tell me a story": "I am a set of rules",
}


def test_requests_are_understood_and_answered_with_evidence(lab: Lab) -> None:
    wrong = []
    for question, expected in ASKED.items():
        talk = Talk(lab)
        talk.say(question)
        answer = talk.last(PieceKind.MESSAGE)
        if expected not in answer["text"] or answer["marks"]:
            wrong.append((question, answer))
    assert wrong == []


def test_truncated_list_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab, talking(lab, RulesChat()):
        for number in range(20):
            make_run(lab, f"long {number}", command=f"echo {'x' * 3000}")
        talk = Talk(lab)
        talk.say("runs")
        assert "`long 19`: ready" in talk.last(PieceKind.MESSAGE)["text"]


def test_reason_for_waiting_is_quoted_and_its_numbers_need_no_evidence(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab, talking(lab, RulesChat()):
        move(lab, make_run(lab, "first"), RunStatus.QUEUED, RunStatus.LAUNCHING, RunStatus.RUNNING)
        move(lab, make_run(lab, "second"), RunStatus.QUEUED)
        talk = Talk(lab)
        talk.say("what is running?")
        answer = talk.last(PieceKind.MESSAGE)
        assert "slots in use" in answer["text"]
        assert answer["marks"] == []


def test_command_is_started_as_written(lab: Lab) -> None:
    talk = Talk(lab)
    talk.say("Please start python train.py --note 'for me please'")
    assert "is queued" in talk.last(PieceKind.MESSAGE)["text"]
    (call,) = talk.pieces(PieceKind.MESSAGE)[0].data["calls"]
    assert call["arguments"] == {"command": "python train.py --note 'for me please'"}


TOLD_LATER = (
    "and tell me when it's done",
    "and tell me when it is done.",
    ", and let me know once it has finished",
    "and then tell me how it went",
)


@pytest.mark.parametrize("words", TOLD_LATER)
def test_request_to_report_afterwards_is_not_part_of_the_command(lab: Lab, words: str) -> None:
    talk = Talk(lab)
    talk.say(f"run echo up {words}")
    start, wait = (piece.data["calls"][0] for piece in talk.pieces(PieceKind.MESSAGE))
    assert start["arguments"] == {"command": "echo up"}
    assert wait["name"] == "wait_for_run"


@pytest.mark.parametrize("command", ["echo 'sit down and tell me a story'", 'echo "show me what\'s new"'])
def test_words_in_an_argument_are_part_of_the_command(lab: Lab, command: str) -> None:
    talk = Talk(lab)
    talk.say(f"run {command}")
    (call,) = talk.pieces(PieceKind.MESSAGE)[0].data["calls"]
    assert call["arguments"] == {"command": command}


def test_it_means_the_run_last_mentioned(lab: Lab) -> None:
    talk = Talk(lab)
    talk.say("run echo 1")
    talk.say("thanks")
    talk.say("stop it")
    assert "run-" in talk.last(PieceKind.MESSAGE)["text"] and "Which run?" not in talk.last(PieceKind.MESSAGE)["text"]
    talk.say("compare good and poor by loss")
    talk.say("delete it")
    assert "Which run?" in talk.last(PieceKind.MESSAGE)["text"]


def test_it_does_not_mean_a_run_that_was_only_waited_for() -> None:
    said = (
        *(
            ChatMessage(role="user", text="show good"),
            ChatMessage(role="tool", text='{"id": "run-good", "status": "running"}'),
        ),
        *(ChatMessage(role="user", text=f"{WOKEN}[]"), ChatMessage(role="tool", text='{"run_id": "run-other"}')),
        ChatMessage(role="user", text="stop it"),
    )
    answer = asyncio.run(read_reply(RulesChat(), ChatRequest(system="", messages=said)))
    assert [call.arguments for call in answer.calls] == [{"run_id": "run-good"}]


def test_rerun_with_another_value_changes_only_that_option(lab: Lab) -> None:
    ended_run(lab, "with options", command="python train.py --lr 0.1 --batch-size=32 --lr-decay 0.1")
    talk = Talk(lab)
    talk.say("rerun with options with lr 0.01 and batch_size=64, and tell me when it's done")
    calls = [piece.data["calls"][0] for piece in talk.pieces(PieceKind.MESSAGE)]
    assert [call["name"] for call in calls] == ["get_run", "rerun_run", "wait_for_run"]
    assert calls[1]["arguments"]["command"] == "python train.py --lr 0.01 --batch-size=64 --lr-decay 0.1"


def test_last_failed_run_is_run_again(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab, talking(lab, RulesChat()):
        failed = ended_run(lab, "bad", status=RunStatus.FAILED)
        ended_run(lab, "newer")
        talk = Talk(lab)
        talk.say("rerun the last failed run")
        assert f"as a rerun of {failed.id}" in talk.last(PieceKind.MESSAGE)["text"]


def test_stopping_all_runs_asks_for_and_reports_each(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab, talking(lab, RulesChat()):
        kept, stopped = make_run(lab, "kept"), make_run(lab, "ended")
        for run in (stopped, kept):
            move(lab, run, RunStatus.QUEUED)
        talk = Talk(lab)
        talk.say("stop all runs")
        for run in (stopped, kept):
            (asked,), _ = approvals.page(lab, "pending", None, 10, None)
            assert run.id in asked.question
            approvals.respond(lab, asked.id, approved=run is stopped, reason="", actor=PERSON)
            talk.wait_until_idle()
        told = talk.last(PieceKind.MESSAGE)
        assert told["text"].splitlines() == [
            f"- {stopped.id} `ended`: stopping it",
            f"- {kept.id} `kept`: not allowed",
        ]


@pytest.mark.parametrize("said", ["stop slow one", "run python train.py --lr 0.1", "delete bad", "hello", "help"])
def test_plan_mode_makes_no_plan_of_agent_requests(lab: Lab, said: str) -> None:
    talk = Talk(lab)
    talk.say(said, Mode.PLAN)
    assert not list(talk.pieces(PieceKind.CALL))
    answer = talk.last(PieceKind.MESSAGE)
    assert said in ("hello", "help") or f"labwright chat --mode agent '{said}'" in answer["text"]
    assert answer["marks"] == []


@pytest.mark.parametrize("goal", ["run train.py with lr 0.1 and 0.3", "stop early when loss rises", "remove dropout"])
def test_goal_that_starts_like_an_action_is_planned(goal: str) -> None:
    assert not any(pattern.fullmatch(plain(goal)) for pattern, _ in PLANNING_RULES)


def test_question_of_the_planner_is_answered_even_after_another_request() -> None:
    asking = {"id": "plan-1", "status": "needs_input", "questions": ["Which values of lr?"]}
    said = (
        *(ChatMessage(role="user", text="tune lr"), ChatMessage(role="tool", text=json.dumps(asking))),
        *(ChatMessage(role="user", text="which runs have failed?"), ChatMessage(role="tool", text='{"runs": []}')),
        ChatMessage(role="user", text="0.1 and 0.3"),
    )
    tools = (ToolSpec(name="create_plan", description="", schema={}),)
    answer = asyncio.run(read_reply(RulesChat(), ChatRequest(system="", messages=said, tools=tools)))
    assert [call.arguments for call in answer.calls] == [{"plan_id": "plan-1", "answers": ["0.1 and 0.3"]}]


def test_delete_asks_first(lab: Lab) -> None:
    talk = Talk(lab)
    talk.say("delete bad")
    assert talk.session.status is SessionStatus.ASKING


def test_unknown_run_is_reported(lab: Lab) -> None:
    talk = Talk(lab)
    talk.say("what is overfitting?")
    assert "There is no run overfitting." in talk.last(PieceKind.MESSAGE)["text"]
