"""A waiting client waits for a slow server, and gives an ended one a moment to come back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.client import connection, follow
from labwright.client.address import locate
from labwright.client.follow import watch
from labwright.client.lab import LabClient
from labwright.domain.errors import ServerUnreachable
from labwright.domain.event import EventType
from labwright.paths import ProjectPaths
from tests.conftest import stop_all
from tests.support.live_server import LiveServer
from tests.support.planning import Json, planning_server, request_plan
from tests.support.waiting import wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    server = planning_server(tmp_path)
    yield server.start()
    stop_all(server)
    server.stop()


class Waiting:
    """A client that follows a plan as `labwright plan` does, with much shorter timeouts."""

    def __init__(self, server: LiveServer, plan_id: str, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(follow, "SILENCE_SECONDS", 1.0)
        patch.setattr(follow, "PATIENCE_SECONDS", 0.5)
        patch.setattr(connection, "_TIMEOUT_SECONDS", 1.0)
        self.event_data: list[str] = []
        self.tries = 0
        self.plan: Json | None = None
        self.failure: ServerUnreachable | None = None
        self._client = LabClient(server.project)
        self._again = self._client.reconnect
        patch.setattr(self._client, "reconnect", self._count)
        self.thread = threading.Thread(target=self._follow, args=(plan_id,))
        self.thread.start()

    def _count(self) -> None:
        self.tries += 1
        self._again()

    def _follow(self, plan_id: str) -> None:
        try:
            deadline = time.monotonic() + 120
            query: dict[str, object] = {"types": f"{EventType.PLAN_UPDATED},{EventType.PLAN_STATUS}"}
            for plan, _ in watch(
                self._client, lambda: self._client.plan(plan_id), query, self.event_data.append, deadline=deadline
            ):
                if not plan["compiling_by"]:
                    self.plan = plan
                    return
        except ServerUnreachable as error:
            self.failure = error
        finally:
            self._client.connection.close()


def test_client_waits_for_a_live_server_however_slow(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_id = request_plan(server)
    pid = _pid(server)
    os.kill(pid, signal.SIGSTOP)
    try:
        waiting = Waiting(server, plan_id, monkeypatch)
        wait_until(lambda: waiting.tries >= 3, "tries that take longer than a dead server is given")
        assert waiting.thread.is_alive() and set(waiting.event_data) == {"the server is slow to respond; waiting"}
    finally:
        os.kill(pid, signal.SIGCONT)
    waiting.thread.join(timeout=60)
    assert waiting.plan is not None and waiting.plan["planning"]["validated"], waiting.failure


def test_client_gives_up_on_an_ended_server_after_a_moment(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_id = request_plan(server)
    waiting = Waiting(server, plan_id, monkeypatch)
    server.kill()
    waiting.thread.join(timeout=60)
    server.start()
    assert waiting.failure is not None and "has ended" in waiting.failure.message
    assert waiting.event_data[-1] == "the server stopped; waiting for it to restart"


def _pid(server: LiveServer) -> int:
    return locate(ProjectPaths(server.project)).process.pid
