"""The express lane and the framework give the same responses: status, headers and text."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.support.live_server import LiveServer

EXPRESS = "application/json"
ORDINARY = "application/json; charset=utf-8"  # unusual enough to take the normal route
CHANGING = ("id", "created_at", "queued_at")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("express") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


def answer(lab: LiveServer, path: str, body: bytes, kind: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    found = lab.call("POST", path, body, headers={"Content-Type": kind, **headers})
    said = found.json
    if isinstance(said, dict):
        for name in CHANGING:
            said.pop(name, None)
    return found.status, {name: found.headers[name] for name in found.headers.keys() - {"date", "content-length"}}, said


BODIES = {
    "good": b'{"command": "true", "name": "x", "params": {"lr": 0.1}}',
    "empty command": b'{"command": " "}',
    "no command": b"{}",
    "a list": b"[]",
    "no JSON": b'{"command": ',
    "nothing": b"",
    "not UTF-8": b'{"command": "\xff"}',
    "a field twice": b'{"command": "true", "command": "false"}',
    "an unknown field": b'{"command": "true", "commnad": "x"}',
    "a NUL": b'{"command": "a\\u0000b"}',
    "an unknown sweep": b'{"command": "true", "sweep_id": "swp-0000000000"}',
    "a missing folder": b'{"command": "true", "workdir": "/not/there"}',
    "nested too deeply": b'{"command": "true", "params": ' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_new_run_gets_the_same_response_both_ways(lab: LiveServer, body: bytes) -> None:
    assert answer(lab, "/runs", body, EXPRESS) == answer(lab, "/runs", body, ORDINARY)


POINTS = {
    "good": b'{"points": [{"key": "loss", "step": 1, "value": 0.5}]}',
    "a word": b'{"points": [{"key": "loss", "step": 1, "value": "NaN"}]}',
    "a string": b'{"points": [{"key": "loss", "step": 1, "value": "high"}]}',
    "none": b'{"points": []}',
    "half a step": b'{"points": [{"key": "loss", "step": 1.5, "value": 1}]}',
    "no JSON": b'{"points": [{',
}


@pytest.mark.parametrize("body", POINTS.values(), ids=POINTS.keys())
def test_points_get_the_same_response_both_ways(lab: LiveServer, body: bytes) -> None:
    path = f"/runs/{lab.post('/runs', {'command': 'true'})['id']}/metrics"
    assert answer(lab, path, body, EXPRESS) == answer(lab, path, body, ORDINARY)


def test_points_of_an_unknown_run_get_the_same_refusal(lab: LiveServer) -> None:
    found = [answer(lab, "/runs/run-0000000000/metrics", POINTS["good"], kind) for kind in (EXPRESS, ORDINARY)]
    assert found[0] == found[1]
    assert found[0][0] == 404


@pytest.mark.parametrize("kind", [EXPRESS, ORDINARY])
def test_express_lane_has_the_same_authentication_and_permissions(lab: LiveServer, kind: str) -> None:
    run_id = lab.post("/runs", {"command": "true"})["id"]
    viewer, of_run = mint(lab.token, Scope.VIEWER, "eve"), mint(lab.token, Scope.RUN, run_id)
    assert answer(lab, "/runs", BODIES["good"], kind, **{"X-Auth-Token": "wrong"})[0] == 401
    assert answer(lab, "/runs", BODIES["good"], kind, **{"X-Auth-Token": viewer})[0] == 403
    assert answer(lab, "/runs", BODIES["good"], kind, **{"X-Auth-Token": of_run})[0] == 403
    assert answer(lab, "/runs", BODIES["good"], kind, Origin="http://elsewhere.example")[0] == 403
    assert answer(lab, "/runs", BODIES["good"], kind, Host="elsewhere.example")[0] == 403
    other = lab.post("/runs", {"command": "true"})["id"]
    assert answer(lab, f"/runs/{run_id}/metrics", POINTS["good"], kind, **{"X-Auth-Token": of_run})[0] == 202
    assert answer(lab, f"/runs/{other}/metrics", POINTS["good"], kind, **{"X-Auth-Token": of_run})[0] == 403


def test_one_key_makes_one_run_whichever_way_it_takes(lab: LiveServer) -> None:
    before = len(lab.all_runs())
    for kind in (EXPRESS, ORDINARY, EXPRESS):
        assert answer(lab, "/runs", BODIES["good"], kind, **{"Idempotency-Key": "once"})[0] == 201
    assert len(lab.all_runs()) == before + 1
    assert answer(lab, "/runs", BODIES["good"], EXPRESS, **{"Idempotency-Key": "k" * 201})[0] == 422
    assert answer(lab, "/runs", b'{"command": "false"}', EXPRESS, **{"Idempotency-Key": "once"})[0] in (409, 422)


def test_client_that_disconnects_mid_body_harms_nobody(lab: LiveServer) -> None:
    place = urlsplit(lab.url)
    head = f"POST /runs HTTP/1.1\r\nHost: {place.netloc}\r\nX-Auth-Token: {lab.token}\r\n"
    with socket.create_connection((place.hostname, place.port)) as raw:  # type: ignore[arg-type]
        raw.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{{".encode())
    assert answer(lab, "/runs", BODIES["good"], EXPRESS)[0] == 201


def a_post(lab: LiveServer) -> bytes:
    head = f"POST /runs HTTP/1.1\r\nHost: {urlsplit(lab.url).netloc}\r\nX-Auth-Token: {lab.token}\r\n"
    body = BODIES["good"].decode()
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def test_client_that_does_not_wait_for_its_response_is_not_a_server_error(lab: LiveServer) -> None:
    place, before = urlsplit(lab.url), len(lab.all_runs())
    for _ in range(60):
        raw = socket.create_connection((place.hostname, place.port))  # type: ignore[arg-type]
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets the connection
        raw.sendall(a_post(lab) * 3)
        raw.close()
    assert answer(lab, "/runs", BODIES["good"], EXPRESS)[0] == 201
    assert len(lab.all_runs()) > before
    assert "Traceback" not in (lab.state / "logs" / "server.log").read_text()


def test_short_response_comes_in_one_piece(lab: LiveServer) -> None:
    place = urlsplit(lab.url)
    with socket.create_connection((place.hostname, place.port)) as raw:  # type: ignore[arg-type]
        raw.sendall(a_post(lab))
        head_and_body = raw.recv(1 << 16)
    assert head_and_body.endswith(b"}")
