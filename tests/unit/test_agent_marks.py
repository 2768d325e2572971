"""Claims without evidence are marked, in the stream and in the stored message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.domain.session import PieceKind
from tests.support.chatting import Talk, call, script, talking
from tests.support.lab import ended_run, lab_in


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def test_lie_is_marked_in_the_stream_and_in_the_stored_message(lab: Lab) -> None:
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


def test_every_kind_of_lie_is_marked_and_honest_answers_never(lab: Lab) -> None:
    a = ended_run(lab, "first", series={"accuracy": [0.5, 0.9], "loss": [0.3]})
    b = ended_run(lab, "second", series={"accuracy": [0.5, 0.8]})
    looks = [call("get_metrics", run="first"), call("compare_metrics", run_ids=["first", "second"], key="accuracy")]
    honest = "{a} ended at 0.9 [E1], {b} at 0.8 [E3]; {a} is better than {b} by 0.1 [E6]."
    said = [text.format(a=a.id, b=b.id) for text in (*LIES, honest)]
    with talking(lab, script(looks, *[[text] for text in said])):
        talk = Talk(lab)
        for _ in said:
            talk.say("How good are they?")
    answers = [piece.data for piece in talk.pieces(PieceKind.MESSAGE) if piece.data["text"]]
    assert [answer["text"] for answer in answers if not answer["marks"]] == said[-1:]


def test_actions_of_the_conversation_need_no_other_evidence(lab: Lab) -> None:
    calls = [call("create_run", command=f"echo {number}") for number in range(2)]
    with talking(lab, script(calls, ["I started 2 runs."], ["I started 3 runs."])):
        talk = Talk(lab)
        talk.say("Start two")
        assert talk.last(PieceKind.MESSAGE)["marks"] == []
        talk.say("How many?")
        assert [mark["text"] for mark in talk.last(PieceKind.MESSAGE)["marks"]] == ["3"]


def test_run_not_shown_by_a_tool_is_recognized_by_name(lab: Lab) -> None:
    ended_run(lab, "good", series={"accuracy": [0.9]})
    ended_run(lab, "never looked at")
    words = "`good` reached 0.9 [E1]; `never looked at` reached 0.9 [E1] too, and so did `nobody` 0.9 [E1]."
    with talking(lab, script([call("get_metrics", run="good")], [words])):
        talk = Talk(lab)
        talk.say("How good?")
    assert [mark["fault"] for mark in talk.last(PieceKind.MESSAGE)["marks"]] == ["other_subject"]
