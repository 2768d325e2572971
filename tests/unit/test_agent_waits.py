"""A session that waits for runs calls no model until they end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.offline.chat import RulesChat
from labwright.compute.lab import Lab
from labwright.domain.run import RunStatus
from labwright.domain.session import PieceKind, SessionStatus
from labwright.services.runs import verbs as runs
from labwright.store import runs as stored_runs
from tests.support.chatting import Talk, call, script, talking
from tests.support.lab import lab_in, move, running_run
from tests.support.waiting import wait_until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def end(lab: Lab, run_id: str) -> None:
    move(lab, runs.get(lab, run_id), RunStatus.FINISHED, exit_code=0)


def test_waiting_calls_no_model_until_the_event(lab: Lab) -> None:
    run_id = running_run(lab)
    model = script([call("wait_for_run", run_ids=[run_id], note="tell them")], ["It has finished."])
    with talking(lab, model):
        talk = Talk(lab)
        said = talk.say("Tell me when it is done")
        assert said[-1].data["why"] == "waiting"
        assert len(model.asked) == 1
        other = running_run(lab, "another")
        end(lab, other)  # other events wake nobody
        assert talk.session.status is SessionStatus.IDLE
        end(lab, run_id)
        wait_until(lambda: talk.session.turn == 2, "the session to wake")
        talk.wait_until_idle(2)
    assert len(model.asked) == 2
    assert run_id in model.asked[1].messages[-1].text
    assert talk.session.waits == ()


def test_rules_run_the_command_without_the_request_to_report(lab: Lab) -> None:
    with talking(lab, RulesChat()):
        talk = Talk(lab)
        said = talk.say("run python train.py --note 'a and b' and tell me when it is done.")
        assert said[-1].data["why"] == "waiting"
        (run,) = stored_runs.with_status(lab.db.reader(), RunStatus.QUEUED)
        assert run.command == "python train.py --note 'a and b'"


def test_events_without_a_server_wake_the_session_at_the_next_start(lab: Lab) -> None:
    run_id = running_run(lab)
    with talking(lab, script([call("wait_for_run", run_ids=[run_id])])):
        talk = Talk(lab)
        talk.say("Tell me when it is done")
    end(lab, run_id)
    assert talk.session.turn == 1
    with talking(lab, script(["It has finished."])):
        wait_until(lambda: talk.session.turn == 2, "the session to wake")
        talk.wait_until_idle(2)
    assert talk.last(PieceKind.MESSAGE)["text"] == "It has finished."


def test_person_can_write_while_a_session_waits(lab: Lab) -> None:
    run_id = running_run(lab)
    with talking(lab, script([call("wait_for_run", run_ids=[run_id])], ["Hello!"], ["Finished."])):
        talk = Talk(lab)
        talk.say("Tell me when it is done")
        talk.say("Hello?")
        assert len(talk.session.waits) == 1
        end(lab, run_id)
        wait_until(lambda: talk.session.turn == 3, "the session to wake")
        talk.wait_until_idle(3)
