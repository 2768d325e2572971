"""Requests over one kept-alive connection; errors come out as the server worded them."""

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
_IDLE_SECONDS = 2.0  # the server closes what was idle for 5
_BLOCK = 1 << 16
# A silent server may well be alive, and then another one would not start.
_HINT_AFTER_SILENCE = "Try again. If it stays so, run labwright doctor on the server's machine: it says what to do."
_FAILURES = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class _OnePacket(http.client.HTTPConnection):
    """Head and body of a request leave together: sent one by one, each would wake the server."""

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
        self._patience = patience or _TIMEOUT_SECONDS  # seconds for an answer
        self._kept: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sent again on a fresh connection only where that cannot do a thing twice."""
        if time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()
        once_more = self._kept is not None and (method == "GET" or "Idempotency-Key" in (headers or {}))
        try:
            return self._send(method, path, body, query, headers)
        except _FAILURES as error:
            self.close()
            if not once_more:
                raise self._unreachable(error) from error
        return self.request(method, path, body, query, headers)

    def _send(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str] | None,
    ) -> Answer:
        if self._kept is None:
            self._kept = self._open(self._patience)
        data = None if body is None else json.dumps(body).encode()
        self._kept.request(method, with_query(path, query), data, self._headers(data, headers))
        response = self._kept.getresponse()
        answer = _read(response)
        self._used_at = time.monotonic()
        raise_for_error(answer)
        return answer

    @contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, object] | None,
        silence: Callable[[], float],
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Iterator[Iterator[bytes]]:
        """The lines of an answer that goes on, on a connection of its own; `silence` is how long each may take.

        With a body it is posted.
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
        words = str(error) or type(error).__name__
        hint = _HINT_AFTER_SILENCE if isinstance(error, TimeoutError) else None
        return ServerUnreachable(f"The Labwright server at {self.url} does not answer: {words}.", hint=hint)


def _lines(response: http.client.HTTPResponse, before_each: Callable[[], None]) -> Iterator[bytes]:
    """By `read1`, which fails where an answer was cut off; to `readline` that is an end like any other."""
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
    """A list is the same name several times."""
    given = {name: _as_text(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _as_text(value: object) -> str | list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(status=response.status, headers=headers, body=response.read())


def raise_for_error(answer: Answer) -> None:
    if answer.status < 400:
        return
    try:
        facts = answer.json["error"]
        error = _error_of(facts)
        error.code = facts["code"]
    except (ValueError, KeyError, TypeError):
        error = LabwrightError(f"The server answered with status {answer.status} and no explanation.")
        error.code = f"http_{answer.status}"
    raise error


def _error_of(facts: dict[str, Any]) -> LabwrightError:
    if facts.get("field"):
        faults = [(tuple(fault["field"]), fault["message"]) for fault in facts.get("faults", ())]
        return Invalid(facts["message"], hint=facts["hint"], field=tuple(facts["field"]), faults=faults)
    return LabwrightError(facts["message"], hint=facts["hint"])
