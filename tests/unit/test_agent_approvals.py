"""Actions that an agent may not take alone wait for a person, who is asked once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.conversation import approvals, sessions
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, Actor, Scope
from labwright.domain.errors import Conflict, Forbidden, NotFound
from labwright.domain.session import PieceKind, SessionStatus
from labwright.llm.ledger import BudgetReached
from labwright.services.runs import verbs as runs
from tests.support.chatting import Talk, call, script, talking
from tests.support.lab import ended_run, lab_in, running_run


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def test_stopping_a_run_of_somebody_else_waits_for_a_person(lab: Lab) -> None:
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
        talk.wait_until_idle()
        with pytest.raises(Conflict):
            approvals.respond(lab, asked.id, approved=False, reason="", actor=PERSON)
    assert runs.get(lab, run_id).stop_requested
    assert talk.last(PieceKind.END)["why"] == "done"


def test_denied_call_is_not_made_and_the_turn_goes_on(lab: Lab) -> None:
    run = ended_run(lab, "precious")
    model = script([call("delete_run", run="precious")], ["Then it stays."])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Delete it")
        (asked,), _ = approvals.page(lab, None, talk.id, 10, None)
        approvals.respond(lab, asked.id, approved=False, reason="I need it", actor=PERSON)
        talk.wait_until_idle()
    assert runs.get(lab, run.id)
    assert "I need it" in model.asked[1].messages[-1].text


def test_approval_survives_a_server_restart(lab: Lab) -> None:
    run = ended_run(lab, "old")
    with talking(lab, script([call("delete_run", run="old")])):
        talk = Talk(lab)
        talk.say("Delete it")
    (asked,), _ = approvals.page(lab, "pending", None, 10, None)
    approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
    with talking(lab, script(["Deleted."])):
        talk.wait_until_idle()
    with pytest.raises(NotFound):
        runs.get(lab, run.id)
    assert talk.last(PieceKind.MESSAGE)["text"] == "Deleted."


@pytest.mark.parametrize("said", ["mine", "last"])
def test_deleted_run_is_the_one_the_person_was_shown(lab: Lab, said: str) -> None:
    shown = ended_run(lab, "mine")
    with talking(lab, script([call("delete_run", run=said)], [f"{shown.id} is deleted."])):
        talk = Talk(lab)
        talk.say("Delete it")
        newer = ended_run(lab, "mine")
        (asked,), _ = approvals.page(lab, "pending", None, 10, None)
        assert shown.id in asked.question and asked.action["arguments"] == {"run_id": shown.id}
        approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
        talk.wait_until_idle()
    assert runs.get(lab, newer.id)
    with pytest.raises(NotFound):
        runs.get(lab, shown.id)
    assert talk.last(PieceKind.MESSAGE)["marks"] == []


def test_stopping_a_session_withdraws_its_approvals(lab: Lab) -> None:
    ended_run(lab, "old")
    with talking(lab, script([call("delete_run", run="old")])):
        talk = Talk(lab)
        talk.say("Delete it")
        sessions.stop(lab, talk.id, PERSON)
    (asked,), _ = approvals.page(lab, None, None, 10, None)
    assert asked.status == "withdrawn"


def test_session_with_a_spent_budget_asks_for_more(lab: Lab) -> None:
    spent = BudgetReached("s", "usd", 10.0, 10.0)
    with talking(lab, script([spent], [spent], ["On."])) as chats:
        talk = Talk(lab)
        talk.say("Go on")
        assert talk.session.status is SessionStatus.ASKING
        (asked,), _ = approvals.page(lab, "pending", None, 10, None)
        approvals.respond(lab, asked.id, approved=True, reason="", actor=PERSON)
        talk.wait_until_idle()
        assert chats.allowed == [talk.id]
    assert talk.last(PieceKind.MESSAGE)["text"] == "On."
