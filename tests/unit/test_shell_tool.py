"""The shell as a model sees it: its results, its modes, and how it stops."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.conversation import sessions
from labwright.agent.shell import ShellResult
from labwright.agent.tools import CHAT_TOOLS
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, Actor, Scope
from labwright.domain.session import Mode, PieceKind, SessionStatus
from labwright.llm.chat import ToolCall
from labwright.planning import plans
from labwright.services.runs import verbs as runs
from labwright.store import runs as stored
from tests.support.chatting import Talk, call, script, talking
from tests.support.lab import lab_in
from tests.support.waiting import wait_until
from tests.unit.plan_texts import GOOD


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def use(lab: Lab, *calls: ToolCall, mode: Mode = Mode.AGENT) -> list[dict[str, Any]]:
    with talking(lab, script(list(calls), ["Done."])):
        talk = Talk(lab)
        talk.say("Do it", mode)
    return [json.loads(text) for text in talk.results()]


def test_training_command_returns_a_proposed_run_and_is_not_executed(lab: Lab) -> None:
    (lab.paths.project / "train.py").write_text("open('ran', 'w')\n")
    command = "nohup python train.py --lr 0.1 > log 2>&1 &"
    (answer,) = use(lab, call("shell", command=command))
    assert answer["executed"] is False and "train.py" in answer["why"] and "create_run" in answer["next"]
    assert answer["proposed_run"]["command"] == "python train.py --lr 0.1"
    assert not (lab.paths.project / "ran").exists()
    (started,) = use(lab, call("create_run", **answer["proposed_run"]))
    made = runs.find(lab, started["id"])
    assert (made.command, made.workdir) == ("python train.py --lr 0.1", str(lab.paths.project))


def test_other_command_is_executed_and_can_be_cited(lab: Lab) -> None:
    (lab.paths.project / "results.txt").write_text("accuracy 0.931\n")
    (answer,) = use(lab, call("shell", command="cat results.txt && echo noted >> notes.txt"))
    assert (answer["executed"], answer["exit_code"], answer["output"]) == (True, 0, "accuracy 0.931\n")
    assert answer["evidence"] == "E1" and "ended_by" not in answer and "cut" not in answer
    assert (lab.paths.project / "notes.txt").read_text() == "noted\n"


def test_plan_mode_shell_changes_nothing(lab: Lab) -> None:
    (answer, proposed) = use(
        lab,
        call("shell", command="ls; touch x"),
        call("shell", command="torchrun train.py"),
        mode=Mode.PLAN,
    )
    assert "Read-only file system" in answer["output"] and not (lab.paths.project / "x").exists()
    assert "into the plan" in proposed["next"]
    agent, plan = (CHAT_TOOLS[mode]["shell"] for mode in (Mode.AGENT, Mode.PLAN))
    assert (agent.writes, plan.writes) == (True, False)


@pytest.mark.parametrize(("mode", "scope"), [(Mode.PLAN, Scope.PLANNER), (Mode.AGENT, Scope.AGENT)])
def test_plan_saved_by_a_command_ends_the_turn_with_its_line(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, mode: Mode, scope: Scope
) -> None:
    made = {}

    def saves(lab: Lab, actor: Actor, _command: str, **_: object) -> ShellResult:
        by = {"session_id": None, "actor": Actor(scope, actor.name)}
        made["well formed"] = plans.create_document(lab, title="a", goal="b", raw_markdown=GOOD, **by)["id"]
        made["malformed"] = plans.create_document(lab, title="a", goal="b", raw_markdown="words", **by)["id"]
        plans.create_document(lab, title="a", goal="b", raw_markdown=GOOD, session_id=None, actor=PERSON)
        return ShellResult(exit_code=0, output="{}", seconds=0.1)

    monkeypatch.setattr("labwright.agent.tools.shell.execute", saves)
    with talking(lab, script([call("shell", command="curl …/plans")], ["Done."])):
        talk = Talk(lab)
        talk.say("Plan it", mode)
    line = ["Done.", "", f"✅ Plan saved — ID: @{made['well formed']}"]
    assert talk.last(PieceKind.MESSAGE)["text"].splitlines() == (line if mode is Mode.PLAN else ["Done."])


def test_bad_arguments_are_reported(lab: Lab) -> None:
    empty, long, slow = use(
        lab,
        call("shell", command="  "),
        call("shell", command="x" * 30_000),
        call("shell", command="ls", seconds=0),
    )
    assert "empty" in empty["refused"]
    assert "20000 characters at most" in long["refused"] and "file" in long["hint"]
    assert slow["refused"] == "seconds must be 1 or more."


def test_stopping_the_session_ends_its_command(lab: Lab) -> None:
    """The command holds a pipe of the project open, which shows its end."""
    pipe = lab.paths.project / "pipe"
    os.mkfifo(pipe)
    with talking(lab, script([call("shell", command="exec 3> pipe; echo begun >&3; sleep 600")])):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Do it", None, PERSON)
        with pipe.open("rb") as reading:
            assert reading.readline() == b"begun\n"
            sessions.stop(lab, talk.id, PERSON)
            ended = threading.Thread(target=reading.read, daemon=True)
            ended.start()
            ended.join(timeout=60)
            assert not ended.is_alive()
        wait_until(lambda: talk.session.status is SessionStatus.IDLE, "the session to rest")
    assert not talk.pieces(PieceKind.RESULT)
    assert not stored.count_by_status(lab.db.reader()).get("running")
