"""How a client handles responses that arrive in pieces or are cut off."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from labwright.client.connection import Connection
from labwright.domain.errors import ServerUnreachable

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Answering = Callable[[bytes], Connection]


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


@pytest.fixture
def answering() -> Iterator[Answering]:
    """A server that sends these bytes to the first client, and disconnects."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(content: bytes) -> None:
        caller, _ = listener.accept()
        with caller:
            caller.recv(65536)
            caller.sendall(HEAD + content)

    def begin(content: bytes) -> Connection:
        threading.Thread(target=answer, args=(content,), daemon=True).start()
        return Connection(f"http://127.0.0.1:{listener.getsockname()[1]}", "token")

    with listener:
        yield begin


def lines_of(connection: Connection) -> list[bytes]:
    with connection.stream("/", None, lambda: 10.0) as lines:
        return list(lines)


def test_lines_are_complete_wherever_the_pieces_end(answering: Answering) -> None:
    pieces = chunk(b"a,b\n1,") + chunk(b"2\n\n") + chunk(b"3") + chunk(b"")
    assert lines_of(answering(pieces)) == [b"a,b\n", b"1,2\n", b"\n", b"3"]


@pytest.mark.parametrize("cut", [b"", b"ff\r\n4,5", b"f"])
def test_cut_off_response_is_an_error(answering: Answering, cut: bytes) -> None:
    with pytest.raises(ServerUnreachable):
        lines_of(answering(chunk(b"a,b\n") + chunk(b"1,2\n") + cut))


def test_silent_server_is_not_reported_as_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = Connection(f"http://127.0.0.1:{silent.getsockname()[1]}", "token", patience=0.1)
        with pytest.raises(ServerUnreachable) as failure:
            connection.request("GET", "/runs")
    assert "labwright doctor" in failure.value.hint and "labwright up" not in failure.value.hint


def test_error_without_a_listener_says_to_start_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ServerUnreachable) as failure:
        Connection(f"http://127.0.0.1:{port}", "token").request("GET", "/runs")
    assert "labwright up -d" in failure.value.hint
