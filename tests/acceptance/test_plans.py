"""Plans over HTTP: stored in any form, and versioned. `test_plans_killed` covers kills."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from labwright.workspace import Workspace
from tests.support.live_server import LiveServer
from tests.unit.plan_texts import GOOD

BODY = {"title": "Learning rate", "goal": "Which one?", "session_id": None, "raw_markdown": GOOD}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("plans") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


def patch(lab: LiveServer, plan_id: str, **changes: Any) -> Any:
    answer = lab.call("PATCH", f"/plans/{plan_id}", changes)
    assert answer.status == 200, answer.body
    return answer.json


def plan_events(lab: LiveServer, plan_id: str) -> list[tuple[str, Any]]:
    found = lab.get("/events?types=plan.created,plan.updated,plan.status,plan.deleted&limit=5000")
    return [(event["type"], event["data"]) for event in found if event["data"]["plan_id"] == plan_id]


def test_plan_is_stored_with_its_sections(lab: LiveServer) -> None:
    answer = lab.call("POST", "/plans", BODY)
    assert answer.status == 201
    plan = answer.json
    assert (plan["status"], plan["version"], plan["created_by"], plan["valid"]) == ("draft", 1, "person", True)
    assert plan["format"] == {"valid": True, "errors": []}
    assert plan["raw_markdown"] == GOOD
    assert plan["sections"]["compute_setup"] == {
        "cluster_type": "local_gpu",
        "gpu_count": 2,
        "gpuwrap": "enabled",
        "environment": "venv",
    }
    assert plan["sections"]["parameters"][0]["values"] == ["1e-4", "3e-4", "1e-3"]
    assert lab.get(f"/plans/{plan['id']}") == plan
    folder = lab.state / "plans" / plan["id"]
    assert (folder / "plan" / "implementation_plan.md").read_bytes() == GOOD.encode()
    assert folder.stat().st_mode & 0o077 == 0
    assert plan_events(lab, plan["id"]) == [
        ("plan.created", {"plan_id": plan["id"], "title": "Learning rate", "status": "draft"})
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "\0\0",
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        "\u202e" + GOOD,
        "<script>alert(1)</script>",
        GOOD.replace("| lr |", "| `a|b` |"),
        "```\n" + GOOD,
        "x\n" * 2_000_000,
    ],
)
def test_text_of_any_form_is_stored_exactly(lab: LiveServer, text: str) -> None:
    plan = lab.post("/plans", {**BODY, "raw_markdown": text})
    assert plan["raw_markdown"] == text
    assert lab.get(f"/plans/{plan['id']}")["raw_markdown"] == text
    assert Workspace(lab.state).plan(plan["id"]).paths.text.read_bytes() == text.encode()
    assert all(error["line"] >= 1 and error["message"] and error["hint"] for error in plan["format"]["errors"])
    assert plan["format"]["valid"] == (not plan["format"]["errors"]) == plan["valid"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**BODY, "title": ""},
        {**BODY, "raw_markdown": None},
        {**BODY, "raw_markdown": "\ud800"},
        {**BODY, "status": "approved"},
        {**BODY, "session_id": "../x"},
    ],
)
def test_invalid_request_creates_nothing(lab: LiveServer, body: Any) -> None:
    before = sorted(path.name for path in (lab.state / "plans").iterdir())
    assert lab.call("POST", "/plans", body).status == 422
    assert sorted(path.name for path in (lab.state / "plans").iterdir()) == before


def test_too_large_request_is_refused(lab: LiveServer) -> None:
    assert lab.call("POST", "/plans", {**BODY, "raw_markdown": "x" * (8 << 20)}).status == 413
    plan = lab.post("/plans", {**BODY, "raw_markdown": "x" * ((8 << 20) - 1000)})
    assert [error["line"] for error in plan["format"]["errors"]] == [1]


def test_same_key_makes_one_plan(lab: LiveServer) -> None:
    def create(_: int) -> Any:
        return lab.call("POST", "/plans", BODY, headers={"Idempotency-Key": "once"}).json

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(create, range(6)))
    assert len({plan["id"] for plan in made}) == 1
    patch(lab, made[0]["id"], title="another")
    assert create(0) == made[0]
    other = lab.call("POST", "/plans", {**BODY, "title": "x"}, headers={"Idempotency-Key": "once"})
    assert other.status == 409


def test_plans_are_listed_in_pages_by_status_and_session(lab: LiveServer) -> None:
    made = [lab.post("/plans", {**BODY, "session_id": "s-7"})["id"] for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while len(seen) < 5:
        answer = lab.call("GET", f"/plans?session_id=s-7&limit=2{cursor}")
        seen += [plan["id"] for plan in answer.json]
        cursor = f"&cursor={answer.headers.get('x-next-cursor')}"
        lab.post("/plans", {**BODY, "session_id": "s-7"})
    assert seen == made[::-1]
    lab.post(f"/plans/{made[0]}/archive")
    assert made[0] not in [plan["id"] for plan in lab.get("/plans?limit=1000")]
    assert [plan["id"] for plan in lab.get("/plans?status=archived&session_id=s-7")] == [made[0]]
    assert "raw_markdown" not in lab.get("/plans")[0]
    assert lab.call("GET", "/plans?status=nonsense").status == 422
    assert lab.call("GET", "/plans?cursor=x").status == 422


@pytest.mark.parametrize(
    "name", ["plan-0000000000", "..", "%2e%2e%2f..%2fetc", "a%2fb", "%00", "x" * 3000, "con", "%ff"]
)
def test_invalid_id_is_not_found(lab: LiveServer, name: str) -> None:
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/versions"), ("POST", "/archive")):
        answer = lab.call(method, f"/plans/{name}{path}", {} if method == "PATCH" else None)
        assert answer.status in (404, 405), (method, answer.body)
        assert answer.json["error"]["message"]


def test_edit_is_a_new_version(lab: LiveServer) -> None:
    plan_id = lab.post("/plans", BODY)["id"]
    edited = patch(lab, plan_id, raw_markdown="not a plan", version=1)
    assert (edited["version"], edited["valid"], edited["raw_markdown"]) == (2, False, "not a plan")
    assert patch(lab, plan_id, title="New name")["version"] == 3
    assert patch(lab, plan_id, title="New name")["version"] == 3
    assert patch(lab, plan_id, session_id="s-1")["version"] == 3
    found = lab.get(f"/plans/{plan_id}/versions")
    assert [(version["version"], version["title"]) for version in found] == [
        (3, "New name"),
        (2, "Learning rate"),
        (1, "Learning rate"),
    ]
    assert found[-1]["raw_markdown"] == GOOD
    page = lab.call("GET", f"/plans/{plan_id}/versions?limit=2")
    rest = lab.get(f"/plans/{plan_id}/versions?limit=2&cursor={page.headers['x-next-cursor']}")
    assert [version["version"] for version in rest] == [1]
    assert [(kind, data.get("changed")) for kind, data in plan_events(lab, plan_id)] == [
        ("plan.created", None),
        ("plan.updated", ["raw_markdown"]),
        ("plan.updated", ["title"]),
        ("plan.updated", ["session_id"]),
    ]


def test_two_editors_of_one_version_do_not_overwrite_each_other(lab: LiveServer) -> None:
    plan_id = lab.post("/plans", BODY)["id"]

    def edit(number: int) -> int:
        return lab.call("PATCH", f"/plans/{plan_id}", {"raw_markdown": f"by {number}", "version": 1}).status

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(edit, range(6))) == [200, *[409] * 5]


def test_concurrent_edits_leave_folder_and_database_the_same(lab: LiveServer) -> None:
    plan_id = lab.post("/plans", BODY)["id"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: patch(lab, plan_id, raw_markdown=f"text {number}"), range(24)))
    plan = lab.get(f"/plans/{plan_id}")
    folder = Workspace(lab.state).plan(plan_id)
    on_disk = folder.plan()
    assert on_disk is not None and on_disk.version == plan["version"] == 25
    assert folder.paths.text.read_text() == plan["raw_markdown"]


def test_archived_plan_cannot_change(lab: LiveServer) -> None:
    plan_id = lab.post("/plans", BODY)["id"]
    assert lab.post(f"/plans/{plan_id}/archive")["status"] == "archived"
    assert lab.call("POST", f"/plans/{plan_id}/archive").status == 409
    assert lab.call("PATCH", f"/plans/{plan_id}", {"title": "x"}).status == 409
    assert plan_events(lab, plan_id)[-1][1]["to"] == "archived"


def test_agents_write_viewers_read_and_only_a_person_deletes(lab: LiveServer) -> None:
    agent, viewer = (mint(lab.token, scope, "a", 60.0) for scope in (Scope.AGENT, Scope.VIEWER))
    made = lab.call("POST", "/plans", BODY, token=agent)
    assert (made.status, made.json["created_by"]) == (201, "agent:a")
    path = f"/plans/{made.json['id']}"
    assert lab.call("PATCH", path, {"goal": "g"}, token=agent).json["version"] == 2
    assert lab.call("PATCH", path, {"status": "approved"}, token=agent).status == 422
    assert lab.call("DELETE", path, token=agent).status == 403
    assert lab.call("GET", f"{path}/versions", token=viewer).json[0]["created_by"] == "agent:a"
    for method, body in (("PATCH", {"goal": "g"}), ("DELETE", None)):
        assert lab.call(method, path, body, token=viewer).status == 403
    assert lab.call("POST", "/plans", BODY, token=viewer).status == 403
    assert lab.call("DELETE", path).status == 204
    assert lab.call("GET", path).status == 404
    assert not (lab.state / "plans" / made.json["id"]).exists()


def test_agent_cannot_archive_or_stop_a_plan_of_somebody_else(lab: LiveServer) -> None:
    agent, other = mint(lab.token, Scope.AGENT, "a", 60.0), mint(lab.token, Scope.AGENT, "chat-0123456789", 60.0)
    theirs = lab.post("/plans", BODY)["id"]
    for verb, token in itertools.product(("archive", "stop"), (agent, other)):
        refused = lab.call("POST", f"/plans/{theirs}/{verb}", token=token)
        assert refused.status == 403 and "person started" in refused.json["error"]["message"]
    assert lab.get(f"/plans/{theirs}")["status"] == "draft"
    own = lab.call("POST", "/plans", BODY, token=agent).json["id"]
    assert lab.call("POST", f"/plans/{own}/archive", token=other).status == 403
    assert lab.call("POST", f"/plans/{own}/archive", token=agent).json["status"] == "archived"


def test_call_from_the_seed_prompts_saves_a_plan(lab: LiveServer) -> None:
    body = json.dumps(
        {"title": "t", "goal": read_objective(), "session_id": None, "raw_markdown": GOOD}, ensure_ascii=False
    )
    answer = lab.call("POST", "/plans", body.encode(), headers={"X-Auth-Token": lab.token})
    assert answer.json["id"].startswith("plan-")


def read_objective() -> str:
    return GOOD[GOOD.index("Find") : GOOD.index("\n\n### Compute")]
