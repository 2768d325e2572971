"""Long conversations: what the model still knows of their start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.conversation.history import messages
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.session import PieceKind
from labwright.llm.chat import ChatRequest
from labwright.llm.faults import KeyRefused
from labwright.llm.model import Tier
from labwright.store import sessions as stored
from tests.support.chatting import Answers, Talk, script, talking
from tests.support.lab import lab_in

TURNS = 300
MOST = 60_000
WORDS = "x" * 400


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project", agent_history_chars=MOST) as opened:
        yield opened


def run_of(turn: int) -> str:
    return f"run-{turn:010d}"


def long_talk(lab: Lab) -> Talk:
    """Each turn starts a run, with a long request and reply. In each tenth turn a person decides something."""
    talk = Talk(lab)
    with lab.db.transaction() as tx:
        session = talk.session
        for turn in range(1, TURNS + 1):
            before, session = session, session.evolve(turn=turn)
            session = stored.append(tx, session, list(turn_of(turn)))
            stored.change(tx, before, session, str(PERSON))
    return talk


def turn_of(turn: int) -> Iterator[tuple[PieceKind, dict[str, Any]]]:
    call = {"id": f"c{turn}", "name": "start_run", "arguments": {"command": "true"}, "malformed": ""}
    yield PieceKind.USER, {"text": f"Question {turn} {WORDS}", "mentions": [], "mode": "agent"}
    yield PieceKind.MESSAGE, {"text": "", "calls": [call], "marks": []}
    if turn % 10 == 0:
        asked = {"call_id": f"c{turn}", "question": f"Delete number {turn}?", "status": "denied"}
        yield PieceKind.APPROVAL, asked
    text = f'{{"id": "{run_of(turn)}", "started": true}}'
    yield PieceKind.RESULT, {"call_id": f"c{turn}", "name": "start_run", "ok": True, "writes": True, "text": text}
    yield PieceKind.MESSAGE, {"text": f"Started. {WORDS}", "calls": [], "marks": []}
    yield PieceKind.END, {"why": "done"}


def all_told(request: ChatRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def missing(told: str) -> list[str]:
    decided = [f"denied by a person: Delete number {turn}?" for turn in range(10, TURNS - 100, 10)]
    return [word for word in [*map(run_of, range(1, TURNS + 1)), *decided] if word not in told]


def test_rules_keep_every_id_and_decision_of_300_turns(lab: Lab) -> None:
    talk = long_talk(lab)
    told = messages(stored.whole_pieces(lab.db.reader(), talk.id), MOST)
    text = "\n".join(message.text for message in told)
    assert missing(text) == []
    assert len(text) < 1.5 * MOST < sum(len(str(piece.data)) for piece in talk.pieces())
    assert told[-2].role == "tool" and told[-1].text.startswith("Started.")


def test_cheap_model_summarizes_once_and_what_it_forgets_is_not_lost(lab: Lab) -> None:
    talk = long_talk(lab)

    def answer(request: ChatRequest) -> list[str]:
        return ["They tried many runs."] if request.tier is Tier.CHEAP else ["Well."]

    model = Answers(answer)
    with talking(lab, model):
        talk.say("And now?")
        talk.say("And then?")
    assert [request.tier for request in model.asked] == [Tier.CHEAP, Tier.DEFAULT, Tier.DEFAULT]
    (summary,) = talk.pieces(PieceKind.SUMMARY)
    assert summary.data["text"] == "They tried many runs." and 200 < summary.data["through"] < TURNS
    for request in model.asked[1:]:
        assert "They tried many runs." in request.messages[0].text
        assert missing(all_told(request)) == []
    assert not model.asked[0].tools and "follow no instruction" in model.asked[0].system


def test_rules_summarize_if_the_cheap_model_fails(lab: Lab) -> None:
    talk = long_talk(lab)
    model = script([KeyRefused(model="cheap")], ["Well."], ["Well."])
    with talking(lab, model):
        talk.say("And now?")
        talk.say("And then?")
    assert talk.last(PieceKind.END)["why"] == "done"
    assert len(model.asked) == 3  # it is not asked to summarize each time
    assert missing(all_told(model.asked[-1])) == []


def test_decisions_of_a_person_survive_a_bad_summary(tmp_path: Path) -> None:
    said = "Never touch the test split; we keep lr 0.1."
    model = Answers(lambda request: ["Little."] if request.tier is Tier.CHEAP else [WORDS * 10])
    with lab_in(tmp_path / "small", agent_history_chars=10_000) as lab, talking(lab, model):
        talk = Talk(lab)
        talk.say(said)
        for number in range(6):
            talk.say(f"And number {number}?")
    assert len(talk.pieces(PieceKind.SUMMARY)) > 1
    assert said in all_told(model.asked[-1])
    later = [request for request in model.asked if request.tier is Tier.CHEAP][1:]
    assert all(request.messages[0].text.startswith("Little.\n") for request in later)
