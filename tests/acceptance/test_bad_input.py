"""Bad input gets a 4xx response in the error format with a hint, and creates nothing."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.support.live_server import Answer, LiveServer

UNKNOWN_RUN = "run-zzzzzzzzzz"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("bad-input") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


def newest_event(server: LiveServer) -> int:
    found = server.get("/events?limit=5000")
    return int(found[-1]["seq"])


def refused(server: LiveServer, answer: Answer, *statuses: int) -> dict[str, str]:
    assert 400 <= answer.status < 500, (answer.status, answer.body[:300])
    if statuses:
        assert answer.status in statuses, (answer.status, answer.body[:300])
    error: dict[str, str] = answer.json["error"]
    assert set(error) - {"field", "faults"} == {"code", "message", "hint"}
    assert error["code"] and error["message"]
    return error


@pytest.fixture
def nothing_happens(lab: LiveServer) -> Iterator[None]:
    """Check that no event appears: no run, no sweep, no alert, no change."""
    before = newest_event(lab)
    yield
    assert newest_event(lab) == before


BAD_RUNS: dict[str, dict[str, Any]] = {
    "no command": {},
    "null command": {"command": None},
    "empty command": {"command": ""},
    "blank command": {"command": " \n\t "},
    "command is a number": {"command": 5},
    "command is a list": {"command": ["echo"]},
    "NUL in the command": {"command": "echo \0"},
    "NUL in the name": {"command": "true", "name": "a\0b"},
    "NUL in an env value": {"command": "true", "env": {"A": "\0"}},
    "NUL in an env name": {"command": "true", "env": {"A\0": "1"}},
    "= in an env name": {"command": "true", "env": {"A=B": "1"}},
    "empty env name": {"command": "true", "env": {"": "1"}},
    "env value is a number": {"command": "true", "env": {"A": 1}},
    "empty name": {"command": "true", "name": ""},
    "long name": {"command": "true", "name": "x" * 201},
    "long command": {"command": "x" * 1_000_001},
    "missing workdir": {"command": "true", "workdir": "/no/such/folder"},
    "workdir is a file": {"command": "true", "workdir": "/etc/passwd"},
    "workdir of an unknown user": {"command": "true", "workdir": "~nosuchuser/x"},
    "workdir with an endless name": {"command": "true", "workdir": "x" * 4000},
    "workdir with NUL": {"command": "true", "workdir": "/tmp\0/x"},
    "unknown sweep": {"command": "true", "sweep_id": "sweep-zzzzzzzzzz"},
    "unknown parent": {"command": "true", "parent_run_id": UNKNOWN_RUN},
    "unknown dependency": {"command": "true", "after": [UNKNOWN_RUN]},
    "path trick in a sweep id": {"command": "true", "sweep_id": "../../etc/passwd"},
    "path trick in a dependency": {"command": "true", "after": ["../x"]},
    "negative gpus": {"command": "true", "gpus": -1},
    "absurd gpus": {"command": "true", "gpus": 10**9},
    "half a gpu": {"command": "true", "gpus": 0.5},
    "zero cpus": {"command": "true", "cpus": 0},
    "negative memory": {"command": "true", "memory_mb": -1},
    "endless memory": {"command": "true", "memory_mb": 10**30},
    "zero time limit": {"command": "true", "time_limit_seconds": 0},
    "negative time limit": {"command": "true", "time_limit_seconds": -5},
    "NaN time limit": {"command": "true", "time_limit_seconds": float("nan")},
    "infinite time limit": {"command": "true", "time_limit_seconds": float("inf")},
    "NaN in params": {"command": "true", "params": {"lr": float("nan")}},
    "infinity deep in params": {"command": "true", "params": {"a": [{"b": float("-inf")}]}},
    "params too deep": {"command": "true", "params": {"a": json.loads("[" * 50 + "]" * 50)}},
    "params too large": {"command": "true", "params": {"a": "x" * 70_000}},
    "params is a list": {"command": "true", "params": []},
    "endless seed": {"command": "true", "seed": 10**40},
    "endless priority": {"command": "true", "priority": 10**10},
    "tags is a word": {"command": "true", "tags": "a"},
    "too many tags": {"command": "true", "tags": ["a"] * 101},
    "gpuwrap is a word": {"command": "true", "gpuwrap_config": "on"},
    "too few retries": {"command": "true", "gpuwrap_config": {"enabled": True, "retries": -2}},
    "no delay": {"command": "true", "gpuwrap_config": {"enabled": True, "retry_delay_seconds": 0}},
    "endless delay": {"command": "true", "gpuwrap_config": {"enabled": True, "retry_delay_seconds": 601}},
    "unknown gpuwrap field": {"command": "true", "gpuwrap_config": {"enable": True}},
    "unknown field": {"command": "true", "comand": "x"},
    "another's field": {"command": "true", "status": "finished"},
    "auto_start is a word": {"command": "true", "auto_start": "maybe"},
}


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize("case", BAD_RUNS)
def test_invalid_run_is_refused(lab: LiveServer, case: str) -> None:
    error = refused(lab, lab.call("POST", "/runs", BAD_RUNS[case]), 422, 404)
    assert error["hint"], error


RAW_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"command=true",
    "half": b'{"command": "tr',
    "a list": b"[]",
    "a word": b'"true"',
    "null": b"null",
    "no UTF-8": b'{"command": "\xff\xfe"}',
    "a NUL byte": b'{"command": "tr\0ue"}',
    "a lone surrogate in a value": b'{"command": "\\ud800"}',
    "a lone surrogate in a field's name": b'{"command": "true", "\\udfff": 1}',
    "a lone surrogate in an env name": b'{"command": "true", "env": {"\\ud800": "1"}}',
    "a lone surrogate in an env value": b'{"command": "true", "env": {"A": "\\ud800"}}',
    "a lone surrogate in params": b'{"command": "true", "params": {"\\ud800": "\\ud800"}}',
    "a lone surrogate in a tag": b'{"command": "true", "tags": ["\\ud800"]}',
    "a lone surrogate in a workdir": b'{"command": "true", "workdir": "/\\ud800"}',
    "a lone surrogate in an id": b'{"command": "true", "sweep_id": "\\ud800"}',
    "nested beyond sense": b'{"command": "true", "params": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "nested lists": b"[" * 200_000,
    "a number of 10,000 digits": b'{"command": "true", "seed": ' + b"9" * 10_000 + b"}",
    "a number beyond floats": b'{"command": "true", "time_limit_seconds": 1e999}',
    "the same field twice": b'{"command": "true", "command": "false"}',
    "the same field twice, deep": b'{"command": "true", "params": {"a": 1, "a": 2}}',
}


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize("case", RAW_BODIES)
def test_invalid_body_is_refused(lab: LiveServer, case: str) -> None:
    refused(lab, lab.call("POST", "/runs", RAW_BODIES[case]), 400, 422)


@pytest.mark.usefixtures("nothing_happens")
def test_broken_json_is_reported_with_line_and_column(lab: LiveServer) -> None:
    for path in ("/runs", "/runs/run-0000000000/metrics"):
        refusal = lab.call("POST", path, b'{"command": "true",\n  oops}').json["error"]
        assert refusal["message"].startswith("The body is not valid JSON: "), refusal
        assert refusal["message"].endswith("at line 2, column 3."), refusal
        assert "field" not in refusal


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "nonsense"]
)
def test_body_without_json_content_type_is_refused(lab: LiveServer, kind: str) -> None:
    """A page of another site can send these content types without a preflight request."""
    body = b'{"command": "true"}'
    answer = lab.call("POST", "/runs", body, headers={"Content-Type": kind})
    refused(lab, answer, 422)
    assert "Content-Type: application/json" in answer.json["error"]["hint"]


TEN_MB = 10 << 20


@pytest.mark.usefixtures("nothing_happens")
def test_ten_megabytes_are_refused_by_content_length(lab: LiveServer) -> None:
    address = urlsplit(lab.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        head = f"POST /runs HTTP/1.1\r\nHost: {address.netloc}\r\nX-Auth-Token: {lab.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {TEN_MB}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())  # no byte of the body is sent
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 413
        assert json.loads(answer.read())["error"]["code"] == "too_large"


@pytest.mark.usefixtures("nothing_happens")
def test_client_that_sends_ten_megabytes_before_reading_gets_the_response(lab: LiveServer) -> None:
    body = b'{"command": "' + b"x" * TEN_MB + b'"}'
    headers = {"X-Auth-Token": lab.token, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{lab.url}/runs", body, headers)  # the server asks to close the connection
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=60)
    with refusal.value as answer:
        assert answer.status == 413
        assert json.loads(answer.read())["error"]["code"] == "too_large"


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": "true", "name": ""}, "name is too short: 1 or more characters."),
        ({"command": "true", "env": {"A=B": "x"}}, "env.A=B does not match"),
        ({"command": "true", "chat_session_id": "../x"}, "chat_session_id does not match"),
        ({"command": "true", "workdir": "/etc/passwd"}, "The workdir /etc/passwd is not a folder."),
        ({"command": "true", "tags": ["t"] * 101}, "tags has too many entries: 100 at most."),
    ],
)
def test_refusal_says_what_is_wrong_with_a_text(lab: LiveServer, fields: dict[str, Any], words: str) -> None:
    answer = lab.call("POST", "/runs", fields)
    assert answer.status == 422 and answer.json["error"]["message"].startswith(words)


@pytest.mark.usefixtures("nothing_happens")
def test_ten_megabytes_in_chunks_are_refused_too(lab: LiveServer) -> None:
    address = urlsplit(lab.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    chunk = b"x" * (1 << 20)
    body = iter([b'{"command": "', *([chunk] * 10), b'"}'])
    headers = {"X-Auth-Token": lab.token, "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    try:
        connection.request("POST", "/runs", body, headers, encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.loads(answer.read())["error"]["code"] == "too_large"
    finally:
        connection.close()


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "99999999999999999999999", "\u00b2", "+5", "0x10"])
def test_invalid_content_length_is_refused(lab: LiveServer, length: str) -> None:
    address = urlsplit(lab.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        head = f"POST /runs HTTP/1.1\r\nHost: {address.netloc}\r\nX-Auth-Token: {lab.token}\r\n"
        connection.sendall(f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        assert connection.recv(4096).split(b" ")[1].startswith(b"4")


TRICKS = [
    "..",
    "../runs",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e",
    "..%5c..",
    "%00",
    "run-%00",
    "a%0ab",
    "%ff%fe",
    "x" * 5000,
    "run-" + "9" * 3000,
    quote("'; DROP TABLE runs; --"),
    quote("⁂∞"),
    "*",
    "%25",
    "-1",
]
RUN_ROUTES = [
    ("GET", "/runs/{}"),
    ("PATCH", "/runs/{}"),
    ("DELETE", "/runs/{}"),
    *(("POST", f"/runs/{{}}/{verb}") for verb in ("start", "stop", "rerun", "archive", "unarchive", "alerts")),
    *(("GET", f"/runs/{{}}/{what}") for what in ("logs", "logs/digest", "logs/stream", "diff")),
    ("GET", "/sweeps/{}"),
    ("POST", "/alerts/{}/respond"),
]
BODIES: dict[str, Any] = {"PATCH": {"name": "x"}, "alerts": {"message": "x"}, "respond": {"choice": "x"}}


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize(("method", "route"), RUN_ROUTES)
def test_malicious_ids_reach_nothing(lab: LiveServer, method: str, route: str) -> None:
    body = BODIES.get(route.rsplit("/", 1)[1], BODIES.get(method))
    for trick in [UNKNOWN_RUN, *TRICKS]:
        refused(lab, lab.call(method, route.format(trick), body), 400, 404, 405, 414)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=1001",
        "limit=999999999999999999999999",
        "limit=NaN",
        "limit=1e3",
        "limit=",
        "limit=٣٣٣٣٣",
        "archived=maybe",
        "sort=nonsense",
        "sort=record",
        "sort=seq;DROP",
        "sort=",
        "status=nonsense",
        "status=finished,nonsense",
        "status=,",
        "cursor=nonsense",
        "cursor=%00",
        "cursor=W10=",
        "cursor=" + "x" * 2001,
        "cursor=WyJcdWQ4MDAiLDFd",
        "cursor=" + "WzEsMWU0MDBd",
        "q=" + "x" * 1001,
    ],
)
def test_invalid_list_query_is_refused(lab: LiveServer, query: str) -> None:
    refused(lab, lab.call("GET", "/runs?" + quote(query, safe="=&%,;")), 422)


@pytest.mark.parametrize(
    "path",
    [
        "/events?after=-1",
        "/events?after=99999999999999999999",
        "/events?limit=0",
        "/events?types=nonsense",
        "/events/stream?types=nonsense",
        "/events/stream?topics=nonsense",
        "/events/stream?after=-5",
        "/sweeps?cursor=-1",
        "/sweeps?limit=0",
        "/alerts?status=nonsense",
        "/alerts?cursor=x",
        "/alerts?limit=99999999999999999999999999",
    ],
)
def test_other_lists_refuse_invalid_queries(lab: LiveServer, path: str) -> None:
    refused(lab, lab.call("GET", path), 422)


@pytest.mark.parametrize(
    "query",
    [
        "offset=99999999999999999999999999",
        "offset=-99999999999999999999999",
        "offset=x",
        "limit=0",
        "limit=-1",
        "limit=1048577",
        "grep=" + "x" * 1001,
    ],
)
def test_invalid_log_range_is_refused(lab: LiveServer, query: str) -> None:
    run = lab.post("/runs", {"command": "true"})
    refused(lab, lab.call("GET", f"/runs/{run['id']}/logs?{query}"), 422)


@pytest.mark.usefixtures("nothing_happens")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/sweeps/wild", {}),
        ("POST", "/sweeps/wild", {"name": ""}),
        ("POST", "/sweeps/wild", {"name": "x", "parallel": 0}),
        ("POST", "/sweeps/wild", {"name": "x", "parallel": 10**30}),
        ("POST", "/sweeps/wild", {"name": "x\0"}),
        ("POST", "/sweeps/wild", {"name": "x", "chat_session_id": "../x"}),
        ("POST", "/sweeps/wild", {"name": "x", "what": 1}),
        ("POST", "/cluster", {}),
        ("POST", "/cluster", {"type": "cloud"}),
        ("POST", "/cluster", {"type": "slurm"}),
        ("POST", "/cluster", {"type": "local_gpu"}),
        ("POST", "/cluster", {"type": "cpu_only", "max_parallel": 0}),
        ("POST", "/cluster/detect", {"preferred_type": "cloud"}),
        ("POST", "/cluster/detect", {"preferred_type": "local_gpu"}),
        ("POST", "/gc", {"dry_run": "perhaps"}),
    ],
)
def test_other_verbs_refuse_invalid_input(lab: LiveServer, method: str, path: str, body: Any) -> None:
    refused(lab, lab.call(method, path, body), 422)


@pytest.mark.parametrize("key", ["", "x" * 201])
@pytest.mark.usefixtures("nothing_happens")
def test_invalid_idempotency_key_is_refused(lab: LiveServer, key: str) -> None:
    refused(lab, lab.call("POST", "/runs", {"command": "true"}, headers={"Idempotency-Key": key}), 422)


@pytest.mark.parametrize("position", ["\u00b2", "nonsense", ":", "9" * 55, "-1", "x:99999999999999999999999"])
def test_invalid_stream_position_restarts_the_stream(lab: LiveServer, position: str) -> None:
    address = urlsplit(lab.url)
    epoch = lab.get("/events?limit=1")[0]["epoch"]
    for text in (position, f"{epoch}:{position}"):
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        connection.putrequest("GET", "/events/stream")
        connection.putheader("X-Auth-Token", lab.token)
        connection.putheader("Last-Event-ID", text.encode("latin-1"))
        connection.endheaders()
        answer = connection.getresponse()
        first = answer.readline() if answer.status == 200 else answer.read()
        assert (answer.status, first) == (200, b"event: reset\n") or answer.status == 422, (text, first)
        connection.close()


def test_unknown_routes_and_methods_use_the_error_format(lab: LiveServer) -> None:
    assert refused(lab, lab.call("GET", "/nonsense"), 404)["hint"]
    assert refused(lab, lab.call("PUT", "/runs"), 405)["code"] == "method_not_allowed"
    assert refused(lab, lab.call("DELETE", "/events"), 405)


def test_run_can_still_be_created_after_bad_input(lab: LiveServer) -> None:
    assert lab.wait_for_end(lab.submit("exit 4")["id"])["exit_code"] == 4
