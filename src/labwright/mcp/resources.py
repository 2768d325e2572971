"""Runs, their logs and plans, as things that an assistant can be pointed to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from labwright.client.lab import LabClient
from labwright.domain.errors import LabwrightError
from labwright.mcp.bounds import bounded_json, bounded_text
from labwright.mcp.tools.briefly import Json, run_briefly, run_in_full
from labwright.mcp.tools.results import log_tail

_JSON, _MARKDOWN, _TEXT = "application/json", "text/markdown", "text/plain"
_NEWEST = 50
Reach = Callable[[], LabClient]


def add_resources(server: MCPServer[Any], reach: Reach) -> None:
    @server.resource("labwright://runs", title="Runs", description="The newest runs.", mime_type=_JSON)
    def list_of_runs() -> str:
        return _asked(reach, lambda lab: bounded_json([run_briefly(run) for run in lab.runs(_NEWEST)]))

    @server.resource("labwright://runs/{run_id}", title="Run", description="One run in full.", mime_type=_JSON)
    def one_run(run_id: str) -> str:
        return _asked(reach, lambda lab: bounded_json(run_in_full(lab.run(run_id))))

    @server.resource(
        "labwright://runs/{run_id}/logs",
        title="Log",
        description="How a run ended, and its last output.",
        mime_type=_TEXT,
    )
    def log_of_run(run_id: str) -> str:
        return _asked(reach, lambda lab: bounded_text(_log(lab, run_id)))

    @server.resource("labwright://plans", title="Plans", description="All but the archived ones.", mime_type=_JSON)
    def list_of_plans() -> str:
        return _asked(reach, lambda lab: bounded_json(lab.plans(limit=_NEWEST)))

    @server.resource(
        "labwright://plans/{plan_id}", title="Plan", description="A plan as it was saved.", mime_type=_MARKDOWN
    )
    def one_plan(plan_id: str) -> str:
        return _asked(reach, lambda lab: bounded_text(str(lab.plan(plan_id)["raw_markdown"])))


def _log(lab: LabClient, run_id: str) -> str:
    run: Json = lab.run(run_id)
    digest = lab.log_digest(run["id"])
    head = f"{run['id']} {digest['status']} {digest['status_reason']}".rstrip()
    error = f"\nfirst error:\n{digest['first_error']}\n" if digest["first_error"] else ""
    return f"{head}\n{error}\noutput:\n{log_tail(lab, run['id'], length=10_000)['content']}"


def _asked(reach: Reach, ask: Callable[[LabClient], str]) -> str:
    try:
        return ask(reach())
    except LabwrightError as error:
        kind = ResourceNotFoundError if error.code == "not_found" else ResourceError
        raise kind(" ".join(filter(None, (error.message, error.hint)))) from error
