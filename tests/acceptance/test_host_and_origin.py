"""Which callers are allowed, whatever their token: host names, ports, other pages, proxies."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from tests.support.live_server import LiveServer


def ask(lab: LiveServer, *lines: str, path: str = "/runs") -> int:
    """Send a request with exactly these header lines."""
    address = urlsplit(lab.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        head = [f"GET {path} HTTP/1.1", f"X-Auth-Token: {lab.token}", "Connection: close", *lines, "", ""]
        connection.sendall("\r\n".join(head).encode("latin-1"))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()
        return answer.status


def port(lab: LiveServer) -> int:
    return urlsplit(lab.url).port or 0


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "127.0.0.1:1",
        "localhost:65535",
        "[::1]",
        "[::1]:80",
        "127.1.2.3",
        "lab.localhost:5",
    ],
)
def test_any_loopback_name_and_port_is_accepted(lab: LiveServer, host: str) -> None:
    """A tunnel may show the server at another port."""
    assert ask(lab, f"Host: {host}") == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1:{port}@evil.example",
        "user:pass@localhost",
        "localhost#.evil.example",
        "localhost/.evil.example",
        "localhost\\.evil.example",
        "localhost, evil.example",
        "localhost evil.example",
        "notlocalhost",
        "xlocalhost",
        "localhost:",
        "localhost:port",
        "localhost:999999",
        "10.0.0.1",
        "0.0.0.0",
        "[::]",
        "[fe80::1]",
        "2130706433",
        "0x7f.1",
        "169.254.169.254",
        "",
    ],
)
def test_foreign_host_is_refused_whatever_its_token(lab: LiveServer, host: str) -> None:
    """A foreign name that resolves to 127.0.0.1 turns a browser into a caller: DNS rebinding."""
    host = host.format(port=port(lab))
    for path in ("/runs", "/health", "/docs"):
        assert ask(lab, f"Host: {host}", path=path) in (400, 403), (host, path)


def test_two_hosts_or_none_are_refused(lab: LiveServer) -> None:
    assert ask(lab) in (400, 403)
    assert ask(lab, "Host: evil.example", "Host: localhost") in (400, 403)
    assert ask(lab, "Host: localhost", "Host: evil.example") in (400, 403)


def test_forwarded_headers_change_nothing(lab: LiveServer) -> None:
    assert ask(lab, "Host: evil.example", "X-Forwarded-Host: localhost") == 403
    assert ask(lab, "Host: localhost", "X-Forwarded-Host: evil.example", "X-Forwarded-For: 1.2.3.4") == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://localhost",
        "http://localhost:{port}.evil.example",
        "http://127.0.0.1:1",
        "http://user@127.0.0.1:{port}",
        "https://evil.example:{port}",
        "file://",
        "chrome-extension://abc",
        "127.0.0.1:{port}",
        "HTTP://127.0.0.1:{port}/",
    ],
)
def test_page_of_another_origin_is_refused(lab: LiveServer, origin: str) -> None:
    origin = origin.format(port=port(lab))
    for path in ("/runs", "/health"):
        assert ask(lab, f"Host: 127.0.0.1:{port(lab)}", f"Origin: {origin}", path=path) == 403


def test_own_page_may_call_and_no_other_gets_cors_headers(lab: LiveServer) -> None:
    own = f"http://127.0.0.1:{port(lab)}"
    assert ask(lab, f"Host: 127.0.0.1:{port(lab)}", f"Origin: {own}") == 200
    for method in ("GET", "OPTIONS"):
        asked = {"Origin": own, "Access-Control-Request-Method": "POST"}
        headers = {name.lower() for name in lab.call(method, "/runs", headers=asked).headers}
        assert not {name for name in headers if name.startswith("access-control")}
