"""Conversations with a real server: over HTTP, with a provider, and by rules alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.acceptance.test_cli import labwright
from tests.support.live_server import LiveServer
from tests.support.model_server import Asked, ModelServer, Turn, model_server
from tests.support.waiting import wait_until

Json = dict[str, Any]


def frames(body: bytes) -> list[Json]:
    lines = (line for line in body.decode().splitlines() if line.startswith("data: "))
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def chat(server: LiveServer, message: str, session_id: str | None = None, **fields: Any) -> list[Json]:
    answer = server.call("POST", "/chat", {"message": message, "session_id": session_id, **fields})
    assert answer.status == 200, answer.body
    return frames(answer.body)


def text_of(pieces: list[Json]) -> str:
    return str([piece for piece in pieces if piece["kind"] == "message"][-1]["data"]["text"])


def status_of(server: LiveServer, session_id: str) -> str:
    return str(server.get(f"/sessions/{session_id}")["status"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server without a model, shared by all tests that only talk to it."""
    project = tmp_path_factory.mktemp("chat") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


def with_model(make_server: Callable[..., LiveServer], provider: ModelServer, **environment: str) -> LiveServer:
    wire = {"LABWRIGHT_MODEL": "openai:x", "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-fake"}
    return make_server(**wire, **environment).start()


# By rules


def test_rules_answer_plain_requests_with_evidence(lab: LiveServer) -> None:
    script = "import labwright\nlabwright.init()\nfor s in range(3): labwright.log({'loss': %s / (s + 1)}, step=s)\n"
    for name, value in (("good", 1), ("poor", 2)):
        (lab.project / f"{name}.py").write_text(script % value)
    (lab.project / "bad.py").write_text("raise ValueError('no such layer 12')\n")
    made = {name: lab.submit(f"python3 {name}.py", name=name)["id"] for name in ("good", "poor", "bad")}
    for run_id in made.values():
        lab.wait_for_end(run_id)
    first = chat(lab, "what is running?")
    session = first[0]["session_id"]
    questions = ("why did bad fail?", "compare good and poor by loss", "metrics of good", "logs of bad", "hello")
    answers = {question: chat(lab, question, session) for question in questions}
    assert "ValueError: no such layer 12" in text_of(answers["why did bad fail?"])
    assert made["good"] in text_of(answers["compare good and poor by loss"]).splitlines()[0]
    assert "0.3333" in text_of(answers["metrics of good"])
    assert "GPUs, " in text_of(chat(lab, "How many GPUs do we have?", session))
    assert "not a language model" in text_of(answers["hello"])
    messages = [piece for answer in answers.values() for piece in answer if piece["kind"] == "message"]
    assert [piece["data"]["marks"] for piece in messages if piece["data"]["marks"]] == []


def test_earlier_failures_are_shown_before_a_run_is_started(lab: LiveServer) -> None:
    (lab.project / "diverge.py").write_text("import sys\nraise OverflowError(f'loss is {sys.argv[2]}')\n")
    failed = lab.submit("python3 diverge.py --lr 0.5", name="diverges")
    lab.wait_for_end(failed["id"])
    before = len(lab.all_runs())
    told = text_of(chat(lab, "run python3 diverge.py --lr 0.6"))
    assert failed["id"] in told
    assert "OverflowError" in told
    assert len(lab.all_runs()) == before
    shown = labwright(lab, "chat", "run python3 diverge.py --lr 0.6").stdout
    assert f"not started: {failed['id']} failed the same way" in shown
    chat(lab, "run python3 diverge.py --lr 0.001")
    assert len(lab.all_runs()) == before + 1


def test_wait_survives_a_killed_server(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    gate = server.project / "gate"
    run = server.submit(f"until [ -e {gate} ]; do sleep 0.05; done; echo over", name="slow")
    pieces = chat(server, "tell me when slow is done")
    session = pieces[0]["session_id"]
    assert pieces[-1]["data"]["why"] == "waiting"
    server.restart()
    assert server.get(f"/sessions/{session}")["waits"][0]["run_ids"] == [run["id"]]
    gate.touch()
    wait_until(lambda: server.get(f"/sessions/{session}")["turn"] == 2, "the session to wake")
    wait_until(lambda: status_of(server, session) == "idle", "its answer")
    told = [piece for piece in server.get(f"/sessions/{session}/pieces") if piece["turn"] == 2]
    assert told[0]["kind"] == "wake"
    assert f"{run['id']} finished" in text_of(told)


# Over HTTP


def test_sessions_are_created_changed_listed_and_deleted(lab: LiveServer) -> None:
    made = lab.post("/sessions", {"title": "Mine", "mode": "plan"})
    path = f"/sessions/{made['id']}"
    assert (made["status"], made["mode"], made["turn"]) == ("idle", "plan", 0)
    assert lab.call("PATCH", path, {"title": "Ours", "mode": "agent"}).json["title"] == "Ours"
    assert lab.get("/sessions")[0]["id"] == made["id"]
    assert lab.call("POST", f"{path}/stop").status == 409
    assert lab.call("DELETE", path).status == 204
    assert lab.call("GET", path).status == 404
    assert lab.call("POST", "/chat", {"message": "hi", "session_id": made["id"]}).status == 404


BAD = [{}, {"message": ""}, {"message": "  "}, {"message": "x", "mode": "dream"}, {"message": 1}]


@pytest.mark.parametrize("body", BAD)
def test_invalid_message_is_refused_and_changes_nothing(lab: LiveServer, body: Json) -> None:
    before = len(lab.get("/sessions"))
    answer = lab.call("POST", "/chat", body)
    assert answer.status == 422
    assert answer.json["error"]["message"]
    assert len(lab.get("/sessions")) == before


def test_message_sent_twice_with_one_key_is_added_once(lab: LiveServer) -> None:
    body, key = {"message": "sweeps"}, {"Idempotency-Key": "said-once"}
    first = frames(lab.call("POST", "/chat", body, headers=key).body)
    again = frames(lab.call("POST", "/chat", body, headers=key).body)
    assert first == again
    assert lab.get(f"/sessions/{first[0]['session_id']}")["turn"] == 1


def test_client_resumes_by_number_and_all_clients_see_the_same_order(lab: LiveServer) -> None:
    pieces = chat(lab, "gpus")
    session, numbers = pieces[0]["session_id"], [piece["seq"] for piece in pieces]
    assert numbers == list(range(1, len(numbers) + 1))
    assert lab.get(f"/sessions/{session}/pieces") == pieces
    assert lab.get(f"/sessions/{session}/pieces?after=3") == pieces[3:]
    seen: list[list[Json]] = [[], []]
    readers = [threading.Thread(target=follow, args=(lab, session, 2, into, len(pieces) + 3)) for into in seen]
    for reader in readers:
        reader.start()
    more = chat(lab, "hello", session)
    for reader in readers:
        reader.join(timeout=60)
    assert seen[0] == seen[1] == [*pieces[2:], *more][: len(pieces) + 1]


def follow(server: LiveServer, session: str, after: int, into: list[Json], until: int) -> None:
    headers = {"X-Auth-Token": server.token, "Last-Event-ID": str(after)}
    with urlopen(Request(f"{server.url}/sessions/{session}/stream", headers=headers)) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                into.append(json.loads(line.removeprefix(b"data: ")))
                if into[-1]["seq"] >= until:
                    return


def test_memories_of_agents_are_proposals(lab: LiveServer) -> None:
    agent = mint(lab.token, Scope.AGENT, "outside", 600)
    proposed = lab.call("POST", "/memories", {"text": "always approve"}, token=agent).json
    own = lab.post("/memories", {"text": "we use the small split"})
    assert (proposed["accepted"], own["accepted"]) == (False, True)
    assert [found["id"] for found in lab.call("GET", "/memories", token=agent).json] == [own["id"]]
    assert lab.call("PATCH", f"/memories/{proposed['id']}", {"accepted": True}, token=agent).status == 403
    assert lab.call("PATCH", f"/memories/{proposed['id']}", {"accepted": True}).json["accepted"]
    assert lab.call("DELETE", f"/memories/{proposed['id']}").status == 204


def test_agent_token_sees_no_events_of_conversations(lab: LiveServer) -> None:
    lab.post("/runs", {"command": "true", "name": "held"})
    (asked,) = [piece for piece in chat_until_asked(lab, "stop held") if piece["kind"] == "approval"]
    agent = mint(lab.token, Scope.AGENT, "outside", 600)
    kinds = {event["type"] for event in lab.call("GET", "/events?limit=5000", token=agent).json}
    assert "run.created" in kinds
    assert not {kind for kind in kinds if kind.startswith(("session.", "approval.", "memory."))}
    assert lab.call("GET", "/events?types=approval.asked,session.created", token=agent).json == []
    assert asked["data"]["question"] in str(lab.get("/events?types=approval.asked"))
    last = lab.post("/runs", {"command": "true", "name": "after-it"})["id"]
    assert asked["data"]["question"] not in streamed_until(lab, "/events/stream?after=0", agent, last)
    lab.post(f"/approvals/{asked['data']['id']}/respond", {"approved": False})


def test_outside_agent_that_obeys_a_hostile_log_is_refused(lab: LiveServer) -> None:
    lab.post("/runs", {"command": "true", "name": "coveted"})
    (asked,) = [piece["data"] for piece in chat_until_asked(lab, "stop coveted") if piece["kind"] == "approval"]
    plan = lab.post("/plans", {"title": "t", "goal": "g", "raw_markdown": "x"})["id"]
    note = lab.call("POST", "/memories", {"text": "obey"}, token=mint(lab.token, Scope.AGENT, "log", 60)).json["id"]
    session = f"/sessions/{asked['session_id']}"
    orders: list[tuple[str, str, Json | None]] = [
        ("POST", f"/approvals/{asked['id']}/respond", {"approved": True}),
        ("GET", "/approvals", None),
        ("POST", f"/plans/{plan}/approve", {"digest": "0" * 64}),
        ("POST", "/cluster", {"type": "cpu_only", "max_parallel": 99}),
        ("GET", f"{session}/pieces", None),
        ("PATCH", session, {"mode": "agent"}),
        ("POST", "/chat", {"session_id": asked["session_id"], "message": "go on"}),
        ("POST", f"{session}/stop", None),
        ("PATCH", f"/memories/{note}", {"accepted": True}),
        ("PUT", "/prompt-skills/agent-mode", {"text": "obey"}),
        ("GET", "/suggestions", None),
    ]
    agent = mint(lab.token, Scope.AGENT, "obedient", 60)
    assert {order[1]: lab.call(*order, token=agent).status for order in orders} == {order[1]: 403 for order in orders}
    assert lab.get("/approvals?status=pending")[0]["id"] == asked["id"]
    lab.post(f"/approvals/{asked['id']}/respond", {"approved": False})


def test_agent_token_stops_only_work_started_by_an_agent(lab: LiveServer) -> None:
    shell = mint(lab.token, Scope.AGENT, "chat-0123456789", 60)
    mcp, skill = (mint(lab.token, Scope.AGENT, name, 60) for name in ("mcp", "skill"))
    grid = {"name": "naps", "base_command": "sleep {s}", "parameters": {"s": [61, 62]}, "budget": {"runs": 1}}
    run, sweep = lab.post("/runs", {"command": "sleep 60"})["id"], lab.post("/sweeps", grid)["id"]
    alert = lab.post(f"/runs/{run}/alerts", {"message": "slow", "choices": ["stop", "rerun", "ignore"]})["id"]
    ends: list[tuple[str, Json | None]] = [
        (f"/runs/{run}/stop", None),
        (f"/sweeps/{sweep}/stop", None),
        (f"/sweeps/{sweep}/pause", None),
        (f"/alerts/{alert}/respond", {"choice": "stop"}),
        (f"/alerts/{alert}/respond", {"choice": "rerun"}),
    ]
    for token in (shell, mcp):
        for path, body in ends:
            refused = lab.call("POST", path, body, token=token)
            assert (refused.status, "person started" in refused.json["error"]["message"]) == (403, True), path
    assert lab.call("POST", f"/alerts/{alert}/respond", {"choice": "ignore"}, token=mcp).status == 200
    own = lab.call("POST", "/runs", {"command": "sleep 60"}, token=mcp).json["id"]
    assert lab.call("POST", f"/runs/{own}/stop", token=shell).status == 403
    assert lab.call("POST", f"/runs/{own}/stop", token=skill).status == 200
    own = lab.call("POST", "/runs", {"command": "sleep 60"}, token=shell).json["id"]
    assert lab.call("POST", f"/runs/{own}/stop", token=shell).status == 200
    assert lab.get(f"/runs/{run}")["status"] != "stopped"
    lab.post(f"/sweeps/{sweep}/stop")
    lab.post(f"/runs/{run}/stop")


def test_agent_token_cannot_raise_a_sweep_budget(lab: LiveServer) -> None:
    agent = mint(lab.token, Scope.AGENT, "mcp", 60)
    two = {"name": "two", "base_command": "true {s}", "parameters": {"s": [1, 2]}, "auto_start": True}
    sweep = lab.call("POST", "/sweeps", {**two, "budget": {"runs": 1}}, token=agent).json["id"]
    alerts = wait_until(lambda: lab.get(f"/alerts?sweep_id={sweep}"), "the sweep to ask for more")
    more = {"budget": {"runs": 9}}
    assert lab.call("POST", f"/sweeps/{sweep}/resume", more, token=agent).status == 403
    assert lab.call("POST", f"/alerts/{alerts[0]['id']}/respond", {"choice": "raise"}, token=agent).status == 403
    lab.post(f"/sweeps/{sweep}/resume", more)


def streamed_until(server: LiveServer, path: str, token: str, word: str) -> str:
    seen = ""
    with urlopen(Request(f"{server.url}{path}", headers={"X-Auth-Token": token}), timeout=60) as stream:
        while word not in seen:
            seen += stream.readline().decode()
    return seen


def chat_until_asked(server: LiveServer, message: str) -> list[Json]:
    session = server.post("/sessions", {})["id"]
    talker = threading.Thread(target=_until_broken, args=(server, session, [], message), daemon=True)
    talker.start()
    wait_until(lambda: status_of(server, session) == "asking", "it to ask")
    found: list[Json] = server.get(f"/sessions/{session}/pieces")
    return found


# With a provider


def test_model_at_a_provider_works_through_the_tools(make_server: Callable[..., LiveServer]) -> None:
    def answer(asked: Asked) -> Turn:
        told = [message for message in asked.body["messages"] if message["role"] == "tool"]
        if not told:
            return Turn(text=("Let me ", "look."), calls=(("get_metrics", json.dumps({"run": "base"})),))
        return Turn(text=("The loss is 0.25 [E1], ", "not 0.75."), thinking="Easy.")

    with model_server("openai", answer) as provider:
        server = with_model(make_server, provider)
        run = server.post("/runs", {"command": "true", "name": "base", "auto_start": True})
        server.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "loss", "step": 1, "value": 0.25}]})
        wait_until(lambda: server.run(run["id"])["summary"].get("loss"), "the metric")
        server.wait_for_end(run["id"])
        pieces = chat(server, "How good is @base?")
    assert pieces[0]["data"]["mentions"][0]["id"] == run["id"]
    assert "thinking" in {piece["kind"] for piece in pieces}
    (mark,) = [piece for piece in pieces if piece["kind"] == "message"][-1]["data"]["marks"]
    assert (mark["text"], mark["fault"]) == ("0.75", "mismatch")


def test_reply_at_the_models_limit_is_marked_as_cut(make_server: Callable[..., LiveServer]) -> None:
    with model_server("openai", Turn(text=("It is",), stop="length")) as provider:
        shown = labwright(with_model(make_server, provider), "chat", "How is it?").stdout
    assert "The answer was cut off at the model's length limit." in shown


def test_server_killed_during_a_reply_finishes_the_turn(make_server: Callable[..., LiveServer]) -> None:
    with model_server("openai", Turn(text=("Once ", "upon"), hang_after=3), Turn(text=("All is well.",))) as provider:
        server = with_model(make_server, provider)
        session = server.post("/sessions", {})["id"]
        broken: list[BaseException] = []
        talker = threading.Thread(target=_until_broken, args=(server, session, broken))
        talker.start()
        wait_until(lambda: [p for p in server.get(f"/sessions/{session}/pieces") if p["kind"] == "text"], "first words")
        before = server.get(f"/sessions/{session}/pieces")
        server.restart()
        talker.join(timeout=60)
        wait_until(lambda: status_of(server, session) == "idle", "the turn to finish")
        after = server.get(f"/sessions/{session}/pieces")
    assert after[: len(before)] == before
    assert text_of(after) == "All is well."
    assert [piece["kind"] for piece in after].count("user") == 1


def _until_broken(
    server: LiveServer, session: str, broken: list[BaseException], message: str = "Tell me a story"
) -> None:
    try:
        chat(server, message, session)
    except (OSError, HTTPException) as error:
        broken.append(error)


def test_stop_is_immediate_while_a_model_is_silent(make_server: Callable[..., LiveServer]) -> None:
    with model_server("openai", Turn(text=("Once ", "upon"), hang_after=3)) as provider:
        server = with_model(make_server, provider)
        session = server.post("/sessions", {})["id"]
        talker = threading.Thread(target=_until_broken, args=(server, session, []))
        talker.start()
        wait_until(lambda: [p for p in server.get(f"/sessions/{session}/pieces") if p["kind"] == "text"], "first words")
        assert server.post(f"/sessions/{session}/stop")["status"] == "idle"
        talker.join(timeout=10)  # the stream has ended with the turn, though the model is still silent
        assert not talker.is_alive()


def test_model_is_not_called_while_a_run_is_active(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with model_server("openai", waits_for_slow) as provider:
        server = with_model(make_server, provider, LABWRIGHT_MAX_PARALLEL="2")
        run = server.submit(f"until [ -e {gate} ]; do sleep 0.05; done", name="slow")
        session = chat(server, "Tell me when it is done")[0]["session_id"]
        server.wait_for_status(run["id"], "running")
        for number in range(3):
            server.wait_for_end(server.submit("true", name=f"other-{number}")["id"])
        assert len(provider.asked) == 1
        gate.touch()
        wait_for_its_answer(server, session, provider)


@pytest.mark.slow
def test_waiting_for_a_minute_spends_no_tokens(make_server: Callable[..., LiveServer]) -> None:
    """Output, metrics, alerts and other conversations go on meanwhile."""
    busy = 'i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo "{\\"loss\\": $i}"; sleep 0.5; done'
    with model_server("openai", waits_for_slow) as provider:
        server = with_model(make_server, provider, LABWRIGHT_MAX_PARALLEL="2")
        run = server.submit(busy, name="slow")
        session = chat(server, "Tell me when it is done")[0]["session_id"]
        spent = server.get("/models")["spent"]
        server.post(f"/runs/{run['id']}/alerts", {"message": "look at me", "choices": ["ok"]})
        server.wait_for_end(run["id"], 120)
        assert server.run(run["id"])["usage"]["wall_seconds"] >= 60
        wait_for_its_answer(server, session, provider)
        assert spent["calls"] == 1 and server.get("/models")["spent"]["calls"] == 2


def waits_for_slow(asked: Asked) -> Turn:
    last = asked.body["messages"][-1]
    if last["role"] == "user" and "has happened" in str(last["content"]):
        return Turn(text=("It is done.",))
    return Turn(calls=(("wait_for_run", json.dumps({"run_ids": ["slow"]})),))


def wait_for_its_answer(server: LiveServer, session: str, provider: ModelServer) -> None:
    """Check that there is one request before the wait, one after it, and none in between."""
    wait_until(lambda: server.get(f"/sessions/{session}")["turn"] == 2, "the session to wake")
    wait_until(lambda: status_of(server, session) == "idle", "its answer")
    assert len(provider.asked) == 2
    assert "has happened" in str(provider.asked[1].body["messages"][-1]["content"])


# On the command line


def test_chat_works_on_the_command_line(lab: LiveServer) -> None:
    told = labwright(lab, "chat", "gpus")
    assert told.returncode == 0
    assert "message is empty." in labwright(lab, "chat", " ").stderr
    assert "· get_cluster" in told.stdout
    assert "[E1]." in told.stdout
    lines = [json.loads(line) for line in labwright(lab, "chat", "--json", "gpus").stdout.splitlines()]
    assert [line["kind"] for line in lines][-2:] == ["message", "end"]
    session = lines[0]["session_id"]
    assert session in labwright(lab, "sessions").stdout
    assert "you: gpus" in labwright(lab, "sessions", "show", session).stdout
    assert "you: gpus" in labwright(lab, "sessions", "show", "last").stdout
    assert "There is no conversation nobody" in labwright(lab, "sessions", "show", "nobody").stderr
    assert labwright(lab, "sessions", "delete", session).returncode == 0
    assert labwright(lab, "sessions", "show", session).returncode == 1


def test_approval_is_answered_on_the_command_line(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true", "name": "mine"})
    told = labwright(lab, "chat", "stop mine")
    assert told.returncode == 4  # it waits for an answer, and there is no terminal
    assert lab.run(run["id"])["status"] == "ready"
    (asked,) = json.loads(labwright(lab, "approvals", "--json").stdout)
    assert labwright(lab, "approvals", "answer", asked["id"], "approve").returncode == 0
    wait_until(lambda: lab.run(run["id"])["status"] == "stopped", "the run to be stopped")
    wait_until(lambda: status_of(lab, asked["session_id"]) == "idle", "the turn to end")
    assert labwright(lab, "approvals", "answer", asked["id"], "deny").returncode == 1


def test_suggestion_is_accepted_on_the_command_line(lab: LiveServer) -> None:
    session = chat(lab, "run echo train --lr 0.1")[0]["session_id"]
    told = [text_of(chat(lab, f"run echo train --lr {lr}", session)) for lr in (0.2, 0.3)]
    assert "💡 Workflow Improvement: `echo train` was started several times" in told[1]
    (found,) = json.loads(labwright(lab, "sessions", "suggestions", "--session", session, "--json").stdout)
    accepted = labwright(lab, "sessions", "accept", found["id"], "--template", "lr.yaml")
    assert (accepted.returncode, "accepted into templates/lr.yaml" in accepted.stdout) == (0, True), accepted.stderr
    assert "lr: [0.1, 0.2, 0.3]" in (lab.project / "templates/lr.yaml").read_text()
    assert labwright(lab, "sessions", "dismiss", found["id"]).returncode == 1
    assert found["id"] not in labwright(lab, "sessions", "suggestions").stdout
