"""One stored stream of events, resumable by position, plus hints that are not stored."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from labwright.domain.actor import Scope
from labwright.tokens import has_expired, mint
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("events") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="2", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    server.stop()


class Stream:
    """A client of server-sent events."""

    def __init__(
        self, server: LiveServer, path: str = "/events/stream", last: str | None = None, token: str = ""
    ) -> None:
        address = urlsplit(server.url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        headers = {"X-Auth-Token": token or server.token, **({"Last-Event-ID": last} if last else {})}
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.last = last

    def close(self) -> None:
        self._connection.close()

    def next(self) -> tuple[str, Any]:
        """Return the next message. Raises when the connection ends."""
        kind, data = "", ""
        while True:
            line = self._answer.readline().decode()
            if not line:
                raise ConnectionError("the stream ended")
            if line == "\n" and data:
                return kind, json.loads(data)
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif name == "id":
                self.last = value

    def until(self, wanted: Callable[[str, Any], bool]) -> list[tuple[str, Any]]:
        seen = []
        while True:
            seen.append(self.next())
            if wanted(*seen[-1]):
                return seen


def all_events(server: LiveServer, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := server.get(f"/events?after={found[-1]['seq'] if found else 0}&limit=50{query}"):
        found += page
    return found


def test_run_emits_its_whole_life_in_order(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("exit 3", name="story")["id"])
    told = lab.get(f"/events?run_id={run['id']}")
    moves = [(event["data"]["from"], event["data"]["to"]) for event in told if event["type"] == "run.status"]
    assert moves == [("queued", "launching"), ("launching", "running"), ("running", "failed")]
    assert (told[0]["type"], told[0]["actor"], told[0]["data"]["name"]) == ("run.created", "person", "story")
    assert told[-1]["data"]["exit_code"] == 3
    assert {event["actor"] for event in told[1:]} == {"system"}


def test_numbers_have_no_gap_and_times_never_decrease(lab: LiveServer) -> None:
    for _ in range(5):
        lab.wait_for_end(lab.submit("true")["id"])
        lab.call("POST", "/runs", {"command": "true", "sweep_id": "sweep-zzzzzzzzzz"})
    told = all_events(lab)
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert [event["time"] for event in told] == sorted(event["time"] for event in told)
    assert len({event["epoch"] for event in told}) == 1


def test_every_change_has_its_event_and_every_event_its_change(lab: LiveServer) -> None:
    """Replaying the stream gives the same state as the list."""
    sweep = lab.post("/sweeps/wild", {"name": "replay"})["id"]
    for command in ("true", "false", "sleep 300"):
        lab.submit(command, sweep_id=sweep)
    stopped = lab.get(f"/runs?sweep_id={sweep}")[0]["id"]
    lab.post(f"/runs/{stopped}/stop")
    for run in lab.get(f"/runs?sweep_id={sweep}"):
        lab.wait_for_end(run["id"])
    replayed: dict[str, str] = {}
    for event in all_events(lab):
        if event["type"] == "run.created" and event["sweep_id"] == sweep:
            replayed[event["run_id"]] = event["data"]["status"]
        elif event["type"] == "run.status" and event["run_id"] in replayed:
            assert replayed[event["run_id"]] == event["data"]["from"]
            replayed[event["run_id"]] = event["data"]["to"]
    assert replayed == {run["id"]: run["status"] for run in lab.get(f"/runs?sweep_id={sweep}")}


def test_events_can_be_filtered_by_type_and_position(lab: LiveServer) -> None:
    lab.wait_for_end(lab.submit("true")["id"])
    created = all_events(lab, "&types=run.created")
    assert {event["type"] for event in created} == {"run.created"}
    assert created == [event for event in all_events(lab) if event["type"] == "run.created"]
    newest = all_events(lab)[-1]["seq"]
    assert lab.get(f"/events?after={newest}") == []
    assert [event["seq"] for event in lab.get(f"/events?after={newest - 2}")] == [newest - 1, newest]


def test_rare_type_is_found_behind_many_others(lab: LiveServer) -> None:
    """A page is filled with matching events, so that an empty page means the end."""
    run = lab.post("/runs", {"command": "true"})["id"]
    for number in range(30):
        lab.call("PATCH", f"/runs/{run}", {"priority": number + 1})
    lab.post(f"/runs/{run}/alerts", {"message": "rare"})
    start = lab.get(f"/events?run_id={run}")[0]["seq"]
    found = lab.get(f"/events?after={start}&types=alert.raised&limit=2")
    assert [event["run_id"] for event in found] == [run]


def test_new_client_gets_events_from_now_on(lab: LiveServer) -> None:
    with closing(Stream(lab)) as stream:
        kind, hello = stream.next()
        assert (kind, hello["seq"]) == ("hello", all_events(lab)[-1]["seq"])
        run = lab.submit("true")["id"]
        seen = stream.until(lambda _, data: data.get("data", {}).get("to") == "finished")
        events = [data for kind, data in seen if kind != "hint"]
        assert [event["seq"] for event in events] == list(range(hello["seq"] + 1, hello["seq"] + 1 + len(events)))
        assert {event["run_id"] for event in events} == {run}
        assert stream.last == f"{hello['epoch']}:{events[-1]['seq']}"


@pytest.mark.parametrize("path", ["/events/stream", "/runs/{run}/logs/stream", "/sessions/{session}/stream"])
def test_stream_ends_when_its_token_expires(path: str, lab: LiveServer) -> None:
    gate = lab.project / f"gate-{path.count('/')}"
    run = lab.submit(f"until [ -e {gate.name} ]; do sleep 0.05; done; echo said")["id"]
    session = lab.post("/sessions", {})["id"]
    token = mint(lab.token, Scope.VIEWER, "somebody", ttl_seconds=2)
    with closing(Stream(lab, path.format(run=run, session=session), token=token)) as stream:
        wait_until(lambda: has_expired(token), "its end")
        gate.touch()
        lab.wait_for_end(run)
        lab.say(session, "gpus")
        seen = []
        with pytest.raises(ConnectionError):
            stream.until(lambda kind, data: seen.append((kind, data)))  # type: ignore[func-returns-value]
    assert not [told for told in seen if "said" in str(told) or "finished" in str(told) or "gpus" in str(told)]


def test_nothing_is_lost_or_repeated_across_disconnects_and_a_crash(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2").start()
    seen: list[int] = []
    last: str | None = None

    def follow(path: str, count: int) -> None:
        nonlocal last
        with closing(Stream(server, path, last)) as stream:
            assert stream.next()[0] == "hello"
            for _ in range(count):
                seen.append(stream.until(lambda kind, _: kind != "hint")[-1][1]["seq"])
            last = stream.last

    for _ in range(3):
        server.submit("true")
    follow("/events/stream?after=0", 5)
    follow("/events/stream", 3)
    server.kill()
    server.start()
    for run in server.all_runs():
        server.wait_for_end(run["id"])
    newest = all_events(server)[-1]["seq"]
    follow("/events/stream", newest - len(seen))
    assert seen == list(range(1, newest + 1))


def test_client_learns_that_the_database_was_replaced(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    server.wait_for_end(server.submit("true")["id"])
    with closing(Stream(server, "/events/stream?after=0")) as stream:
        stream.until(lambda _, data: data.get("data", {}).get("to") == "finished")
        last = stream.last
    server.kill()
    for path in server.state.glob("labwright.db*"):
        path.unlink()
    server.start()
    with closing(Stream(server, last=last)) as stream:
        kind, told = stream.next()
        assert kind == "reset"
        assert told["epoch"] != (last or "").partition(":")[0]


def test_client_can_subscribe_to_one_run_or_some_types(lab: LiveServer) -> None:
    other, wanted = (lab.post("/runs", {"command": "true"})["id"] for _ in range(2))
    with closing(Stream(lab, f"/events/stream?run_id={wanted}&types=run.status&topics=events")) as stream:
        stream.next()
        for run in (other, wanted):
            lab.post(f"/runs/{run}/start")
        seen = stream.until(lambda _, data: data["data"]["to"] == "finished")
    assert {(kind, data["run_id"]) for kind, data in seen} == {("run.status", wanted)}


def test_growing_output_gives_hints_that_are_not_stored(lab: LiveServer) -> None:
    with closing(Stream(lab, "/events/stream?topics=hints")) as stream:
        stream.next()
        run = lab.submit("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done")["id"]
        kind, data = stream.next()
        assert (kind, data) == ("hint", {"topic": "output", "run_id": run})
    lab.wait_for_end(run)
    assert not [event for event in all_events(lab) if "output" in event["type"]]


def test_fifty_clients_get_the_same_events(lab: LiveServer) -> None:
    streams = [Stream(lab, "/events/stream?topics=events") for _ in range(50)]
    try:
        for stream in streams:
            stream.next()
        run = lab.submit("true")["id"]
        heard = [
            [data["seq"] for _, data in stream.until(lambda _, data: data["data"].get("to") == "finished")]
            for stream in streams
        ]
        assert all(one == heard[0] for one in heard)
        assert lab.run(run)["status"] == "finished"
    finally:
        for stream in streams:
            stream.close()


def test_client_that_does_not_read_delays_nobody(lab: LiveServer) -> None:
    address = urlsplit(lab.url)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect((address.hostname, address.port))
    request = f"GET /events/stream?after=0 HTTP/1.1\r\nHost: {address.netloc}\r\nX-Auth-Token: {lab.token}\r\n\r\n"
    slow.sendall(request.encode())
    run = lab.post("/runs", {"command": "true", "name": "x" * 200})["id"]
    with closing(slow), closing(Stream(lab, "/events/stream?topics=events")) as quick:
        quick.next()
        for number in range(300):
            lab.call("PATCH", f"/runs/{run}", {"notes": f"{number}" * 50})
        seen = [quick.next()[1]["seq"] for _ in range(300)]
        assert seen == list(range(seen[0], seen[0] + 300))
        assert lab.wait_for_end(lab.submit("true")["id"])["status"] == "finished"


def test_disconnected_clients_leave_nothing_behind(lab: LiveServer) -> None:
    assert lab.process is not None
    before = _open_files(lab.process.pid)
    for _ in range(30):
        stream = Stream(lab)
        stream.next()
        stream.close()
    lab.post("/runs", {"command": "true"})
    wait_until(lambda: _open_files(lab.process.pid) <= before + 5, "the connections to be closed")  # type: ignore[union-attr]


def _open_files(pid: int) -> int:
    from pathlib import Path

    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_server_stops_in_time_with_clients_connected(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    stream = Stream(server)
    stream.next()
    ended = threading.Event()

    def read_to_the_end() -> None:
        try:
            stream.until(lambda *_: False)
        except (ConnectionError, http.client.HTTPException, OSError):
            ended.set()

    reader = threading.Thread(target=read_to_the_end)
    reader.start()
    assert server.process is not None
    server.process.terminate()
    assert server.process.wait(timeout=60) == 0
    reader.join(timeout=60)
    assert ended.is_set()
    stream.close()
