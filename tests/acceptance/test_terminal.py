"""The terminal over a WebSocket: for a person, from our own page, into an active run."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    BytesMessage,
    CloseConnection,
    Event,
    RejectConnection,
    Request,
    TextMessage,
)

from labwright.domain.actor import Scope
from labwright.tokens import mint
from tests.support.live_server import LiveServer


class Caller:
    """One WebSocket, as a browser opens it."""

    def __init__(self, server: LiveServer, path: str, token: str, origin: str = "", host: str = "") -> None:
        address = urlsplit(server.url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=60)
        self._connection = WSConnection(ConnectionType.CLIENT)
        headers = [(b"origin", (origin or server.url).encode())]
        protocols = ["labwright.terminal", *([f"labwright.token.{token}"] if token else [])]
        asked = Request(host=host or address.netloc, target=path, extra_headers=headers, subprotocols=protocols)
        self._socket.sendall(self._connection.send(asked))

    def events(self) -> Iterator[Event]:
        while data := self._socket.recv(65536):
            self._connection.receive_data(data)
            yield from self._connection.events()

    def type(self, keys: bytes) -> None:
        self._socket.sendall(self._connection.send(BytesMessage(keys)))

    def say(self, text: str) -> None:
        self._socket.sendall(self._connection.send(TextMessage(text)))

    def close(self) -> None:
        self._socket.close()


@contextmanager
def calling(server: LiveServer, run_id: str, token: str, **more: str) -> Iterator[Caller]:
    caller = Caller(server, f"/runs/{run_id}/terminal", token, **more)
    try:
        yield caller
    finally:
        caller.close()


def seen_until(caller: Caller, wanted: bytes) -> bytes:
    seen = b""
    for event in caller.events():
        assert not isinstance(event, CloseConnection | RejectConnection), event
        seen += event.data if isinstance(event, BytesMessage) else b""
        if wanted in seen:
            return seen
    raise AssertionError(f"the socket ended before {wanted!r}; seen: {seen!r}")


def ending(caller: Caller) -> CloseConnection | RejectConnection:
    return next(event for event in caller.events() if isinstance(event, CloseConnection | RejectConnection))


@pytest.fixture
def talking(server: LiveServer) -> str:
    run_id: str = server.submit("echo ready; read answer; echo you said $answer; sleep 300")["id"]
    server.wait_for_status(run_id, "running")
    return run_id


def test_terminal_passes_output_and_lines_and_closing_it_ends_nothing(server: LiveServer, talking: str) -> None:
    with calling(server, talking, server.token) as caller:
        seen_until(caller, b"ready")
        caller.say('{"cols": 100, "rows": 30}')
        caller.say("nonsense")
        caller.type(b"hello\n")
        seen_until(caller, b"you said hello")
    assert server.run(talking)["status"] == "running"
    server.post(f"/runs/{talking}/stop")


def test_ctrl_c_reaches_the_run_and_its_end_closes_the_terminal(server: LiveServer, talking: str) -> None:
    with calling(server, talking, server.token) as caller:
        seen_until(caller, b"ready")
        caller.type(b"\x03")
        found = ending(caller)
        assert isinstance(found, CloseConnection) and found.code == 1000
    assert server.wait_for_end(talking)["status"] == "failed"


@pytest.mark.parametrize(
    ("token", "more"),
    [("", {}), ("wrong", {}), ("own", {"origin": "http://evil.example"}), ("own", {"host": "evil.example"})],
)
def test_missing_tokens_and_foreign_pages_are_refused(
    server: LiveServer, talking: str, token: str, more: dict[str, str]
) -> None:
    with calling(server, talking, server.token if token == "own" else token, **more) as caller:
        assert isinstance(ending(caller), RejectConnection)
    server.post(f"/runs/{talking}/stop")


@pytest.mark.parametrize("scope", [Scope.AGENT, Scope.VIEWER])
def test_only_a_person_may_type_into_a_run(server: LiveServer, talking: str, scope: Scope) -> None:
    with calling(server, talking, mint(server.token, scope, "guest", 600.0)) as caller:
        found = ending(caller)
        assert isinstance(found, CloseConnection) and found.code == 4403
    server.post(f"/runs/{talking}/stop")


def test_inactive_run_has_no_terminal(server: LiveServer) -> None:
    ended = server.wait_for_end(server.submit("true")["id"])["id"]
    for run_id in (ended, "run-zzzzzzzzzz"):
        with calling(server, run_id, server.token) as caller:
            found = ending(caller)
            assert isinstance(found, CloseConnection) and found.code == 4409 and found.reason
