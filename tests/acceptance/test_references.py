"""A name, an id, an id prefix or `last` identifies a run, a sweep or a plan in every HTTP call."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until
from tests.unit.plan_texts import GOOD


def create_run(lab: LiveServer, name: str, **fields: Any) -> Any:
    answer = lab.call("POST", "/runs", {"command": "echo hello", "name": name, **fields})
    assert answer.status == 201, answer.body
    return answer.json


def create_sweep(lab: LiveServer, name: str) -> Any:
    answer = lab.call("POST", "/sweeps/wild", {"name": name})
    assert answer.status == 201, answer.body
    return answer.json


def create_plan(lab: LiveServer, title: str) -> Any:
    body = {"title": title, "goal": "Which one?", "session_id": None, "raw_markdown": GOOD}
    answer = lab.call("POST", "/plans", body)
    assert answer.status == 201, answer.body
    return answer.json


def references_to(thing: Any, name: str) -> list[str]:
    word = thing["id"].partition("-")[2]
    return [thing["id"], thing["id"][:-1], word, word[:-1], quote(name), "last"]


def test_every_route_of_a_run_takes_a_name(lab: LiveServer) -> None:
    run = create_run(lab, "the first run")
    for reference in references_to(run, "the first run"):
        assert lab.get(f"/runs/{reference}")["id"] == run["id"]
        assert lab.get(f"/runs/{reference}/logs/digest")["run_id"] == run["id"]
        assert lab.get(f"/runs/{reference}/logs")["total_size"] == 0
        assert lab.get(f"/runs/{reference}/metrics")["run_id"] == run["id"]
        assert lab.get(f"/runs/{reference}/artifacts") == []
    assert lab.call("PATCH", "/runs/the%20first%20run", {"notes": "good"}).json["notes"] == "good"
    points = {"points": [{"key": "loss", "step": 1, "value": 0.5}]}
    assert lab.call("POST", "/runs/the%20first%20run/metrics", points).status == 202
    assert lab.post("/runs/the%20first%20run/stop")["id"] == run["id"]
    assert lab.call("POST", "/runs/the%20first%20run/rerun").json["parent_run_id"] == run["id"]


def test_every_route_of_a_sweep_takes_a_name(lab: LiveServer) -> None:
    sweep = create_sweep(lab, "warm up")
    create_run(lab, "in the sweep", sweep_id=sweep["id"])
    for reference in references_to(sweep, "warm up"):
        assert lab.get(f"/sweeps/{reference}")["id"] == sweep["id"]
        assert lab.get(f"/sweeps/{reference}/results?key=loss&goal=min")["sweep_id"] == sweep["id"]
        assert [run["name"] for run in lab.get(f"/runs?sweep_id={reference}")] == ["in the sweep"]
    assert lab.post("/sweeps/warm%20up/stop")["status"] == "stopped"


def test_every_route_of_a_plan_takes_a_title(lab: LiveServer) -> None:
    plan = create_plan(lab, "Learning rate")
    for reference in references_to(plan, "Learning rate"):
        assert lab.get(f"/plans/{reference}")["id"] == plan["id"]
        assert lab.get(f"/plans/{reference}/versions")
        assert lab.get(f"/runs?plan_id={reference}") == []
    assert lab.call("PATCH", "/plans/Learning%20rate", {"title": "Rates"}).json["id"] == plan["id"]
    assert lab.call("POST", "/plans/Rates/archive").json["status"] == "archived"


def test_queries_take_names(lab: LiveServer) -> None:
    one, two = create_run(lab, "one"), create_run(lab, "two")
    listed = lab.get(f"/runs?ids=one,{two['id'][:-1]}")
    assert {run["id"] for run in listed} == {one["id"], two["id"]}
    for run in (one, two):
        lab.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "loss", "step": 1, "value": 0.5}]})
        wait_until(lambda run=run: lab.get(f"/runs/{run['id']}/metrics")["keys"] == ["loss"], "the point to be stored")
    compared = lab.get("/metrics/compare?run_ids=one,last&key=loss")
    assert {run["run_id"] for run in compared["runs"]} == {one["id"], two["id"]}
    assert {event["run_id"] for event in lab.get("/events?run_id=one")} == {one["id"]}
    assert lab.get("/alerts?run_id=one") == []
    assert lab.call("GET", "/alerts?run_id=nobody").status == 404


def test_bodies_take_names_and_repeats_with_a_key_create_nothing(lab: LiveServer) -> None:
    sweep, parent = create_sweep(lab, "a sweep of its own"), create_run(lab, "the parent")
    run = create_run(lab, "child", sweep_id="a sweep of its own", parent_run_id="the parent", after=["the parent"])
    assert (run["sweep_id"], run["parent_run_id"], run["after"]) == (sweep["id"], parent["id"], [parent["id"]])
    body = {"command": "true", "name": "last child", "after": ["last"]}
    first, second = (lab.call("POST", "/runs", body, headers={"Idempotency-Key": "once"}) for _ in range(2))
    assert (first.status, first.json["after"]) == (201, [run["id"]])
    assert second.json == first.json


@pytest.mark.parametrize("noun", ["run", "sweep", "plan"])
def test_unknown_name_is_not_found_and_ambiguous_name_lists_matches(lab: LiveServer, noun: str) -> None:
    create = {"run": create_run, "sweep": create_sweep, "plan": create_plan}[noun]
    made: dict[str, str] = {}  # by the first character of the id: 33 ids cannot all differ in it
    prefix = ""
    for number in range(33):
        new = create(lab, f"{noun} {number}")["id"]
        prefix = new[: len(noun) + 2]
        if prefix in made:
            break
        made[prefix] = new
    missing = lab.call("GET", f"/{noun}s/nothing-like-it")
    assert (missing.status, missing.json["error"]["code"]) == (404, "not_found")
    assert lab.call("GET", f"/{noun}s/{noun}-").status == 404
    ambiguous = lab.call("GET", f"/{noun}s/{prefix}")
    assert (ambiguous.status, ambiguous.json["error"]["code"]) == (422, "invalid")
    assert f"more than one {noun}: {noun}-" in ambiguous.json["error"]["message"]
    assert made[prefix] in ambiguous.json["error"]["message"]


def test_token_without_access_learns_nothing_about_names(lab: LiveServer) -> None:
    viewer = mint(lab.token, Scope.VIEWER, "visitor", 600)
    for path, body in (("/runs/nobody/stop", None), ("/runs", {"command": "true", "sweep_id": "nobody"})):
        assert lab.call("POST", path, body, token=viewer).status == 403
    assert lab.call("GET", "/runs/nobody", token=viewer).status == 404
