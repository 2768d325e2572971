"""Wild Mode on a live server: real runs over HTTP, on the command line, in a conversation, and through a kill."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.acceptance.test_chat import chat, text_of, with_model
from tests.acceptance.test_cli import answer, labwright
from tests.support.live_server import LiveServer
from tests.support.model_server import Turn, model_server
from tests.support.waiting import wait_until
from tests.support.wilding import SCRIPT, write_project

Json = dict[str, Any]
GOAL = "lr 0.2 and 0.3: reach val_acc 0.9"
COUNTING = "open('began', 'a').write(f'{args.lr} {args.seed}\\n')\n__import__('time').sleep(0.3)\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Each run records its start, and takes long enough to be observed."""
    project = write_project(tmp_path_factory.mktemp("wild") / "project")
    (project / "train.py").write_text(SCRIPT.replace("noise =", f"{COUNTING}noise ="))
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="3").start()
    yield server
    server.stop()


def start_loop(lab: LiveServer, goal: str = GOAL, **fields: Any) -> Json:
    made: Json = lab.post("/wild/start", {"goal": goal, **fields})
    return made


def when_idle(lab: LiveServer, wild_id: str) -> Json:
    def look() -> Json | None:
        found: Json = lab.get(f"/wild/{wild_id}")
        return None if found["status"] in ("running", "waiting") else found

    return wait_until(look, f"{wild_id} to end", 60)


def test_goal_is_reached_with_evidence(lab: LiveServer) -> None:
    made = start_loop(lab, budget={"runs": 12, "gpu_hours": 1})
    wild = when_idle(lab, made["id"])
    assert (wild["status"], wild["best"]["params"], wild["best"]["n"]) == ("completed", {"lr": 0.3}, 3)
    assert wild["criterion"] == {"text": "val_acc at least 0.9", "threshold": 0.9}
    assert wild["metric"] == {"key": "val_acc", "goal": "max"}
    for run_id in wild["iterations"][wild["best"]["number"] - 1]["run_ids"]:
        run = lab.run(run_id)
        assert (run["status"], run["sweep_id"]) == ("finished", wild["sweep_id"])
        assert run["created_by"] == f"agent:{wild['id']}"
        assert run_id in wild["report"]
    assert wild["used"]["runs"] == sum(len(one["run_ids"]) for one in wild["iterations"])
    assert lab.get("/wild")[0] == wild
    events = lab.get("/events?types=wild.changed,wild.iteration&limit=1000")
    told = {(event["type"], event["data"]["status"]) for event in events if event["data"]["wild_id"] == wild["id"]}
    assert told >= {("wild.changed", "waiting"), ("wild.changed", "completed"), ("wild.iteration", "done")}


def test_kill_starts_no_run_twice_and_a_lost_database_loses_no_loop(lab: LiveServer) -> None:
    (lab.project / "began").unlink(missing_ok=True)
    wild_id = start_loop(lab, budget={"runs": 12})["id"]
    wait_until(lambda: len(lab.get(f"/wild/{wild_id}")["iterations"]) > 1, "the first try")
    lab.restart()
    wild = when_idle(lab, wild_id)
    assert wild["status"] == "completed"
    began = Counter((lab.project / "began").read_text().splitlines())
    assert set(began.values()) == {1}
    made = [lab.run(run_id) for one in wild["iterations"] for run_id in one["run_ids"]]
    assert sum(began.values()) >= sum(run["status"] == "finished" for run in made) >= 6
    lab.kill()
    for file in [*lab.state.glob("labwright.db*"), *lab.state.glob("backups/*")]:
        file.unlink()
    lab.start()
    assert lab.get(f"/wild/{wild_id}") == wild


def test_invalid_requests_get_a_hint_and_create_nothing(lab: LiveServer) -> None:
    before = len(lab.get("/sweeps"))
    for body, words in (
        ({"goal": "hello there"}, "Nothing in that says"),
        ({"goal": "reach bleu 3 by tuning lr"}, "names no metric"),
        ({"goal": GOAL, "protect": ["nowhere"]}, "no nowhere to protect"),
        ({"goal": GOAL, "budget": {"runs": 0}}, "budget.runs"),
    ):
        refused = lab.call("POST", "/wild/start", body)
        assert refused.status == 422, refused.body
        assert words in json.dumps(refused.json["error"]) and refused.json["error"]["hint"]
    assert lab.call("POST", "/wild/start", {"goal": GOAL, "session_id": "chat-nope"}).status == 404
    assert lab.call("GET", "/wild/wild-nope").status == 404
    assert len(lab.get("/sweeps")) == before


def test_agent_can_start_and_steer_but_not_raise_a_budget(lab: LiveServer) -> None:
    agent, viewer = (mint(lab.token, scope, "tester", 600) for scope in (Scope.AGENT, Scope.VIEWER))
    body = {"goal": GOAL, "budget": {"runs": 1}}
    assert lab.call("POST", "/wild/start", body, token=viewer).status == 403
    made = lab.call("POST", "/wild/start", body, token=agent, headers={"Idempotency-Key": "once"})
    again = lab.call("POST", "/wild/start", body, token=agent, headers={"Idempotency-Key": "once"})
    assert made.status == 201 and again.json["id"] == made.json["id"]
    wild_id = made.json["id"]
    assert lab.call("POST", f"/wild/{wild_id}/steer", {"text": "lr 0.25"}, token=agent).status == 200
    assert when_idle(lab, wild_id)["status"] == "paused"
    raising = {"budget": {"runs": 9}}
    assert lab.call("POST", f"/wild/{wild_id}/resume", raising, token=agent).status == 403
    assert lab.call("POST", f"/wild/{wild_id}/resume").status == 409
    [alert] = [one for one in lab.get("/alerts?status=pending") if one["wild_id"] == wild_id]
    assert wild_id in labwright(lab, "alerts").stdout
    assert wild_id in labwright(lab, "alerts", "show", alert["id"]).stdout
    told = [one["data"] for one in lab.get("/events?types=alert.raised&limit=1000")]
    assert wild_id in [data.get("wild_id") for data in told]
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "stop"})
    wait_until(lambda: lab.get(f"/wild/{wild_id}")["status"] == "stopped", "the loop to stop")


def test_agent_cannot_pause_steer_or_end_a_loop_of_somebody_else(lab: LiveServer) -> None:
    agent = mint(lab.token, Scope.AGENT, "tester", 600)
    theirs = lab.post("/wild/start", {"goal": GOAL, "budget": {"runs": 1}})["id"]
    lab.post(f"/wild/{theirs}/pause")
    for verb, body in (("pause", None), ("resume", None), ("steer", {"text": "lr 0.25"}), ("stop", None)):
        refused = lab.call("POST", f"/wild/{theirs}/{verb}", body, token=agent)
        assert refused.status == 403 and "person started" in refused.json["error"]["message"]
    assert lab.post(f"/wild/{theirs}/stop")["status"] == "stopped"
    own = lab.call("POST", "/wild/start", {"goal": GOAL, "budget": {"runs": 1}}, token=agent).json["id"]
    assert lab.call("POST", f"/wild/{own}/stop", token=agent).json["status"] == "stopped"


def test_command_line_follows_the_loop_to_its_end(lab: LiveServer) -> None:
    done = labwright(lab, "wild", GOAL, "--max-runs", "12", "--wait")
    assert done.returncode == 0, done.stderr
    for words in ("baseline", "keep", "completed", "met with evidence", "of 12 runs"):
        assert words in done.stdout, done.stdout
    newest = answer(lab, "wild", "show", "--json")
    assert newest["id"] in labwright(lab, "wild", "list").stdout
    assert labwright(lab, "wild", "report", newest["id"][:9]).stdout == newest["report"]
    assert "ended already" in labwright(lab, "wild", "stop", "last").stderr
    assert "Did you mean: labwright wild show" in labwright(lab, "wild", "shwo").stderr


def test_conversation_starts_steers_and_stops_a_loop(lab: LiveServer) -> None:
    first = chat(lab, "tune lr: reach val_acc 0.99", mode="wild")
    session = first[0]["session_id"]
    end = next(piece["data"] for piece in first if "why" in piece["data"])  # a notice of the loop may follow it
    wild_id = end["wild_id"]
    assert wild_id in text_of(first) and end["why"] == "waiting"
    assert "takes that into account" in text_of(chat(lab, "lr 0.28", session))
    assert "found no flag" in text_of(chat(lab, "be bold", session))
    wait_until(lambda: len(lab.get(f"/wild/{wild_id}")["iterations"]) > 1, "the first try")
    assert f"{wild_id} is stopped" in text_of(chat(lab, "stop", session))
    said = lab.get(f"/sessions/{session}/pieces?limit=1000")
    notices = [piece["data"]["text"] for piece in said if piece["kind"] == "notice"]
    assert any("baseline" in words and "run-" in words for words in notices)
    assert any("asked for: lr 0.28" in words for words in notices)
    assert lab.get(f"/wild/{wild_id}")["session_id"] == session


def test_unclear_goal_leads_to_a_question_in_the_conversation(lab: LiveServer) -> None:
    said = chat(lab, "hello there", mode="wild")
    assert "Nothing in that says" in text_of(said) and said[-1]["data"]["why"] == "done"


def test_model_over_http_proposes_runs(make_server: Callable[..., LiveServer]) -> None:
    idea = {"hypothesis": "the optimum is near", "change": {"lr": 0.3}}
    with model_server("openai", Turn(calls=(("answer", json.dumps(idea)),))) as provider:
        lab = with_model(make_server, provider, LABWRIGHT_MAX_PARALLEL="3")
        write_project(lab.project)
        wild = when_idle(lab, start_loop(lab, "reach val_acc 0.9 by tuning lr")["id"])
        told = labwright(lab, "wild", "show", wild["id"]).stdout
    assert (wild["status"], wild["search"], len(wild["iterations"])) == ("completed", "openai:x", 2)
    assert wild["iterations"][1]["hypothesis"] == "the optimum is near"
    assert wild["used"]["tokens"] > 0
    assert f"{wild['used']['tokens']} tokens" in told and "$" not in told  # the price is unknown
