"""Which tool takes the place of which call: the skills are written for assistants that call the server with curl."""

from __future__ import annotations

from collections.abc import Container

TOOL_FOR = {
    "GET /cluster": "show_cluster",
    "POST /cluster/detect": "detect_cluster",
    "GET /runs": "list_runs",
    "POST /runs": "start_run",
    "POST /runs/{run_id}/start": "start_run",  # which starts what it makes
    "GET /runs/{run_id}": "show_run",
    "GET /runs/{run_id}/logs": "grep_log",
    "GET /runs/{run_id}/logs/digest": "log_digest",
    "GET /runs/{run_id}/metrics": "show_metrics",
    "GET /metrics/compare": "compare",
    "POST /sweeps": "start_sweep",
    "POST /sweeps/wild": "create_sweep",
    "GET /alerts": "list_alerts",
    "POST /plans": "save_plan",
    "PATCH /plans/{plan_id}": "save_plan",
}


def tools_for_calls(tools: Container[str]) -> str:
    """As a table, of the tools that there are."""
    rows = [f"| `{call}` | {tool} |" for call, tool in TOOL_FOR.items() if tool in tools]
    return "\n".join(["| where a curl line calls | use the tool |", "|---|---|", *rows])
