"""Reflection after a task: what is suggested, stored and accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.agent.conversation import suggestions
from labwright.agent.reflection import repeated, suggestions_in
from labwright.cli.sweeps.file import read_sweep_file
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.errors import Conflict, Forbidden, Invalid, NotFound
from labwright.domain.session import PieceKind
from labwright.services import skills
from labwright.store import events
from labwright.store.statements import SESSIONS
from tests.support.chatting import Talk, call, script, talking
from tests.support.lab import lab_in

SAID = """\
Both runs have finished.

> 💡 **Workflow Improvement**: each run cleans the data first.
> A script {{would}} do it once.

```bash
python clean.py
```

That is all.
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def suggested(lab: Lab, text: str = SAID) -> str:
    with talking(lab, script([text])):
        Talk(lab).say("Go")
    return str(suggestions.page(lab, None, None)[0]["id"])


def test_suggestion_is_stored_with_its_template_and_reported_as_an_event(lab: Lab) -> None:
    with talking(lab, script([SAID], [SAID])):
        talk = Talk(lab)
        talk.say("Go")
        talk.say("Again")  # an earlier suggestion is not stored twice
    (found,) = suggestions.page(lab, talk.id, None)
    assert found["text"] == "each run cleans the data first. A script {{would}} do it once."
    assert (found["template"], found["status"]) == ("python clean.py\n", "pending")
    (event,) = events.after(lab.db.reader(), 0, 100, types=["suggestion.made"])
    assert event.data == {"session_id": talk.id, "suggestion_id": found["id"], "status": "pending"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("💡 Workflow Improvement: use a sweep", ["use a sweep"]),
        ("- 💡 **Workflow Improvement:** one\n- 💡 **Workflow Improvement**: two", ["one", "two"]),
        ("The prefix 💡 Workflow Improvement: inside of a sentence", []),
        ("💡 Workflow Improvement:\n\nNothing.", []),
        ("\n\n".join(f"💡 Workflow Improvement: number {n}" for n in range(9)), [f"number {n}" for n in range(5)]),
    ],
)
def test_valid_suggestions_are_recognized(text: str, found: list[str]) -> None:
    assert [one.text for one in suggestions_in(text)] == found


@pytest.mark.parametrize("session", [None, "chat-0000000000"])
def test_suggestions_are_found_without_reading_every_conversation(lab: Lab, session: str | None) -> None:
    plan = lab.db.reader().execute(f"EXPLAIN QUERY PLAN {SESSIONS['suggestions']}", {"session_id": session}).fetchall()
    assert any("pieces_that_suggest" in row[-1] for row in plan)


def test_suggestion_accepted_into_a_skill_reaches_every_conversation(lab: Lab) -> None:
    made = suggested(lab)
    accepted = suggestions.accept_into_skill(lab, made, suggestions.SKILL, PERSON)
    assert (accepted["status"], accepted["accepted_into"]) == ("accepted", "skill workflow-improvements")
    with pytest.raises(Conflict):
        suggestions.dismiss(lab, made, PERSON)
    other = suggested(lab, "💡 Workflow Improvement: name runs by their parameters")
    suggestions.accept_into_skill(lab, other, suggestions.SKILL, PERSON)
    model = script(["Well."])
    with talking(lab, model):
        Talk(lab).say("Hello")
    assert "A script { {would}} do it once." in model.asked[0].system
    assert "- name runs by their parameters" in model.asked[0].system
    assert suggestions.page(lab, None, suggestions.SuggestionStatus.PENDING) == []


def test_kill_between_skill_and_note_writes_nothing_twice(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    made = suggested(lab)
    with monkeypatch.context() as patched:
        patched.setattr(suggestions, "_answer", lambda *_: {})
        suggestions.accept_into_skill(lab, made, "mine", PERSON)
    suggestions.accept_into_skill(lab, made, "mine", PERSON)
    assert skills.get(lab, "mine")["text"].count("do it once") == 1


def test_built_in_skills_and_other_files_stay_unchanged(lab: Lab) -> None:
    made = suggested(lab)
    with pytest.raises(Forbidden):
        suggestions.accept_into_skill(lab, made, "agent-mode", PERSON)
    (lab.paths.project / "templates").mkdir()
    (lab.paths.project / "templates/clean.sh").write_text("mine")
    for name, refused in (("clean.sh", Conflict), ("../x", Invalid), (".hidden", Invalid), ("a/b", Invalid)):
        with pytest.raises(refused):
            suggestions.accept_into_template(lab, made, name, PERSON)
    with pytest.raises(NotFound):
        suggestions.dismiss(lab, "idea-0123456789", PERSON)
    accepted = suggestions.accept_into_template(lab, made, "prepare.sh", PERSON)
    assert accepted["accepted_into"] == "templates/prepare.sh"
    assert (lab.paths.project / "templates/prepare.sh").read_text() == "python clean.py\n"


def test_rules_suggest_a_sweep_if_commands_differ_only_in_values(lab: Lab) -> None:
    commands = [f"python train.py --lr {lr} --seed 1" for lr in (0.1, 0.01, 0.001)]
    starts = [[call("create_run", command=command)] for command in commands]
    with talking(lab, script(starts[0], ["On."], starts[1], ["On."], starts[2], ["On."], starts[2], ["On."])):
        talk = Talk(lab)
        for _ in range(4):
            talk.say("Another one")
    (found,) = suggestions.page(lab, talk.id, None)
    told = [piece.data for piece in talk.pieces(PieceKind.MESSAGE) if "💡" in piece.data["text"]]
    assert len(told) == 1 and told[0]["marks"] == []
    assert told[0]["text"].startswith("On.\n\n💡 Workflow Improvement: `python train.py` was started several times")
    path = lab.paths.project / suggestions.accept_into_template(lab, found["id"], "lr.yaml", PERSON)["accepted_into"]
    assert read_sweep_file(path).content == {
        "base_command": "python train.py --seed 1",
        "parameters": {"lr": [0.1, 0.01, 0.001]},
        "method": "grid",
    }


@pytest.mark.parametrize(
    "commands",
    [
        [],
        ["python a.py --lr 1"] * 5,
        ["python a.py --lr 1", "python a.py --lr 2"],
        ["python a.py --lr 1", "python b.py --lr 2", "python c.py --lr 3"],
        ["echo 'unclosed --lr 1"] * 3,
    ],
)
def test_rules_suggest_nothing_if_nothing_repeats(commands: list[str]) -> None:
    assert repeated(commands) is None
