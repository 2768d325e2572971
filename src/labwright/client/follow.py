"""Follow logs, events and conversations over streams that survive a restart of the server."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from labwright.client.lab import LabClient
from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.domain.event import EventType
from labwright.domain.run import TERMINAL, RunStatus

SILENCE_SECONDS = 45.0  # the server sends something every 15 s
PATIENCE_SECONDS = 15.0  # how long a restart of the server may take
OPENED = ("hello", "reset")  # the first frame of a stream, and the one after a gap
_RETRY_SECONDS = 0.2
_THROTTLE_SECONDS = 0.2
_GONE = "the server stopped; waiting for it to restart"
_SLOW = "the server is slow to respond; waiting"

T = TypeVar("T")
Json = dict[str, Any]
Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One server-sent event."""

    event: str
    data: Any
    id: str = ""


class WaitTimedOut(LabwrightError):
    """The given time is over."""

    code = "timed_out"


def frames(lines: Iterable[bytes]) -> Iterator[Frame]:
    """Parse server-sent events. One that a broken connection cut off is dropped; the server sends it again."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\r\n")
        if not text:
            if "data" in fields:
                data = json.loads(fields["data"])
                yield Frame(event=fields.get("event", "message"), data=data, id=fields.get("id", ""))
            fields = {}
            continue
        name, _, value = text.partition(":")
        if name:  # a line that starts with a colon is only a sign of life
            fields[name] = value.removeprefix(" ")


def follow_logs(client: LabClient, run_id: str, offset: int, notice: Notice) -> Iterator[Frame]:
    """Yield `log` frames from an offset on, then `end`."""
    for frame in _resumed(client, f"/runs/{run_id}/logs/stream", {"offset": offset}, notice):
        yield frame
        if frame.event == "end":
            return


def follow_events(client: LabClient, query: dict[str, object], notice: Notice) -> Iterator[Frame]:
    """Yield events without end. The first frame is `hello`, with the position."""
    return _resumed(client, "/events/stream", {"topics": "events", **query}, notice)


def follow_turn(client: LabClient, message: Json, notice: Notice) -> Iterator[Frame]:
    """Send a message once, even over broken connections, and yield the pieces of the turn that answers it."""
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    last: Frame | None = None
    while last is None:
        try:
            with client.connection.stream("/chat", None, _silence(None), headers, message) as lines:
                for frame in frames(lines):
                    last = frame
                    yield frame
        except ServerUnreachable:
            _await_server(client, notice, None)
    if last.event != "end":
        yield from follow_session(client, last.data["session_id"], last.data["seq"], notice, last.data["turn"])


def follow_session(client: LabClient, session_id: str, after: int, notice: Notice, turn: int) -> Iterator[Frame]:
    """Yield the pieces of a conversation from a position on, until this turn or a later one has ended."""
    for frame in _resumed(client, f"/sessions/{session_id}/stream", {"after": after}, notice):
        yield frame
        if frame.event == "end" and frame.data["turn"] >= turn:
            return


def watch(
    client: LabClient,
    read: Callable[[], T],
    query: dict[str, object],
    notice: Notice,
    *,
    concerns: Callable[[Frame], bool] = lambda _: True,
    is_frequent: Callable[[Frame], bool] = lambda _: False,
    deadline: float | None = None,
) -> Iterator[tuple[T, Frame]]:
    """Yield the current state once the stream is open, and again after each event that concerns it.

    Reading only after the stream is open misses no change. Frequent events are throttled.
    """
    handled_at = 0.0
    for frame in _resumed(client, "/events/stream", {"topics": "events", **query}, notice, deadline):
        if frame.event not in OPENED:
            too_soon = time.monotonic() - handled_at < _THROTTLE_SECONDS
            if not concerns(frame) or (too_soon and is_frequent(frame)):
                continue
        yield retried(client, read, notice, deadline), frame
        handled_at = time.monotonic()


def wait_for_ends(
    client: LabClient,
    run_ids: Collection[str],
    notice: Notice,
    timeout: float | None = None,
    changed: Callable[[Json], None] | None = None,
) -> Iterator[Json]:
    """Yield each run when it has ended. `changed` is called with runs that changed and have not ended."""
    left = set(run_ids)
    deadline = None if timeout is None else time.monotonic() + timeout
    types = f"{EventType.RUN_STATUS},{EventType.RUN_DELETED}{f',{EventType.RUN_UPDATED}' if changed else ''}"
    for frame in _resumed(client, "/events/stream", {"topics": "events", "types": types}, notice, deadline):
        for run_id in sorted(_possibly_ended(frame, left)):
            run = read_run(client, run_id, notice, deadline)
            if is_ended(run):
                left.discard(run_id)
                yield run
            elif changed is not None:
                changed(run)
        if not left:
            return


def changes_until_started(client: LabClient, run_id: str, notice: Notice) -> Iterator[Json]:
    """Yield the run now and at every change, until it runs or has ended."""
    query: dict[str, object] = {"types": f"{EventType.RUN_STATUS},{EventType.RUN_UPDATED}", "run_id": run_id}
    for run, _ in watch(client, lambda: client.run(run_id), query, notice):
        yield run
        if run["status"] == RunStatus.RUNNING or is_ended(run):
            return


def read_run(client: LabClient, run_id: str, notice: Notice, deadline: float | None = None) -> Json:
    return retried(client, lambda: client.run(run_id), notice, deadline)


def retried(client: LabClient, read: Callable[[], T], notice: Notice, deadline: float | None = None) -> T:
    """Return what a read-only request returns, and repeat it if the server restarts meanwhile."""
    while True:
        try:
            return read()
        except ServerUnreachable:
            _await_server(client, notice, deadline)


def last_position(client: LabClient) -> int:
    """Return the number of the newest event."""
    with client.connection.stream("/events/stream", {"topics": "events"}, _silence(None)) as lines:
        return int(next(frames(lines)).data["seq"])


def is_ended(run: Json) -> bool:
    return RunStatus(run["status"]) in TERMINAL


def _possibly_ended(frame: Frame, left: set[str]) -> set[str]:
    if frame.event in OPENED:
        return set(left)
    if frame.event == EventType.RUN_STATUS and frame.data["data"]["to"] not in TERMINAL:
        return set()
    return left & {frame.data.get("run_id")}


def _resumed(
    client: LabClient, path: str, query: dict[str, object], notice: Notice, deadline: float | None = None
) -> Iterator[Frame]:
    """Yield the frames of one stream over as many connections as needed. It ends only with an error."""
    position = ""
    while True:
        headers = {"Last-Event-ID": position} if position else None
        try:
            with client.connection.stream(path, query, _silence(deadline), headers) as lines:
                for frame in frames(lines):
                    position = frame.id or position
                    yield frame
                    _check(deadline)
        except ServerUnreachable:
            _check(deadline)
        _await_server(client, notice, deadline)


def _silence(deadline: float | None) -> Callable[[], float]:
    """Return a function that returns the timeout for the next line."""
    if deadline is None:
        return lambda: SILENCE_SECONDS
    return lambda: max(0.01, min(SILENCE_SECONDS, deadline - time.monotonic()))


def _check(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise WaitTimedOut


def _await_server(client: LabClient, notice: Notice, deadline: float | None) -> None:
    """Wait for the server: without limit while its process lives, else for the time of a restart."""
    is_alive = client.is_server_alive()
    notice(_SLOW if is_alive else _GONE)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        _check(deadline)
        try:
            client.reconnect()
            client.health()
            return
        except ServerUnreachable:
            if is_alive and not (is_alive := client.is_server_alive()):
                notice(_GONE)
                give_up_at = time.monotonic() + PATIENCE_SECONDS
            if not is_alive and time.monotonic() > give_up_at:
                raise
        time.sleep(_RETRY_SECONDS)
