"""A Labwright server as a user has it: its own process, its own project folder, real HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import wait_until
from tests.support.warm import WarmProcess, can_be_warm, warm_server

SERVER = [sys.executable, "-m", "labwright.server"]
ENDED = {"finished", "failed", "stopped", "lost"}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class LiveServer:
    """Start, kill and restart a server; call it; wait for its runs."""

    start_seconds = 60.0  # how long the server may take to start

    def __init__(self, project: Path, **environment: str) -> None:
        self.project = project
        self.state = project / ".labwright"
        self.environment = {
            **os.environ,
            "LABWRIGHT_PORT": "0",
            "LABWRIGHT_LEASE_DIR": str(project.parent / f"{project.name}-leases"),
            "LABWRIGHT_TMUX": "0",
            **environment,
        }
        self.command = [*SERVER, "--project", str(project)]
        self.process: subprocess.Popen[bytes] | WarmProcess | None = None
        self.url = ""

    def start(self, *, cold: bool = False) -> LiveServer:
        """Start the server. `cold` starts it by its command, which takes seven times as long."""
        (self.state / "server.json").unlink(missing_ok=True)
        usual = self.command[: len(SERVER)] == SERVER and can_be_warm(self.environment)
        self.process = self._start_by_command() if cold or not usual else self._forked()
        try:
            wait_until(self._is_up, "the server to come up", self.start_seconds)
        except AssertionError:
            self.kill()  # the failed process would outlive the test
            raise
        return self

    def _forked(self) -> WarmProcess:
        return warm_server(self.command[len(SERVER) :], self.environment)

    def _start_by_command(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _is_up(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            assert self.process.stderr is not None
            raise AssertionError(f"the server ended: {self.process.stderr.read().decode()}")
        try:
            self.url = json.loads((self.state / "server.json").read_text())["url"]
            return self.call("GET", "/health").status == 200
        except (FileNotFoundError, ConnectionError):
            return False

    @property
    def token(self) -> str:
        return (self.state / "token").read_text().strip()

    def kill(self) -> None:
        """Kill the server, as a crash does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close_pipe()

    def stop(self) -> None:
        """Stop the server, as `labwright down` does."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self.process is not None and self.process.stderr is not None:
            self.process.stderr.close()

    def restart(self) -> LiveServer:
        self.kill()
        return self.start()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request. The default token is the person's; `token=None` sends none."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        sent = dict(headers or {})
        if token is not None and path not in ("/health",):
            sent.setdefault("X-Auth-Token", token or self.token)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.call("POST", path, body)
        assert answer.status in (200, 201), answer.body
        return answer.json

    def submit(self, command: str, **fields: Any) -> dict[str, Any]:
        run: dict[str, Any] = self.post("/runs", {"command": command, "auto_start": True, **fields})
        return run

    def say(self, session_id: str, message: str) -> None:
        """Send a message and wait until the turn is idle: it has ended or waits for an approval."""
        before = self.get(f"/sessions/{session_id}")["turn"]
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        body = json.dumps({"session_id": session_id, "message": message})
        connection.request("POST", "/chat", body, {"X-Auth-Token": self.token, "Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()  # the stream would stay open while an approval is pending

        def is_idle() -> bool:
            found = self.get(f"/sessions/{session_id}")
            return bool(found["turn"] > before and found["status"] != "working")

        wait_until(is_idle, f"an answer to {message!r}")

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/runs/{run_id}")
        return found

    def wait_for_status(self, run_id: str, *statuses: str, timeout: float = 60.0) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            run = self.run(run_id)
            assert run["status"] in statuses or run["status"] not in ENDED, run
            return run if run["status"] in statuses else None

        return wait_until(reached, f"{run_id} to be {statuses}", timeout)

    def wait_for_end(self, run_id: str, timeout: float = 60.0) -> dict[str, Any]:
        return self.wait_for_status(run_id, *ENDED, timeout=timeout)

    def output(self, run_id: str) -> str:
        """Return the output so far, or nothing if none was written yet."""
        path = self.state / "runs" / run_id / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def all_runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            answer = self.call("GET", f"/runs?limit=1000&archived=all{cursor}")
            found += answer.json
            following = answer.headers.get("x-next-cursor")
            if not following:
                return found
            cursor = f"&cursor={following}"
