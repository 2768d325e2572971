"""One registry of tools for conversations and other assistants, with the names of HTTP operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.tools import CHAT_TOOLS, OUTSIDE_TOOLS, TOOLS, outside
from labwright.agent.tools.arguments import checked
from labwright.agent.tools.old_names import renamed
from labwright.agent.tools.tool import PLAN_REFERENCE, RUN_REFERENCE, SWEEP_REFERENCE, Tool
from labwright.cli.main import COMMANDS, load
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, Actor, Scope
from labwright.domain.errors import Forbidden, Invalid, LabwrightError, NotFound
from labwright.domain.session import Mode
from labwright.llm.chat import ToolCall
from labwright.mcp.server import packaged_tools
from labwright.planning import plans
from labwright.server.app import make_api
from labwright.services.sweeps import verbs as sweeps
from tests.support.lab import ended_run, lab_in, make_run

ALL: dict[str, Tool] = {**TOOLS, **CHAT_TOOLS[Mode.AGENT], **CHAT_TOOLS[Mode.PLAN]}
AGENT = Actor(Scope.AGENT, "mcp")
# The command that does the same as a tool. A tool without one is for assistants only.
COMMAND_OF = {
    "get_cluster": "cluster",
    "list_runs": "ps",
    "get_run": "show",
    "create_run": "run",
    "start_run": "start",
    "stop_run": "stop",
    "rerun_run": "rerun",
    "delete_run": "delete",
    "wait_for_run": "wait",
    "read_logs": "logs",
    "digest_logs": "logs",
    "get_metrics": "metrics",
    "compare_metrics": "compare",
    "list_sweeps": "sweeps",
    "get_sweep": "sweep show",
    "get_sweep_results": "sweep show",
    "create_sweep": "sweep run",
    "create_wild_sweep": "sweep new",
    "start_sweep": "sweep start",
    "stop_sweep": "sweep stop",
    "pause_sweep": "sweep pause",
    "resume_sweep": "sweep resume",
    "retry_failed_runs": "sweep retry-failed",
    "extend_sweep": "sweep extend",
    "list_wild": "wild list",
    "get_wild": "wild show",
    "start_wild": "wild new",
    "pause_wild": "wild pause",
    "resume_wild": "wild resume",
    "stop_wild": "wild stop",
    "steer_wild": "wild steer",
    "list_plans": "plan list",
    "get_plan": "plan show",
    "create_plan": "plan new",
    "change_plan": "plan edit",
    "compile_plan": "plan answer",
    "validate_plan": "plan validate",
    "execute_plan": "plan execute",
    "stop_plan": "plan stop",
    "list_alerts": "alerts",
    "respond_to_alert": "alerts answer",
    "list_memories": "memories",
    "add_memory": "memories add",
}
ONLY_TOOLS = {
    *("detect_cluster", "best_runs", "wait_for_sweep", "wait_for_plan"),
    *("list_files", "read_file", "search_files", "edit_file", "shell", "ask_user"),
}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(tmp_path / "project") as opened:
        yield opened


def operations(lab: Lab) -> dict[str, str]:
    """Return the method by name of operation."""
    found = make_api(lab).openapi()["paths"].values()
    return {
        operation["summary"].lower().replace(" ", "_"): method for path in found for method, operation in path.items()
    }


def test_tool_has_the_name_of_its_http_operation_and_the_same_access(lab: Lab) -> None:
    known = operations(lab)
    wrong = [name for name, tool in ALL.items() if tool.operation is None and name not in known]
    assert wrong == []
    twice = [name for name, tool in ALL.items() if tool.operation == "" and name in known]
    assert twice == [], "these have an operation"
    assert [name for name, tool in ALL.items() if known.get(name) == "get" and tool.writes] == []
    assert [name for name in ALL if known.get(name, "get") != "get" and not ALL[name].writes] == ["detect_cluster"]


def test_every_tool_has_its_command(lab: Lab) -> None:
    assert COMMAND_OF.keys() | ONLY_TOOLS == ALL.keys()
    for tool, command in COMMAND_OF.items():
        name, _, sub = command.partition(" ")
        assert name in COMMANDS, tool
        assert not sub or sub in load(name).commands, tool


def test_tools_without_a_labwright_server_are_listed() -> None:
    hint = "Write them again: python -m labwright.agent.tools > src/labwright/mcp/tools.json"
    assert packaged_tools() == outside.described(Scope.AGENT), hint
    assert {tool["name"] for tool in packaged_tools()} == OUTSIDE_TOOLS.keys()


def test_viewer_sees_only_tools_that_read() -> None:
    assert all(tool["read_only"] for tool in outside.described(Scope.VIEWER))


def test_every_run_sweep_or_plan_argument_takes_a_reference() -> None:
    meant = {"run_id": RUN_REFERENCE, "run_ids": RUN_REFERENCE, "sweep_id": SWEEP_REFERENCE, "plan_id": PLAN_REFERENCE}
    for name, tool in ALL.items():
        for argument, schema in tool.takes.items():
            assert argument not in ("run", "sweep", "plan"), name
            assert meant.get(argument, "") in schema["description"], (name, argument)


def call(lab: Lab, tool: str, actor: Actor = AGENT, once: str = "", **arguments: Any) -> dict[str, Any]:
    return asyncio.run(outside.call(lab, tool, arguments, actor, proposer="rules", key=once, closing=lambda: False))


def test_names_ids_prefixes_and_last_all_work(lab: Lab) -> None:
    run = ended_run(lab, "base", series={"loss": [0.5, 0.1]})
    other = ended_run(lab, "other", series={"loss": [0.4]})
    for reference in (run.id, run.id[:9], "base"):
        assert call(lab, "get_run", run_id=reference)["id"] == run.id
        assert call(lab, "digest_logs", run=reference)["run_id"] == run.id
        assert call(lab, "get_metrics", run_id=reference)["keys"] == ["loss"]
        assert call(lab, "compare_metrics", run_ids=[reference, "other"], key="loss")["ranking"]["order"][0] == run.id
    assert call(lab, "get_run", run_id="last")["id"] == other.id
    common = {"goal": "", "chat_session_id": None, "parallel": None, "metric": None, "actor": AGENT}
    first, second = (sweeps.create_wild(lab, name=name, **common) for name in ("one", "two"))  # type: ignore[arg-type]
    for reference in (first.id, first.id[:11], "one"):
        assert call(lab, "get_sweep", sweep_id=reference)["id"] == first.id
        assert call(lab, "get_sweep_results", sweep_id=reference)["id"] == first.id
    assert call(lab, "stop_sweep", sweep_id="last")["id"] == second.id
    plan = plans.create_document(lab, title="my plan", goal="g", raw_markdown="x", session_id=None, actor=PERSON)["id"]
    for reference in (plan, f"@{plan}", plan[:9], "my plan", "last"):
        assert call(lab, "get_plan", plan_id=reference)["id"] == plan
    for tool, argument in (
        ("get_run", "run_id"),
        ("get_sweep", "sweep_id"),
        ("get_plan", "plan_id"),
        ("get_wild", "wild_id"),
    ):
        for wrong in ("nothing", "", f"{argument.removesuffix('_id')}-"):
            with pytest.raises(NotFound):
                call(lab, tool, **{argument: wrong})


def test_outside_conversations_there_is_no_evidence_and_no_approval(lab: Lab) -> None:
    run = ended_run(lab, "base", series={"loss": [0.5]})
    mine = make_run(lab, "mine")
    for name in ("get_run", "get_metrics", "digest_logs", "read_logs"):
        assert '"evidence"' not in json.dumps(call(lab, name, run_id=run.id))
    assert '"evidence"' not in json.dumps(call(lab, "list_runs"))
    with pytest.raises(Forbidden):
        call(lab, "stop_run", run_id=mine.id)
    for name in ("delete_run", "shell", "edit_file", "ask_user", "nothing"):
        with pytest.raises(NotFound):
            call(lab, name)


def test_call_with_a_key_is_made_once(lab: Lab) -> None:
    first, again = (call(lab, "create_run", once="k", command="true", auto_start=False) for _ in range(2))
    assert first["id"] == again["id"]
    with pytest.raises(LabwrightError):
        call(lab, "create_run", once="k", command="false", auto_start=False)


def test_wait_returns_at_the_end_or_at_its_timeout(lab: Lab) -> None:
    ended, waiting = ended_run(lab, "done"), make_run(lab, "ready")
    assert [run["id"] for run in call(lab, "wait_for_run", run_ids=["done"])["ended"]] == [ended.id]
    over = call(lab, "wait_for_run", run_ids=["done", "ready"], max_seconds=0.1)
    assert (over["timed_out"], [run["id"] for run in over["not_ended"]]) == (True, [waiting.id])
    assert not call(lab, "wait_for_run", run_ids=["done", "ready"], any_of_them=True)["timed_out"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": "true", "gpu": 1}, "There is no argument gpu; perhaps gpus."),
        ({"gpus": 1}, "The argument command is missing."),
        ({"command": "true", "gpus": "two"}, "gpus must be a whole number."),
        ({"command": "true", "gpus": 10**9}, "gpus must be 1024 or less."),
        ({"command": "true", "env": {"A": 1}}, "env.A must be a text."),
        ({"command": "true", "slurm": {"queue": "x"}}, "There is no slurm.queue."),
        ({"command": "true", "gpuwrap_config": {"retries": 0.5}}, "gpuwrap_config.retries must be a whole number."),
        ({"command": "true", "time_limit_seconds": float("nan")}, "time_limit_seconds must be a finite number."),
    ],
)
def test_wrong_arguments_are_refused_with_the_right_ones(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked(arguments, TOOLS["create_run"].schema())
    assert refused.value.message == message


OLD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("start_run", {"command": "true", "sweep": "s", "params": {"lr": 1}}, "create_run"),
    ("rerun", {"run": "last"}, "rerun_run"),
    ("show_run", {"run": "last"}, "get_run"),
    ("stop_run", {"run": "last"}, "stop_run"),
    ("delete_run", {"run": "last"}, "delete_run"),
    ("log_digest", {"run": "last"}, "digest_logs"),
    ("grep_log", {"run": "last", "pattern": "x"}, "read_logs"),
    ("show_metrics", {"run": "last", "keys": ["loss"]}, "get_metrics"),
    ("compare", {"runs_or_names": ["a", "b"], "key": "loss"}, "compare_metrics"),
    ("sweep_results", {"sweep": "s"}, "get_sweep_results"),
    (
        "start_sweep",
        {"name": "s", "command": "x", "parameters": {"a": [1]}, "metric": "m", "goal": "max", "gpu_hours": 2},
        "create_sweep",
    ),
    ("create_sweep", {"name": "s", "question": "why"}, "create_wild_sweep"),
    ("change_sweep", {"sweep": "s", "verb": "pause"}, "pause_sweep"),
    ("save_plan", {"title": "t", "goal": "g", "raw_markdown": "x"}, "create_plan"),
    ("save_plan", {"title": "t", "goal": "g", "raw_markdown": "x", "plan": "p"}, "change_plan"),
    ("plan_goal", {"goal": "g", "rehearsal": False}, "create_plan"),
    ("compile_plan", {"plan": "p"}, "compile_plan"),
    ("show_plan", {"plan": "p"}, "get_plan"),
    ("answer_alert", {"alert": "a", "choice": "stop"}, "respond_to_alert"),
    ("remember", {"note": "x"}, "add_memory"),
    ("recall", {"q": "x"}, "list_memories"),
    ("wait_for", {"run_ids": ["a"], "note": "n"}, "wait_for_run"),
    ("wait_for", {"sweep": "s"}, "wait_for_sweep"),
    ("show_cluster", {}, "get_cluster"),
]


@pytest.mark.parametrize(("name", "arguments", "today"), OLD_CALLS)
def test_call_of_an_earlier_version_is_understood(name: str, arguments: dict[str, Any], today: str) -> None:
    found = renamed(ToolCall(id="c", name=name, arguments=arguments))
    assert found.name == today
    checked(found.arguments, ALL[today].schema())


def test_old_sweep_call_keeps_its_meaning() -> None:
    arguments = {"name": "s", "command": "x", "parameters": {}, "metric": "m", "goal": "max", "question": "why"}
    found = renamed(ToolCall(id="c", name="start_sweep", arguments=arguments)).arguments
    assert found == {
        "name": "s",
        "base_command": "x",
        "parameters": {},
        "metric": {"key": "m", "goal": "max"},
        "goal": "why",
    }


def test_current_calls_are_left_unchanged() -> None:
    for name, arguments in (("start_run", {"run_id": "x"}), ("start_sweep", {"sweep_id": "s"}), ("get_run", {})):
        call = ToolCall(id="c", name=name, arguments=arguments)
        assert renamed(call) == call
