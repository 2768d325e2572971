"""A fresh Labwright server in a small project of its own, and the ways to talk to it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.work_folder import new_folder
from labwright.client.connection import Connection
from labwright.client.follow import frames
from labwright.paths import ProjectPaths
from tests.support.live_server import LiveServer

_SILENCE_SECONDS = 60.0


@contextmanager
def fresh_server(database: Path | None = None, **settings: str) -> Iterator[LiveServer]:
    """A real process over an empty database, or over a copy of a filled one."""
    project = new_folder("server") / "project"
    _make_project(project)
    if database:
        target = ProjectPaths(project).database
        target.parent.mkdir(mode=0o700)
        shutil.copyfile(database, target)
    server = LiveServer(project, **settings).start(cold=True)
    try:
        yield server
    finally:
        server.stop()


def _make_project(project: Path) -> None:
    """A git repository with twenty files, so that each submit looks for changed code as it does for a user."""
    (project / "package").mkdir(parents=True)
    for number in range(20):
        (project / "package" / f"module_{number}.py").write_text(f"VALUE = {number}\n" * 50)
    git = ["git", "-C", str(project), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a small project"]):
        subprocess.run([*git, *arguments], check=True)


@contextmanager
def connected(server: LiveServer) -> Iterator[Connection]:
    """One kept-alive connection."""
    connection = Connection(server.url, server.token)
    try:
        yield connection
    finally:
        connection.close()


def submit(connection: Connection, command: str = "true", *, start: bool = True) -> str:
    answer = connection.request("POST", "/runs", {"command": command, "auto_start": start})
    return str(answer.json["id"])


@contextmanager
def event_stream(connection: Connection) -> Iterator[Iterator[dict[str, Any]]]:
    """Changes of status as they happen; open, and known to be, before this returns."""
    query = {"topics": "events", "types": "run.status"}
    with connection.stream("/events/stream", query, lambda: _SILENCE_SECONDS) as lines:
        found = frames(lines)
        assert next(found).event == "hello"
        yield (frame.data for frame in found)


def wait_for_finished(events: Iterator[dict[str, Any]], run_ids: Iterable[str]) -> float:
    """The moment when the last of them was seen to have finished; one that ends otherwise is a mistake."""
    left = set(run_ids)
    while left:
        event = next(events)
        if event["run_id"] in left and "exit_code" in event["data"]:
            assert event["data"]["to"] == "finished", event
            left.discard(event["run_id"])
    return time.perf_counter()


def processor_seconds(server: LiveServer) -> float:
    """Of the server process alone; it hardly depends on what else the machine does."""
    assert server.process is not None
    times = psutil.Process(server.process.pid).cpu_times()
    return times.user + times.system


def milliseconds_of(connection: Connection, path: str) -> float:
    """How long one GET takes, its body read and not parsed."""
    began = time.perf_counter()
    connection.request("GET", path)
    return (time.perf_counter() - began) * 1e3
