"""Planning in a conversation: its permissions, its questions, and its results."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labwright
from labwright.agent.conversation import sessions
from labwright.agent.offline.planning import planned
from labwright.agent.planning_turn import questions_left, with_saved_line
from labwright.agent.prompt import TOOL_FOR_CALL, tools_for_calls
from labwright.agent.tools import CHAT_TOOLS, TOOLS
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.session import Mode, Piece, PieceKind, SessionStatus
from labwright.llm.chat import ChatRequest
from labwright.llm.model import ModelAnswer, Request, Value
from labwright.planning import plans
from labwright.planning.rules import offline_model
from labwright.planning.worker import PlanWorker
from labwright.store import events
from labwright.store import plans as stored
from tests.support.chatting import Answers, Talk, call, script, talking
from tests.support.lab import lab_in
from tests.support.planning import EXAMPLES, QUICK
from tests.support.waiting import wait_until

GOAL = {"goal": QUICK, "rehearsal": False}


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A conversation that made a plan, and was killed during that."""
    project = tmp_path_factory.mktemp("plan-chat") / "project"
    shutil.copytree(EXAMPLES / "bare-script", project, ignore=shutil.ignore_patterns(".labwright", "__pycache__"))
    with lab_in(project) as opened:
        talk = Talk(opened)
        with talking(opened, script([call("create_plan", **GOAL)])):  # no worker makes plans yet
            sessions.say(opened, talk.id, "Which degree is best?", Mode.PLAN, PERSON)
            wait_until(lambda: plans.page(opened, (), None, 9, None)[0], "the plan's record")
        assert talk.session.status is SessionStatus.WORKING
        worker = PlanWorker(opened, lambda _plan: offline_model())
        worker.start()
        with talking(opened, script(["The plan is ready."])):
            wait_until(lambda: talk.session.status is SessionStatus.IDLE, "the plan", 120)
        yield talk
        worker.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def event_data(talk: Talk) -> dict[str, Any]:
    """Return the result of the last tool call."""
    result: dict[str, Any] = json.loads(talk.results()[-1])
    return result


# Results


def test_goal_becomes_a_compiled_plan_and_the_turn_ends_with_the_exact_line(talked: Talk) -> None:
    (plan,) = [one for one in plans.page(talked.lab, (), None, 99, None)[0] if one.session_id == talked.id]
    *_, last_words, message, _end = talked.pieces()
    assert event_data(talked)["plan_saved"] == plan.id
    assert event_data(talked)["rehearsal"]["outcome"] == "off"
    assert message.data["text"].splitlines() == ["The plan is ready.", "", f"✅ Plan saved — ID: @{plan.id}"]
    assert last_words.kind is PieceKind.TEXT and plan.id in last_words.data["text"]  # visible to watching clients, too
    assert plans.get(talked.lab, plan.id)["planning"]["status"] == "waiting_for_review"


REHEARSALS = {
    "passed": "Its rehearsal passed.",
    "not_possible": "It was not rehearsed: `the machine is busy`",
    "off": "It was not rehearsed.",
}


@pytest.mark.parametrize("outcome", REHEARSALS)
def test_without_a_model_the_answer_says_whether_the_plan_was_rehearsed(outcome: str) -> None:
    reason = "the machine is busy" if outcome == "not_possible" else ""
    facts = {"id": "plan-1", "title": "Degrees", "status": "waiting_for_review", "questions": [], "validated": True}
    saved = {"plan_saved": "plan-1", "evidence": "E1", "rehearsal": {"outcome": outcome, "reason": reason}}
    assert REHEARSALS[outcome] in planned("degree 1 and 3", None, [{**facts, **saved}])


def test_watching_clients_see_the_progress_without_repeats(talked: Talk) -> None:
    nodes = [(piece.data["node"], piece.data["status"]) for piece in talked.pieces(PieceKind.PLAN)]
    plan_id = event_data(talked)["plan_saved"]
    assert nodes == [
        (event.data["node"], event.data["status"])
        for event in events.after(talked.lab.db.reader(), 0, 5000, types=["plan.node"])
        if event.data["plan_id"] == plan_id
    ]
    assert nodes[0] == ("IngestReport", "started") and ("ValidateWorkspace", "finished") in nodes


def test_plan_written_by_a_model_is_fixed_saved_as_a_version_and_compiled(talked: Talk) -> None:
    text = plans.get(talked.lab, event_data(talked)["plan_saved"])["raw_markdown"]

    def answer(request: ChatRequest) -> list[Any]:
        results = [json.loads(message.text) for message in request.messages if message.role == "tool"]
        written = {"title": "mine", "goal": "the best degree", "rehearsal": False}
        if not results:
            return [call("create_plan", **written, raw_markdown=text.replace("### Metrics", "### Numbers"))]
        if len(results) == 1:
            return [call("change_plan", **written, raw_markdown=text, plan_id=results[0]["id"])]
        return [f"Saved.\n✅ Plan saved — ID: @{results[1]['plan_saved']}"]

    with talking(talked.lab, Answers(answer)):
        talk = Talk(talked.lab)
        sessions.say(talked.lab, talk.id, "Plan it", Mode.PLAN, PERSON)
        wait_until(lambda: talk.session.status is SessionStatus.IDLE, "the plan", 120)
    first, second = (json.loads(result) for result in talk.results())
    assert not first["format"]["valid"] and not first["compiled"]
    assert (second["plan_saved"], second["planning"]["status"]) == (first["id"], "waiting_for_review")
    assert plans.get(talked.lab, first["id"])["version"] >= 2
    assert talk.last(PieceKind.MESSAGE)["text"].count("✅") == 1


def test_plan_of_another_conversation_is_not_overwritten(lab: Lab) -> None:
    made = plans.create_document(lab, title="t", goal="g", raw_markdown="x", session_id=None, actor=PERSON)["id"]
    wanted = {"title": "t", "goal": "g", "raw_markdown": "mine", "plan": made}
    with talking(lab, script([call("change_plan", **wanted)], ["No."])):
        talk = Talk(lab)
        talk.say("Change it", Mode.PLAN)
    assert "another conversation" in event_data(talk)["refused"]
    assert plans.get(lab, made)["raw_markdown"] == "x"


def test_turn_stops_at_once_while_a_plan_is_made(lab: Lab) -> None:
    (lab.paths.project / "fit.py").write_text((EXAMPLES / "bare-script/fit.py").read_text())
    with talking(lab, script([call("create_plan", **GOAL)], ["Hello."])):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Plan it", Mode.PLAN, PERSON)
        wait_until(lambda: plans.page(lab, (), None, 9, None)[0], "the plan's record")
        assert sessions.stop(lab, talk.id, PERSON).status is SessionStatus.IDLE
        assert talk.say("Hello?")[-1].data["why"] == "done"  # nothing blocks the next turn


class Held:
    """Plan by rules, once released."""

    name = "held"

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def answer(self, request: Request[Value]) -> ModelAnswer[Value]:
        self.asked.set()
        self.go_on.wait(60)
        return offline_model().answer(request)


def test_stopped_turn_leaves_no_work_and_the_plan_can_be_continued(lab: Lab) -> None:
    (lab.paths.project / "fit.py").write_text((EXAMPLES / "bare-script/fit.py").read_text())
    held = Held()
    worker = PlanWorker(lab, lambda _plan: held)
    worker.start()
    with talking(lab, script([call("create_plan", **GOAL)])):
        talk = Talk(lab)
        sessions.say(lab, talk.id, "Plan it", Mode.PLAN, PERSON)
        wait_until(held.asked.is_set, "the planner's first question")
        sessions.stop(lab, talk.id, PERSON)
    (plan,) = stored.every(lab.db.reader())
    assert (plan.compiling_by, plan.stopped_by) == (f"agent:{talk.id}", "person")
    held.go_on.set()
    when_idle = wait_until(lambda: _when_idle(lab, plan.id), "the planner to leave off")
    assert (when_idle["status"], when_idle["error"]) == ("failed", "stopped by person")
    plans.compile_plan(lab, plan.id, plans.CompileOptions(rehearsal=False), PERSON)
    assert wait_until(lambda: _when_idle(lab, plan.id), "the plan", 120)["status"] == "waiting_for_review"
    worker.close()


def _when_idle(lab: Lab, plan_id: str) -> dict[str, Any] | None:
    found = plans.get(lab, plan_id)
    return None if found["compiling_by"] else found["planning"]


# Questions


def test_questions_end_the_turn_and_the_fourth_is_refused(lab: Lab) -> None:
    many = [f"Question {n}?" for n in range(4)]
    model = script([call("ask_user", questions=many)], [call("ask_user", questions=many[:2])])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Plan something", Mode.PLAN)
    assert "3 of 3 questions are left, not 4" in json.loads(talk.results()[0])["refused"]
    assert talk.last(PieceKind.END) == {"why": "questions", "questions": many[:2]}
    more = script([call("ask_user", questions=many[:2])], [call("ask_user", questions=many[2:3])])
    with talking(lab, more):
        talk.say("The first: yes. The second: no.")
    assert "1 of 3" in json.loads(talk.results()[2])["refused"]
    with talking(lab, script([call("ask_user", questions=["And?"])], ["Then I assume it."])):
        talk.say("Yes.")
    assert "no more are allowed" in json.loads(talk.results()[-1])["refused"]
    assert talk.last(PieceKind.END)["why"] == "done"


def test_questions_in_plain_text_count_and_the_model_is_told_to_plan(lab: Lab) -> None:
    model = script(["Which metric? Which data?"], ["Which seed? And which GPU?"], ["Then I assume the usual."])
    with talking(lab, model):
        talk = Talk(lab)
        assert talk.say("Plan something", Mode.PLAN)[-1].data["why"] == "done"
        talk.say("The usual.")
    assert "more than 3 questions" in model.asked[2].messages[-1].text
    assert talk.last(PieceKind.END)["why"] == "done"


def test_model_that_never_stops_asking_fails_its_turn(lab: Lab) -> None:
    model = script(*[["What? Why? How? When?"] for _ in range(9)])
    with talking(lab, model):
        talk = Talk(lab)
        talk.say("Plan something", Mode.PLAN)
    assert talk.last(PieceKind.END)["why"] == "failed"
    assert len(model.asked) == 3


def test_saved_plan_resets_the_question_count_and_agent_mode_has_none() -> None:
    def turn(number: int, mode: Mode, text: str, **result: str) -> list[Piece]:
        facts = {"session_id": "s", "turn": number, "time": ""}
        return [
            Piece(**facts, seq=1, kind=PieceKind.USER, data={"mode": mode}),
            *([Piece(**facts, seq=2, kind=PieceKind.RESULT, data=result)] if result else []),
            Piece(**facts, seq=3, kind=PieceKind.MESSAGE, data={"text": text, "calls": []}),
        ]

    asked = turn(1, Mode.PLAN, "Which one? Is `a?b` and\n> really?\nmeant?")
    assert questions_left(asked) == 1
    assert questions_left([*asked, *turn(2, Mode.AGENT, "Shall I? Or not?")]) == 1
    assert questions_left([*asked, *turn(2, Mode.PLAN, "Good?", plan_saved="plan-1")]) == 3


@pytest.mark.parametrize("text", ["Done.", "", "✅ Plan saved — ID: @plan-2", "✅ Plan saved — ID: @plan-1 !"])
def test_last_line_is_exact(text: str) -> None:
    ended = text + with_saved_line(text, "plan-1")
    assert ended.splitlines()[-1] == "✅ Plan saved — ID: @plan-1"
    assert with_saved_line(ended, "plan-1") == ""


# Permissions


def test_mode_holds_for_each_turn_even_when_switched(lab: Lab) -> None:
    start = call("create_run", command="echo hello")
    model = script([start], ["Started."], [start], ["I only plan."], [start], ["Started."])
    with talking(lab, model):
        talk = Talk(lab)
        for message, mode in (("Start it", Mode.AGENT), ("Start it", Mode.PLAN), ("Start it", Mode.AGENT)):
            talk.say(message, mode)
    planning = ["You are planning" in request.system for request in model.asked]
    assert planning == [False, False, True, True, False, False]
    assert [json.loads(text).get("refused", "") for text in talk.results()] == [
        "",
        "There is no tool 'create_run' in this mode.",
        "",
    ]
    assert "this is plan mode" in model.asked[2].messages[-1].text
    assert "this is agent mode" in model.asked[4].messages[-1].text


def test_mode_changed_mid_turn_holds_from_the_next_turn(lab: Lab) -> None:
    def answer(request: ChatRequest) -> list[Any]:
        if request.messages[-1].role == "user":
            sessions.update(lab, talk.id, {"mode": Mode.AGENT}, PERSON)
            return [call("create_run", command="echo hello")]
        return ["Well."]

    talk = Talk(lab)
    model = Answers(answer)
    with talking(lab, model):
        talk.say("Go", Mode.PLAN)
        assert "no tool 'create_run'" in event_data(talk)["refused"]
        assert "You are planning" in model.asked[1].system
        talk.say("Go on")
    assert event_data(talk)["id"]


def test_planning_has_only_tools_that_read_ask_or_save_a_plan() -> None:
    writing = {name for name, tool in CHAT_TOOLS[Mode.PLAN].items() if tool.writes}
    assert writing == {"create_plan", "change_plan", "compile_plan", "validate_plan"}
    assert {name for name, tool in TOOLS.items() if not tool.writes} < CHAT_TOOLS[Mode.PLAN].keys()


@pytest.mark.parametrize("skill", ["agent-mode", "plan-mode"])
def test_every_call_in_a_skill_has_an_equivalent_tool(skill: str) -> None:
    text = (Path(labwright.__file__).parent / f"skills/builtin/{skill}/SKILL.md").read_text()
    calls = re.findall(r"(?:-X )?\b(GET|POST|PUT|PATCH|DELETE) \"?(?:\{\{server_url\}\})?(/[\w/{}<>_-]+)", text)
    calls += [("GET", path) for path in re.findall(r"curl -sf \{\{server_url\}\}(/\S+)", text)]
    shown = {f"{method} {path.replace('<', '{').replace('>', '}')}" for method, path in calls}
    assert len(shown) > 6
    described = {"GET /docs", "GET /openapi.json"}  # the tools describe themselves
    assert shown - TOOL_FOR_CALL.keys() - described == set()
    assert set(TOOL_FOR_CALL.values()) <= TOOLS.keys()
    assert "create_run" not in tools_for_calls(CHAT_TOOLS[Mode.PLAN])
