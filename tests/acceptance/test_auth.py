"""Access control: every route needs a token, each scope has only its own rights, and other sites are refused."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.actor import Scope
from labwright.server import routes as route_modules
from labwright.tokens import mint
from tests.support.live_server import Answer, LiveServer

OPEN = {"/", "/health", "/docs", "/openapi.json"}

# What an agent, a viewer and a run may not do. Listed by hand, to catch a mistake in a route.
PERSON_ONLY = {
    ("DELETE", "/runs/{run_id}"),
    ("DELETE", "/plans/{plan_id}"),
    ("POST", "/plans/{plan_id}/review"),
    ("POST", "/plans/{plan_id}/approve"),
    ("POST", "/cluster"),
    ("POST", "/gc"),
    ("POST", "/backup"),
    ("POST", "/runs/import"),
    ("POST", "/notifications/test"),
    ("POST", "/chat"),
    ("GET", "/sessions"),
    ("POST", "/sessions"),
    ("GET", "/sessions/{session_id}"),
    ("PATCH", "/sessions/{session_id}"),
    ("DELETE", "/sessions/{session_id}"),
    ("POST", "/sessions/{session_id}/stop"),
    ("GET", "/sessions/{session_id}/pieces"),
    ("GET", "/approvals"),
    ("POST", "/approvals/{approval_id}/respond"),
    ("GET", "/suggestions"),
    ("POST", "/suggestions/{suggestion_id}/accept"),
    ("POST", "/suggestions/{suggestion_id}/dismiss"),
    ("PATCH", "/memories/{memory_id}"),
    ("DELETE", "/memories/{memory_id}"),
    ("POST", "/prompt-skills"),
    ("PUT", "/prompt-skills/{skill_id}"),
    ("DELETE", "/prompt-skills/{skill_id}"),
    ("PATCH", "/settings"),
    ("PUT", "/models/{provider}/key"),
    ("DELETE", "/models/{provider}/key"),
    ("PUT", "/views"),
    ("DELETE", "/views"),
    ("POST", "/notifications/channels"),
    ("DELETE", "/notifications/channels/{name}"),
}

CHANGES_NOTHING = {("POST", "/plans/check")}  # the text to inspect does not fit into an address

OF_PLANNING = {
    ("POST", "/cluster/detect"),
    ("POST", "/plans"),
    ("PATCH", "/plans/{plan_id}"),
    ("POST", "/plans/{plan_id}/compile"),
    ("POST", "/plans/{plan_id}/validate"),
}

OF_A_SOCKET = {"/runs/{run_id}/terminal"}  # checks the scope itself: a socket reports why it is closed

OF_A_RUN = {
    ("GET", "/runs/{run_id}"),
    ("POST", "/runs/{run_id}/alerts"),
    ("POST", "/runs/{run_id}/metrics"),
    ("GET", "/runs/{run_id}/metrics"),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("auth") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def run(lab: LiveServer) -> dict[str, Any]:
    return lab.wait_for_end(lab.submit("true")["id"])


def routes(lab: LiveServer) -> list[tuple[str, str]]:
    schema = lab.call("GET", "/openapi.json", token=None).json
    return [
        (method.upper(), path)
        for path, operations in schema["paths"].items()
        for method in operations
        if path not in OPEN
    ]


def filled(path: str) -> str:
    return re.sub(r"\{[a-z]+(_id)?\}", "x", path.replace("{run_id}", "run-zzzzzzzzzz"))


def token_of(lab: LiveServer, scope: Scope, subject: str = "x", ttl: float | None = 60.0) -> str:
    return mint(lab.token, scope, subject, ttl)


def test_every_route_is_closed_without_a_token(lab: LiveServer) -> None:
    found = routes(lab)
    assert len(found) > 20
    for method, path in found:
        for token in (None, "nonsense"):
            answer = lab.call(method, filled(path), token=token)
            assert answer.status == 401, (method, path, answer.body)
            assert answer.json["error"]["hint"]
            assert "WWW-Authenticate" not in answer.headers


def test_open_routes_reveal_nothing_about_the_project(lab: LiveServer) -> None:
    for path in sorted(OPEN):
        answer = lab.call("GET", path, token=None)
        assert answer.status in (200, 307)
        assert str(lab.project).encode() not in answer.body
    assert set(lab.call("GET", "/health", token=None).json) == {"status", "version"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "TRACE", "NONSENSE"])
@pytest.mark.parametrize("path", ["/runs", "/nothing", "/health/", "/docs/x", "/assets", "/openapi.json/"])
def test_unknown_routes_are_closed_too(lab: LiveServer, method: str, path: str) -> None:
    assert lab.call(method, path, token=None).status in (400, 401)


@pytest.mark.parametrize("path", ["/assets/../runs", "/assets/%2e%2e/runs", "/health/../runs", "//runs", "/./runs"])
def test_no_path_trick_reaches_a_closed_route(lab: LiveServer, run: dict[str, Any], path: str) -> None:
    answer = lab.call("GET", path, token=None)
    assert answer.status in (400, 401, 404)
    assert run["id"].encode() not in answer.body


@pytest.mark.parametrize(
    "path", ["/assets/../boot.py", "/assets/..%2fboot.py", "/assets/%2e%2e/auth.py", "/assets//etc/passwd"]
)
def test_static_files_stay_in_their_folder(lab: LiveServer, path: str) -> None:
    assert lab.call("GET", path, token=None).status in (400, 404)


def test_every_route_names_its_scopes(lab: LiveServer) -> None:
    """A route without scopes would be open to every token."""
    seen = set()
    for module in pkgutil.iter_modules(route_modules.__path__, f"{route_modules.__name__}."):
        for route in importlib.import_module(module.name).router.routes:
            seen.add(route.path.replace(":path}", "}"))
            scopes = [getattr(needed.dependency, "allowed_scopes", None) for needed in route.dependencies]
            assert any(scopes) or route.path in OPEN | OF_A_SOCKET, f"{route.path} says nothing of who may call it"
    assert {path for _, path in routes(lab)} <= seen


def call_as(lab: LiveServer, scope: Scope, method: str, path: str) -> Answer:
    return lab.call(
        method, filled(path), {} if method in ("POST", "PATCH", "PUT") else None, token=token_of(lab, scope)
    )


def test_viewer_reads_and_never_writes(lab: LiveServer) -> None:
    for method, path in routes(lab):
        if path.endswith("/stream"):
            continue
        status = call_as(lab, Scope.VIEWER, method, path).status
        allowed = method == "GET" or (method, path) in CHANGES_NOTHING
        assert (status != 403) == allowed, (method, path, status)


def test_agent_works_but_cannot_delete_or_set_the_cluster(lab: LiveServer) -> None:
    for method, path in routes(lab):
        if path.endswith("/stream"):
            continue
        status = call_as(lab, Scope.AGENT, method, path).status
        assert (status == 403) == ((method, path) in PERSON_ONLY), (method, path, status)


def test_answer_token_can_only_answer_its_own_approval(lab: LiveServer) -> None:
    own = token_of(lab, Scope.ANSWER, "ask-0123456789")
    for method, path in routes(lab):
        mine = filled(path.replace("{approval_id}", "ask-0123456789"))
        body = {} if method in ("POST", "PATCH", "PUT") else None
        status = lab.call(method, mine, body, token=own).status
        assert (status != 403) == (path == "/approvals/{approval_id}/respond"), (method, path, status)
    answer = {"approved": True}
    assert lab.call("POST", "/approvals/ask-0123456780/respond", answer, token=own).status == 403
    assert lab.call("POST", "/approvals/ask-0123456789/respond", answer, token=own).status == 404
    old = token_of(lab, Scope.ANSWER, "ask-0123456789", ttl=-1)
    assert lab.call("POST", "/approvals/ask-0123456789/respond", answer, token=old).status == 401


def test_planning_token_reads_and_saves_plans_but_starts_nothing(lab: LiveServer) -> None:
    for method, path in routes(lab):
        if path.endswith("/stream"):
            continue
        status = call_as(lab, Scope.PLANNER, method, path).status
        reads = method == "GET" and (method, path) not in PERSON_ONLY
        allowed = reads or (method, path) in CHANGES_NOTHING | OF_PLANNING
        assert (status != 403) == allowed, (method, path, status)


def test_agent_detection_keeps_manual_cluster_settings(lab: LiveServer) -> None:
    lab.post("/cluster", {"type": "cpu_only", "max_parallel": 9})
    for body in (None, {"preferred_type": "cpu_only"}):
        seen = lab.call("POST", "/cluster/detect", body, token=token_of(lab, Scope.AGENT)).json["cluster"]
        assert (seen["source"], seen["recommended"]["max_parallel"]) == ("manual", 9)
    assert lab.post("/cluster/detect")["cluster"]["source"] == "detected"


def test_run_token_works_only_for_its_own_run(lab: LiveServer, run: dict[str, Any]) -> None:
    own = token_of(lab, Scope.RUN, run["id"], None)
    other = lab.post("/runs", {"command": "true", "name": run["id"][:-1]})
    for method, path in routes(lab):
        if path.endswith("/stream"):
            continue
        mine, theirs = (path.replace("{run_id}", one["id"]) for one in (run, other))
        allowed = (method, path) in OF_A_RUN
        body = {} if method in ("POST", "PATCH", "PUT") else None
        assert (lab.call(method, filled(mine), body, token=own).status == 403) != allowed, (method, path)
        assert lab.call(method, filled(theirs), body, token=own).status == 403, (method, path)
    alert = lab.call("POST", f"/runs/{run['id']}/alerts", {"message": "mine"}, token=own)
    assert alert.status == 201
    assert lab.get(f"/events?run_id={run['id']}")[-1]["actor"] == f"run:{run['id']}"


def test_token_inside_a_run_works_for_that_run(lab: LiveServer) -> None:
    script = (
        'curl -s -o /dev/null -w "%{http_code} " -H "X-Auth-Token: $LABWRIGHT_RUN_TOKEN" '
        '"$LABWRIGHT_SERVER_URL/runs/$LABWRIGHT_RUN_ID/alerts" -H "Content-Type: application/json" '
        """-d '{"message": "from inside"}';"""
        ' curl -s -o /dev/null -w "%{http_code}" -H "X-Auth-Token: $LABWRIGHT_RUN_TOKEN" "$LABWRIGHT_SERVER_URL/runs"'
    )
    made = lab.wait_for_end(lab.submit(script)["id"])
    assert lab.output(made["id"]) == "201 403"


def test_actor_is_recorded(lab: LiveServer) -> None:
    made = lab.call("POST", "/runs", {"command": "true"}, token=token_of(lab, Scope.AGENT, "session-7")).json
    assert made["created_by"] == "agent:session-7"
    assert lab.get(f"/events?run_id={made['id']}")[0]["actor"] == "agent:session-7"


def forged(lab: LiveServer) -> dict[str, str]:
    viewer = token_of(lab, Scope.VIEWER)
    body, _, signature = viewer.rpartition(".")
    kind, subject, expires = body.split(".")
    return {
        "expired": token_of(lab, Scope.AGENT, ttl=-1),
        "another secret": mint("lw_" + "x" * 43, Scope.AGENT, "x", 60),
        "another scope": f"lwa.{subject}.{expires}.{signature}",
        "a later end": f"{kind}.{subject}.{int(expires) + 999}.{signature}",
        "no end": f"{kind}.{subject}..{signature}",
        "no signature": f"{body}.",
        "half a signature": viewer[:-4],
        "more parts": f"x.{viewer}",
        "a scope that is none": f"lwp.{subject}.{expires}.{signature}",
        "dots": "....",
        "the beginning of the secret": lab.token[:-1],
        "more than the secret": lab.token + "x",
        "upper case": lab.token.upper() if lab.token != lab.token.upper() else "X",
        "endless": "x" * 20_000,
        "no ASCII": "\u00fc\u00ff",
        "blank": " ",
    }


def test_forged_token_is_refused(lab: LiveServer) -> None:
    for name, token in forged(lab).items():
        answer = lab.call("GET", "/runs", token=None, headers={"X-Auth-Token": token})
        assert answer.status in (400, 401, 431), (name, answer.status)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {token}",
        "{token}",
        "Bearer{token}",
        "Token {token}",
        "Bearer x {token}",
        "Bearer {token}, Bearer x",
        "Bearer\t{token}x",
    ],
)
def test_odd_authorization_header_is_refused(lab: LiveServer, value: str) -> None:
    sent = {"Authorization": value.format(token=lab.token)}
    assert lab.call("GET", "/runs", token=None, headers=sent).status == 401


@pytest.mark.parametrize("value", ["Bearer {token}", "bearer {token}", "BEARER   {token}"])
def test_bearer_token_is_accepted(lab: LiveServer, value: str) -> None:
    sent = {"Authorization": value.format(token=lab.token)}
    assert lab.call("GET", "/runs", token=None, headers=sent).status == 200


@pytest.mark.parametrize("place", ["/runs?token={}", "/runs?auth_token={}", "/runs?X-Auth-Token={}"])
def test_token_in_the_address_is_ignored(lab: LiveServer, place: str) -> None:
    assert lab.call("GET", place.format(lab.token), token=None).status == 401
    cookie = {"Cookie": f"token={lab.token}; X-Auth-Token={lab.token}"}
    assert lab.call("GET", "/runs", token=None, headers=cookie).status == 401


def test_new_secret_revokes_every_token(lab: LiveServer, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    server = LiveServer(project).start()
    old, derived = server.token, token_of(server, Scope.AGENT)
    server.kill()
    (server.state / "token").unlink()
    server.start()
    try:
        assert server.token != old
        for token in (old, derived):
            assert server.call("GET", "/runs", token=token).status == 401
    finally:
        server.stop()


def test_empty_token_file_does_not_grant_access(tmp_path: Path) -> None:
    """A full disk may leave an empty file. With an empty secret, everybody could make valid tokens."""
    project = tmp_path / "project"
    (project / ".labwright").mkdir(parents=True)
    (project / ".labwright" / "token").write_text("\n")
    server = LiveServer(project)
    try:
        server.start()
    except AssertionError as error:
        assert "token" in str(error)
    else:
        assert server.call("GET", "/runs", token=None).status == 401
    finally:
        server.stop()


def test_token_is_not_in_process_list_log_records_or_database(lab: LiveServer) -> None:
    secret = "hf_do_not_write_this_down"
    made = lab.submit("env > /dev/null; sleep 300", env={"HF_TOKEN": secret})
    lab.wait_for_status(made["id"], "running")
    lab.call("GET", f"/runs?token={lab.token}", token="wrong")
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    run_token = re.search(rb"LABWRIGHT_RUN_TOKEN=([^\0]+)", _environ_of(lab, made["id"]))
    assert run_token
    for needle in (lab.token, secret, run_token[1].decode()):
        assert needle not in processes
        for path in _files(lab.state):
            if path != lab.state / "token":
                assert needle.encode() not in path.read_bytes(), path
    assert secret.encode() in _environ_of(lab, made["id"])
    lab.post(f"/runs/{made['id']}/stop")
    lab.wait_for_end(made["id"])


def _environ_of(lab: LiveServer, run_id: str) -> bytes:
    return Path(f"/proc/{lab.run(run_id)['pid']}/environ").read_bytes()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_only_the_owner_can_read_the_state(lab: LiveServer) -> None:
    assert lab.state.stat().st_mode & 0o777 == 0o700
    for name in ("token", "server.json", "labwright.db", "labwright.db-wal", "journal.jsonl"):
        assert (lab.state / name).stat().st_mode & 0o077 == 0, name
    assert (lab.state / ".gitignore").read_text() == "*\n"
    assert "token" not in json.loads((lab.state / "server.json").read_text())
