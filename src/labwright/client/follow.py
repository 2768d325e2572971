"""Following a run's output and waiting for ends, over streams that outlive a restart of the server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from labwright.client.lab import LabClient
from labwright.client.sse import Frame, frames
from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.domain.event import EventType
from labwright.domain.plan import PlanStatus
from labwright.domain.run import TERMINAL, RunStatus
from labwright.domain.sweep import ENDED as SWEEP_ENDS
from labwright.domain.sweep import SweepStatus

SILENCE_SECONDS = 45.0  # the server speaks every 15
PATIENCE_SECONDS = 15.0  # how long a server may take to come back
_RETRY_SECONDS = 0.2
_GONE = "the server went away; waiting for it to come back"

Json = dict[str, Any]
Notice = Callable[[str], None]
Answer = TypeVar("Answer")


class TimedOut(LabwrightError):
    """The time given is over."""

    code = "timed_out"


def follow_logs(client: LabClient, run_id: str, offset: int, notice: Notice) -> Iterator[Frame]:
    """`log` frames from a position on, then `end`."""
    for frame in _resumed(client, f"/runs/{run_id}/logs/stream", {"offset": offset}, notice):
        yield frame
        if frame.event == "end":
            return


def follow_events(client: LabClient, query: dict[str, object], notice: Notice) -> Iterator[Frame]:
    """For ever; the first frame is the server's `hello` with its position."""
    return _resumed(client, "/events/stream", {"topics": "events", **query}, notice)


def follow_turn(client: LabClient, said: Json, notice: Notice) -> Iterator[Frame]:
    """Say something, and the pieces of the turn that answers it. Said once, however often the connection breaks."""
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    last: Frame | None = None
    while last is None:
        try:
            with client.connection.stream("/chat", None, _silence(None), headers, said) as lines:
                for frame in frames(lines):
                    last = frame
                    yield frame
        except ServerUnreachable:
            _await_server(client, notice, None)
    if last.event != "end":
        yield from follow_session(client, last.data["session_id"], last.data["seq"], notice, last.data["turn"])


def follow_session(client: LabClient, session_id: str, after: int, notice: Notice, turn: int) -> Iterator[Frame]:
    """The pieces of a conversation from a position on, until that turn or a later one has ended."""
    for frame in _resumed(client, f"/sessions/{session_id}/stream", {"after": after}, notice):
        yield frame
        if frame.event == "end" and frame.data["turn"] >= turn:
            return


def wait_for_ends(
    client: LabClient,
    run_ids: Collection[str],
    notice: Notice,
    timeout: float | None = None,
    changed: Callable[[Json], None] | None = None,
) -> Iterator[Json]:
    """Each run once it has ended, in the order of their ends; `changed` hears of those that have not.

    Looks at them only after the stream is open.
    """
    left = set(run_ids)
    deadline = None if timeout is None else time.monotonic() + timeout
    types = f"{EventType.RUN_STATUS},{EventType.RUN_DELETED}{f',{EventType.RUN_UPDATED}' if changed else ''}"
    for frame in _resumed(client, "/events/stream", {"topics": "events", "types": types}, notice, deadline):
        for run_id in sorted(_perhaps_ended(frame, left)):
            run = look(client, run_id, notice, deadline)
            if is_ended(run):
                left.discard(run_id)
                yield run
            elif changed is not None:
                changed(run)
        if not left:
            return


def wait_for_sweep(client: LabClient, sweep_id: str, notice: Notice, timeout: float) -> Json:
    """The sweep once it has ended, or stands still until somebody decides."""
    deadline = time.monotonic() + timeout
    types = f"{EventType.SWEEP_STATUS}"
    for frame in _resumed(client, "/events/stream", {"topics": "events", "types": types}, notice, deadline):
        if frame.event in ("hello", "reset") or frame.data.get("sweep_id") == sweep_id:
            sweep = asked(client, lambda: client.sweep(sweep_id), notice, deadline)
            if sweep["status"] in {*SWEEP_ENDS, SweepStatus.PAUSED}:
                return sweep
    raise TimedOut  # a stream ends only by its deadline


def wait_for_plan(client: LabClient, plan_id: str, notice: Notice, timeout: float) -> Json:
    """The plan once nobody compiles, checks or executes it."""
    deadline = time.monotonic() + timeout
    types = f"{EventType.PLAN_UPDATED},{EventType.PLAN_STATUS},{EventType.PLAN_DELETED}"
    for frame in _resumed(client, "/events/stream", {"topics": "events", "types": types}, notice, deadline):
        if frame.event in ("hello", "reset") or frame.data["data"].get("plan_id") == plan_id:
            plan = asked(client, lambda: client.plan(plan_id), notice, deadline)
            if not plan["compiling_by"] and plan["status"] != PlanStatus.EXECUTING:
                return plan
    raise TimedOut  # a stream ends only by its deadline


def changes_until_started(client: LabClient, run_id: str, notice: Notice) -> Iterator[Json]:
    """The run as it is now, and again at every change, until it runs or has ended."""
    types = f"{EventType.RUN_STATUS},{EventType.RUN_UPDATED}"
    for _ in _resumed(client, "/events/stream", {"topics": "events", "types": types, "run_id": run_id}, notice):
        run = look(client, run_id, notice)
        yield run
        if run["status"] == RunStatus.RUNNING or is_ended(run):
            return


def look(client: LabClient, run_id: str, notice: Notice, deadline: float | None = None) -> Json:
    """The run as it is."""
    return asked(client, lambda: client.run(run_id), notice, deadline)


def asked(client: LabClient, ask: Callable[[], Answer], notice: Notice, deadline: float | None = None) -> Answer:
    """What the server answers to something that changes nothing, so it can be asked again after a restart."""
    while True:
        try:
            return ask()
        except ServerUnreachable:
            _await_server(client, notice, deadline)


def last_position(client: LabClient) -> int:
    """The number of the newest event."""
    with client.connection.stream("/events/stream", {"topics": "events"}, _silence(None)) as lines:
        return int(next(frames(lines)).data["seq"])


def is_ended(run: Json) -> bool:
    return RunStatus(run["status"]) in TERMINAL


def _perhaps_ended(frame: Frame, left: set[str]) -> set[str]:
    if frame.event in ("hello", "reset"):
        return set(left)
    if frame.event == EventType.RUN_STATUS and frame.data["data"]["to"] not in TERMINAL:
        return set()
    return left & {frame.data.get("run_id")}


def _resumed(
    client: LabClient, path: str, query: dict[str, object], notice: Notice, deadline: float | None = None
) -> Iterator[Frame]:
    """One stream made of as many connections as it takes; a server that stays away is an error in the end."""
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
    if deadline is None:
        return lambda: SILENCE_SECONDS
    return lambda: max(0.01, min(SILENCE_SECONDS, deadline - time.monotonic()))


def _check(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() >= deadline:
        raise TimedOut


def _await_server(client: LabClient, notice: Notice, deadline: float | None) -> None:
    """One that has ended may take a moment to come back; one that lives is busy, and answers when it can."""
    lives = client.is_server_alive()
    notice("the server is slow to answer; waiting for it" if lives else _GONE)
    patience = time.monotonic() + PATIENCE_SECONDS
    while True:
        _check(deadline)
        try:
            client.reconnect()
            client.health()
            return
        except ServerUnreachable:
            if lives and not (lives := client.is_server_alive()):
                notice(_GONE)
                patience = time.monotonic() + PATIENCE_SECONDS
            if not lives and time.monotonic() > patience:
                raise
        time.sleep(_RETRY_SECONDS)
