"""The HTTP API as methods. The server checks everything; nothing is decided here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from labwright.client.address import locate, read_server, read_token
from labwright.client.connection import Connection, Response
from labwright.domain.errors import LabwrightError, NotFound
from labwright.paths import ProjectPaths

Json = dict[str, Any]
_PAGE = 1000
_TEXTS_PER_PAGE = 20
_SLOW_SECONDS = 60.0


def part(text: str) -> str:
    """Quote one segment of a path. Ids with a slash are refused: they would lead to another route."""
    if not text or "/" in text or text in (".", ".."):
        raise NotFound(f"{text!r} is not an id.", hint="An id looks like run-4k2x9m1c7t.")
    return quote(text, safe="")


class LabClient:
    """A client for one project's server. It reconnects after the server restarts at another address."""

    def __init__(
        self,
        project: Path,
        token: Callable[[ProjectPaths], str] = read_token,
        patience: float | None = None,
    ) -> None:
        self.paths = ProjectPaths(project)
        self._token = token
        self._patience = patience
        self.connection = self._connect()

    def _connect(self) -> Connection:
        return Connection(locate(self.paths).url, self._token(self.paths), self._patience)

    def reconnect(self) -> None:
        self.connection.close()
        self.connection = self._connect()

    def is_server_alive(self) -> bool:
        """Return whether the server's process runs on this host."""
        server = read_server(self.paths)
        return server is not None and server.is_here and server.is_alive

    @property
    def url(self) -> str:
        return self.connection.url

    def health(self) -> Json:
        return self._get("/health")

    def whoami(self) -> Json:
        return self._get("/whoami")

    def models(self) -> Json:
        return self._get("/models")

    def has_dashboard(self) -> bool:
        """Return whether the server has the dashboard's pages. They need no token."""
        try:
            return Connection(self.url, "").request("GET", "/").status == 200
        except LabwrightError:
            return False

    def runs(self, limit: int, **filters: object) -> list[Json]:
        """Return runs, newest first, from as many pages as needed."""
        found: list[Json] = []
        cursor: str | None = None
        while len(found) < limit:
            query = {**filters, "limit": min(limit - len(found), _PAGE), "cursor": cursor}
            response = self.connection.request("GET", "/runs", query=query)
            found += response.json
            cursor = response.headers.get("x-next-cursor")
            if cursor is None:
                break
        return found

    def run(self, reference: str) -> Json:
        """Return the run with this id, start of an id, name, or `last`."""
        return self._get(f"/runs/{part(reference)}")

    def create_run(self, spec: Json) -> Json:
        return self._create("/runs", spec)

    def rerun(self, run_id: str, changes: Json) -> Json:
        return self._create(f"/runs/{part(run_id)}/rerun", changes)

    def start_run(self, run_id: str) -> Json:
        return self._post(f"/runs/{part(run_id)}/start")

    def stop_run(self, run_id: str) -> Json:
        return self._post(f"/runs/{part(run_id)}/stop")

    def archive_run(self, run_id: str) -> Json:
        return self._post(f"/runs/{part(run_id)}/archive")

    def unarchive_run(self, run_id: str) -> Json:
        return self._post(f"/runs/{part(run_id)}/unarchive")

    def delete_run(self, run_id: str) -> None:
        self.connection.request("DELETE", f"/runs/{part(run_id)}")

    def diff_run(self, run_id: str) -> Json:
        return self._get(f"/runs/{part(run_id)}/diff")

    def logs(self, run_id: str, *, offset: int, limit: int) -> Json:
        return self._get(f"/runs/{part(run_id)}/logs", offset=offset, limit=limit)

    def raw_logs(self, run_id: str, *, offset: int, limit: int) -> bytes:
        return self._request("GET", f"/runs/{run_id}/logs/raw", offset=offset, limit=limit).body

    def grep_logs(self, run_id: str, text: str) -> Json:
        return self._get(f"/runs/{part(run_id)}/logs", grep=text)

    def log_digest(self, run_id: str) -> Json:
        return self._get(f"/runs/{part(run_id)}/logs/digest")

    def metrics(self, run_id: str, keys: list[str] | None, max_points: int, x: str = "step") -> Json:
        return self._get(f"/runs/{part(run_id)}/metrics", keys=keys, max_points=max_points, x=x)

    def metric_keys(self, run_id: str) -> list[str]:
        """Return the names of all metrics. The empty key matches no series, so only names come back."""
        found: list[str] = self._get(f"/runs/{part(run_id)}/metrics", keys=[""], max_points=2)["keys"]
        return found

    def compare(self, run_ids: list[str], key: str, max_points: int, x: str = "step") -> Json:
        return self._get("/metrics/compare", run_ids=",".join(run_ids), key=key, max_points=max_points, x=x)

    def export(self, run_id: str, form: str, keys: list[str] | None, *, with_run: bool) -> Iterator[bytes]:
        """Yield lines as the server produces them."""
        query = {"format": form, "keys": keys, "with_run": with_run}
        with self.connection.stream(f"/runs/{part(run_id)}/metrics/export", query, lambda: _SLOW_SECONDS) as lines:
            yield from lines

    def import_run(self, path: str, *, outside: bool) -> tuple[Json, bool]:
        """Return the run, and whether it is new."""
        response = self.connection.request("POST", "/runs/import", {"path": path, "outside": outside})
        return response.json, response.status == 201

    def notifications(self, limit: int) -> Json:
        return self._get("/notifications", limit=limit)

    def test_notifications(self) -> list[int]:
        found: list[int] = self._post("/notifications/test")["deliveries"]
        return found

    def cluster(self) -> Json:
        return self._get("/cluster")

    def detect_cluster(self) -> Json:
        return self._post("/cluster/detect", {})

    def set_cluster(self, kind: str) -> Json:
        return self._post("/cluster", {"type": kind})

    def sweeps(self, limit: int | None = None) -> list[Json]:
        return self._newest("/sweeps", limit)

    def sweep(self, sweep_id: str) -> Json:
        return self._get(f"/sweeps/{part(sweep_id)}")

    def create_wild_sweep(self, spec: Json) -> Json:
        return self._create("/sweeps/wild", spec)

    def create_sweep(self, spec: Json) -> Json:
        return self._create("/sweeps", spec)

    def change_sweep(self, sweep_id: str, verb: str, body: Json | None = None) -> Json:
        """Send `start`, `stop`, `pause`, `resume`, `retry-failed` or `extend`."""
        return self._post(f"/sweeps/{part(sweep_id)}/{verb}", body)

    def sweep_results(self, sweep_id: str, key: str | None, goal: str | None, limit: int) -> Json:
        return self._get(f"/sweeps/{part(sweep_id)}/results", key=key, goal=goal, limit=limit)

    def export_sweep(self, sweep_id: str, form: str, key: str | None, goal: str | None) -> Iterator[bytes]:
        query = {"format": form, "key": key, "goal": goal}
        with self.connection.stream(f"/sweeps/{part(sweep_id)}/results/export", query, lambda: _SLOW_SECONDS) as lines:
            yield from lines

    def plans(self, status: str | None = None, session_id: str | None = None, limit: int | None = None) -> list[Json]:
        """Return plans without their texts, newest first. By default archived plans are left out."""
        return self._newest("/plans", limit, status=status, session_id=session_id)

    def wilds(self) -> list[Json]:
        return list(self._all("/wild"))

    def wild(self, wild_id: str) -> Json:
        return self._get(f"/wild/{part(wild_id)}")

    def start_wild(self, spec: Json) -> Json:
        return self._create("/wild/start", spec)

    def change_wild(self, wild_id: str, verb: str, body: Json | None = None) -> Json:
        """Send `stop`, `pause`, `resume` or `steer`."""
        return self._post(f"/wild/{part(wild_id)}/{verb}", body)

    def plan(self, plan_id: str) -> Json:
        return self._get(f"/plans/{part(plan_id)}")

    def create_plan(self, spec: Json) -> Json:
        return self._create("/plans", spec)

    def change_plan(self, plan_id: str, changes: Json) -> Json:
        found: Json = self.connection.request("PATCH", f"/plans/{part(plan_id)}", changes).json
        return found

    def plan_versions(self, plan_id: str) -> list[Json]:
        return list(self._all(f"/plans/{part(plan_id)}/versions", page=_TEXTS_PER_PAGE))

    def compile_plan(self, plan_id: str, spec: Json) -> Json:
        return self._post(f"/plans/{plan_id}/compile", spec)

    def validate_plan(self, plan_id: str, rehearsal: bool | None) -> Json:
        return self._post(f"/plans/{plan_id}/validate", {"rehearsal": rehearsal})

    def plan_workspace(self, plan_id: str) -> Json:
        return self._get(f"/plans/{plan_id}/workspace")

    def plan_file(self, plan_id: str, path: str) -> Json:
        return self._get(f"/plans/{plan_id}/workspace/files/{quote(path)}")

    def write_plan_file(self, plan_id: str, path: str, content: str, based_on: str) -> Json:
        body = {"content": content, "sha256": based_on}
        found: Json = self.connection.request("PUT", f"/plans/{plan_id}/workspace/files/{quote(path)}", body).json
        return found

    def review_plan(self, plan_id: str, verdict: Json) -> Json:
        return self._post(f"/plans/{plan_id}/review", verdict)

    def execute_plan(self, plan_id: str) -> Json:
        return self._post(f"/plans/{plan_id}/execute")

    def stop_plan(self, plan_id: str) -> Json:
        return self._post(f"/plans/{plan_id}/stop")

    def plan_report(self, plan_id: str) -> Json:
        return self._get(f"/plans/{plan_id}/report")

    def archive_plan(self, plan_id: str) -> Json:
        return self._post(f"/plans/{part(plan_id)}/archive")

    def delete_plan(self, plan_id: str) -> None:
        self.connection.request("DELETE", f"/plans/{part(plan_id)}")

    def render_skill(self, name: str, variables: dict[str, str], shell: str | None = None) -> Json:
        """Render a skill. `shell` says whether its commands run here (`local`) or elsewhere (`remote`)."""
        return self._post(f"/prompt-skills/{part(name)}/render", {"variables": variables, "shell": shell})

    def alerts(self, status: str | None, limit: int | None = None) -> list[Json]:
        return self._newest("/alerts", limit, status=status)

    def alert(self, alert_id: str) -> Json:
        return self._get(f"/alerts/{alert_id}")

    def answer_alert(self, alert_id: str, choice: str) -> Json:
        return self._post(f"/alerts/{part(alert_id)}/respond", {"choice": choice})

    def sessions(self) -> list[Json]:
        return list(self._all("/sessions"))

    def session(self, session_id: str) -> Json:
        return self._get(f"/sessions/{quote(session_id, safe='')}")

    def stop_session(self, session_id: str) -> Json:
        return self._post(f"/sessions/{session_id}/stop")

    def delete_session(self, session_id: str) -> None:
        self.connection.request("DELETE", f"/sessions/{session_id}")

    def pieces(self, session_id: str, after: int) -> Iterator[Json]:
        """Yield the pieces of a conversation after a position."""
        while found := self._request("GET", f"/sessions/{session_id}/pieces", after=after, limit=_PAGE).json:
            yield from found
            after = found[-1]["seq"]

    def approvals(self, status: str | None) -> list[Json]:
        return list(self._all("/approvals", status=status))

    def answer_approval(self, approval_id: str, *, approved: bool, reason: str) -> Json:
        return self._post(f"/approvals/{approval_id}/respond", {"approved": approved, "reason": reason})

    def suggestions(self, session_id: str | None, status: str | None) -> list[Json]:
        found: list[Json] = self._request("GET", "/suggestions", session_id=session_id, status=status).json
        return found

    def accept_suggestion(self, suggestion_id: str, into: str, name: str | None) -> Json:
        return self._post(f"/suggestions/{part(suggestion_id)}/accept", {"into": into, "name": name})

    def dismiss_suggestion(self, suggestion_id: str) -> Json:
        return self._post(f"/suggestions/{part(suggestion_id)}/dismiss")

    def memories(self) -> list[Json]:
        return list(self._all("/memories"))

    def add_memory(self, text: str) -> Json:
        return self._create("/memories", {"text": text})

    def accept_memory(self, memory_id: str) -> Json:
        found: Json = self.connection.request("PATCH", f"/memories/{memory_id}", {"accepted": True}).json
        return found

    def delete_memory(self, memory_id: str) -> None:
        self.connection.request("DELETE", f"/memories/{memory_id}")

    def events(self, after: int, limit: int, run_id: str | None = None) -> list[Json]:
        found: list[Json] = self._request("GET", "/events", after=after, limit=limit, run_id=run_id).json
        return found

    def tools(self) -> list[Json]:
        """Return the tools of other assistants, with their schemas."""
        found: list[Json] = self._request("GET", "/tools").json
        return found

    def call_tool(self, name: str, arguments: Json) -> Json:
        return self._create(f"/tools/{part(name)}", arguments)

    def storage(self) -> Json:
        return self._get("/storage")

    def collect_garbage(self, *, dry_run: bool) -> Json:
        return self._post("/gc", {"dry_run": dry_run})

    def backup(self) -> Json:
        return self._post("/backup")

    def _newest(self, path: str, limit: int | None, **query: object) -> list[Json]:
        """Return the newest items, or all of them without a limit."""
        return list(islice(self._all(path, page=min(limit or _PAGE, _PAGE), **query), limit))

    def _all(self, path: str, page: int = _PAGE, **query: object) -> Iterator[Json]:
        cursor: str | None = None
        while True:
            response = self._request("GET", path, **query, limit=page, cursor=cursor)
            yield from response.json
            cursor = response.headers.get("x-next-cursor")
            if cursor is None:
                return

    def _request(self, method: str, path: str, **query: object) -> Response:
        return self.connection.request(method, path, query=query)

    def _get(self, path: str, **query: object) -> Json:
        found: Json = self._request("GET", path, **query).json
        return found

    def _post(self, path: str, body: Json | None = None) -> Json:
        found: Json = self.connection.request("POST", path, body).json
        return found

    def _create(self, path: str, body: Json) -> Json:
        """Send a POST with an idempotency key, so that it can be retried after a broken connection."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        found: Json = self.connection.request("POST", path, body, headers=headers).json
        return found
