"""HTTP requests over one kept-alive connection. Errors carry the server's own message and hint."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from labwright.domain.errors import Invalid, LabwrightError, ServerUnreachable

_TIMEOUT_SECONDS = 60.0
_IDLE_SECONDS = 2.0  # the server closes connections that were idle for 5
_BLOCK = 1 << 16
# A silent server may be alive, and then a second one would not start.
_HINT_AFTER_SILENCE = "Try again. If that does not help, run labwright doctor on the server's machine."
_FAILURES = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class _OnePacket(http.client.HTTPConnection):
    """Sends head and body of a request together; sent separately, each would wake the server."""

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        super().request(*args, **kwargs)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


class Connection:
    def __init__(self, url: str, token: str, patience: float | None = None) -> None:
        self.url = url
        self._token = token
        self._patience = patience or _TIMEOUT_SECONDS  # seconds to wait for a response
        self._kept: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request. It is sent again on a new connection only if that is idempotent."""
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()
        may_retry = self._kept is not None and (method == "GET" or "Idempotency-Key" in (headers or {}))
        try:
            return self._send(method, path, body, query, headers)
        except _FAILURES as error:
            self.close()
            if not may_retry:
                raise self._unreachable(error) from error
        return self.request(method, path, body, query, headers)

    def _send(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str] | None,
    ) -> Response:
        if self._kept is None:
            self._kept = self._open(self._patience)
        data = None if body is None else json.dumps(body).encode()
        self._kept.request(method, with_query(path, query), data, self._headers(data, headers))
        response = self._kept.getresponse()
        received = _read(response)
        self._used_at = time.monotonic()
        raise_for_error(received)
        return received

    @contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, object] | None,
        silence: Callable[[], float],
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Iterator[Iterator[bytes]]:
        """Stream the lines of a response over a separate connection. `silence` is the timeout for each line.

        A request with a body is a POST.
        """
        connection = self._open(silence())
        data = None if body is None else json.dumps(body).encode()
        method = "GET" if data is None else "POST"
        try:
            connection.request(method, with_query(path, query), data, self._headers(data, headers))
            sock = connection.sock
            response = connection.getresponse()
            if response.status != 200:
                raise_for_error(_read(response))
            yield _lines(response, lambda: sock.settimeout(silence()))
        except _FAILURES as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        return _OnePacket(address.hostname or "", address.port or 80, timeout=timeout)

    def _headers(self, data: bytes | None, headers: Mapping[str, str] | None) -> dict[str, str]:
        sent = {"X-Auth-Token": self._token, **(headers or {})} if self._token else dict(headers or {})
        return sent if data is None else {"Content-Type": "application/json", **sent}

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        reason = str(error) or type(error).__name__
        hint = _HINT_AFTER_SILENCE if isinstance(error, TimeoutError) else None
        return ServerUnreachable(f"The Labwright server at {self.url} does not answer: {reason}.", hint=hint)


def _lines(response: http.client.HTTPResponse, before_each: Callable[[], None]) -> Iterator[bytes]:
    """Yield lines. `read1` fails if a response was cut off; `readline` would take that for the end."""
    rest = b""
    while True:
        before_each()
        block = response.read1(_BLOCK)
        if not block:
            break
        *whole, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def with_query(path: str, query: Mapping[str, object] | None) -> str:
    """Add the query to the path. A list repeats its name."""
    given = {name: _as_text(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _as_text(value: object) -> str | list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(response: http.client.HTTPResponse) -> Response:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(status=response.status, headers=headers, body=response.read())


def raise_for_error(response: Response) -> None:
    if response.status < 400:
        return
    try:
        facts = response.json["error"]
        error = _error_of(facts)
        error.code = facts["code"]
    except (ValueError, KeyError, TypeError):
        error = LabwrightError(f"The server returned status {response.status} without an explanation.")
        error.code = f"http_{response.status}"
    raise error


def _error_of(facts: dict[str, Any]) -> LabwrightError:
    if facts.get("field"):
        faults = [(tuple(fault["field"]), fault["message"]) for fault in facts.get("faults", ())]
        return Invalid(facts["message"], hint=facts["hint"], field=tuple(facts["field"]), faults=faults)
    return LabwrightError(facts["message"], hint=facts["hint"])
