"""Calls as conversations of earlier versions made them. A call that is still open there is made under today's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labwright.llm.chat import ToolCall

_NAMES = {
    "show_cluster": "get_cluster",
    "show_run": "get_run",
    "rerun": "rerun_run",
    "log_digest": "digest_logs",
    "grep_log": "read_logs",
    "show_metrics": "get_metrics",
    "compare": "compare_metrics",
    "sweep_results": "get_sweep_results",
    "start_sweep": "create_sweep",
    "show_plan": "get_plan",
    "save_plan": "create_plan",
    "plan_goal": "create_plan",
    "answer_alert": "respond_to_alert",
    "remember": "add_memory",
    "recall": "list_memories",
}
_ARGUMENTS = {
    "grep_log": {"pattern": "grep"},
    "compare": {"runs_or_names": "run_ids"},
    "start_sweep": {"command": "base_command", "question": "goal"},
    "create_sweep": {"question": "goal"},
    "answer_alert": {"alert": "alert_id"},
    "remember": {"note": "text"},
}


def renamed(call: ToolCall) -> ToolCall:
    """Return the call with today's name and arguments. Shorter names of ids, such as `run`, are valid today, too."""
    name = _new_name(call.name, call.arguments)
    if name == call.name:
        return call
    new = _ARGUMENTS.get(call.name, {})
    arguments = {new.get(key, key): value for key, value in call.arguments.items() if key != "verb"}
    if call.name == "start_sweep":
        arguments = _sweep_arguments(call.arguments, arguments)
    return replace(call, name=name, arguments=arguments)


def _new_name(name: str, arguments: dict[str, Any]) -> str:
    """Some old names exist today with another meaning; their arguments tell them apart."""
    if name == "start_run":
        return "create_run" if "command" in arguments else name
    if name == "create_sweep":
        return "create_wild_sweep" if "question" in arguments else name
    if name == "start_sweep":
        return "create_sweep" if "parameters" in arguments else name
    if name == "change_sweep":
        return f"{arguments.get('verb')}_sweep"
    if name == "wait_for":
        return "wait_for_sweep" if arguments.get("sweep") else "wait_for_run"
    if name == "save_plan" and arguments.get("plan"):
        return "change_plan"
    return _NAMES.get(name, name)


def _sweep_arguments(old: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """`goal` was the direction of the metric, and `gpu_hours` an argument of its own."""
    kept = {key: value for key, value in arguments.items() if key not in ("metric", "goal", "gpu_hours")}
    if old.get("question"):
        kept["goal"] = old["question"]
    if old.get("metric"):
        kept["metric"] = {"key": old["metric"], "goal": old.get("goal") or "min"}
    if old.get("gpu_hours"):
        kept["budget"] = {"gpu_hours": old["gpu_hours"]}
    return kept
