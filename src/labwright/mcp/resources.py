"""Runs, logs and plans as MCP resources, which a user can attach to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from labwright.client.lab import LabClient
from labwright.domain.errors import LabwrightError
from labwright.mcp.bounds import bounded_json, bounded_text

_JSON, _MARKDOWN, _TEXT = "application/json", "text/markdown", "text/plain"
_NEWEST = 50
_LOG_BYTES = 10_000
Reach = Callable[[], LabClient]


def add_resources(server: MCPServer[Any], reach: Reach) -> None:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        try:
            return reach().call_tool(name, arguments)
        except LabwrightError as error:
            kind = ResourceNotFoundError if error.code == "not_found" else ResourceError
            raise kind(" ".join(filter(None, (error.message, error.hint)))) from error

    @server.resource("labwright://runs", title="Runs", description="The newest runs.", mime_type=_JSON)
    def list_of_runs() -> str:
        return bounded_json(call("list_runs", limit=_NEWEST)["runs"])

    @server.resource("labwright://runs/{run_id}", title="Run", description="One run in full.", mime_type=_JSON)
    def one_run(run_id: str) -> str:
        return bounded_json(call("get_run", run_id=run_id))

    @server.resource(
        "labwright://runs/{run_id}/logs",
        title="Log",
        description="How a run ended, and its last output.",
        mime_type=_TEXT,
    )
    def log_of_run(run_id: str) -> str:
        digest = call("digest_logs", run_id=run_id)
        head = f"{digest['run_id']} {digest['status']} {digest.get('status_reason', '')}".rstrip()
        error = f"\nfirst error:\n{digest['first_error']}\n" if "first_error" in digest else ""
        output = call("read_logs", run_id=digest["run_id"], limit=_LOG_BYTES)["content"]
        return bounded_text(f"{head}\n{error}\noutput:\n{output}")

    @server.resource("labwright://plans", title="Plans", description="All but the archived ones.", mime_type=_JSON)
    def list_of_plans() -> str:
        return bounded_json(call("list_plans", limit=_NEWEST)["plans"])

    @server.resource(
        "labwright://plans/{plan_id}", title="Plan", description="A plan as it was saved.", mime_type=_MARKDOWN
    )
    def one_plan(plan_id: str) -> str:
        return bounded_text(str(call("get_plan", plan_id=plan_id)["raw_markdown"]))
