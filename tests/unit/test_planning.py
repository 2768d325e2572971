"""From a goal to a handoff with the offline rules, on the example projects. Broken steps are refused."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labwright.agent import AgentSession
from labwright.domain.errors import Conflict, Invalid
from labwright.planning.nodes import NODES
from labwright.planning.nodes.pipeline import withdraw
from labwright.planning.scan import scan_project
from tests.support.plan_workspaces import NAMES, planned


@pytest.mark.parametrize("name", NAMES)
def test_goal_of_each_example_becomes_a_handoff(tmp_path: Path, name: str) -> None:
    plan = planned(tmp_path, name)
    state = plan.run()
    report = (plan.folder / "validation/report.md").read_text()
    assert (state["status"], state["validated"], state["approved"]) == ("waiting_for_review", True, False), report
    plan.mode.approve(state["validated_digest"], "ada")
    state = plan.run()
    assert (state["status"], state["approval"]["by"], state["ready_for_run"]) == ("ready_for_run", "ada", True)
    assert state["handoff"]["digest"] == state["approval"]["digest"]
    assert "rules" in state["model"]


SNIPPET = """
from labwright.agent import AgentSession
from labwright.agent.modes import PlanMode
from labwright.agent.modes.plan import PlanWorkspaceHandle
from labwright.workspace import Workspace

workspace = Workspace("./lab")
handle = PlanWorkspaceHandle.materialize(workspace)
mode = PlanMode(workspace_handle=handle)
result = await mode.run(session=AgentSession(), user_input="screen solvent conditions")
plan_state = result.mode_state["plan"]
assert "ready_for_run" in plan_state
assert plan_state["status"] == "needs_input" and 1 <= len(plan_state["questions"]) <= 3
"""


def test_public_api_example_runs_as_written(tmp_path: Path) -> None:
    code = "async def main():\n" + "".join(f"    {line}\n" for line in SNIPPET.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport asyncio\nasyncio.run(main())"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_empty_goal_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.goal = "  "
    with pytest.raises(Invalid):
        plan.run()
    assert not list(plan.folder.iterdir())


def test_answer_in_a_conversation_comes_before_what_it_corrects(tmp_path: Path) -> None:
    plan, session = planned(tmp_path, "bare-script"), AgentSession()

    def say(words: str) -> dict[str, Any]:
        state: dict[str, Any] = asyncio.run(plan.mode.run(session=session, user_input=words)).mode_state["plan"]
        return state

    asked = say("degree 3, 5 and 7 by test_mse, at most 2 runs")["questions"]
    assert [question["about"] for question in asked] == ["budget"]
    assert say("degree 3 and 5")["status"] == "waiting_for_review"


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from labwright.agent import AgentSession
from labwright.agent.modes.plan import PlanMode, PlanWorkspaceHandle
def die(event):
    if event.get("task") == sys.argv[3] and event["fact"] == "started":
        os.kill(os.getpid(), signal.SIGKILL)
mode = PlanMode(PlanWorkspaceHandle(Path(sys.argv[1])))
asyncio.run(mode.run(session=AgentSession(), user_input=sys.argv[2], on_event=die))
"""


@pytest.mark.parametrize("node", [name for name in NODES if name != "FinalHandoffCheck"])
def test_kill_in_a_node_repeats_no_finished_node(tmp_path: Path, node: str) -> None:
    plan = planned(tmp_path, "bare-script")
    done = subprocess.run([sys.executable, "-c", KILLED, str(plan.folder), plan.goal, node])
    assert done.returncode == -signal.SIGKILL
    events: list[Any] = []
    assert plan.run(events)["status"] == "waiting_for_review"
    began = [event["task"] for event in events if event["fact"] == "started"]
    assert began == list(NODES)[list(NODES).index(node) : -1]


def test_rejection_repeats_from_its_node_with_the_reason(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.run()
    plan.mode.reject("use 2 seeds", "DraftImplementationPlan")
    assert plan.run()["status"] == "waiting_for_review"
    assert "× 2 seeds" in plan.mode.handle.paths.text.read_text()
    plan.mode.reject("degree 2 and 4", "DraftImplementationPlan")
    plan.run()
    assert "(2 degree × 2 ridge × 2 seeds" in plan.mode.handle.paths.text.read_text(), (
        "what was asked for before still counts"
    )


def test_words_replaced_by_a_correction_are_not_listed_as_unread(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", "degree 3 and 5, 3 seeds, gently, by test_mse")
    plan.run()
    plan.mode.reject("use 2 seeds, degree 1 and 4", "DraftImplementationPlan")
    plan.run()
    plan.mode.reject("seeds 7, 8, slowly", "DraftImplementationPlan")
    plan.run()
    text = plan.mode.handle.paths.text.read_text()
    assert "(2 degree × 2 seeds" in text
    assert "left out: slowly, gently →" in text


@pytest.mark.parametrize(
    ("file", "words"),
    [("fit.py", "project's fit.py changed"), ("src/experiment/workflow.py", "src/experiment/workflow.py was changed")],
)
def test_one_byte_changed_after_approval_revokes_it_and_is_named(tmp_path: Path, file: str, words: str) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.mode.approve(plan.run()["validated_digest"], "ada")
    assert plan.run()["ready_for_run"]
    changed = plan.project / file if (plan.project / file).exists() else plan.folder / file
    changed.write_text(changed.read_text() + "\n# more\n")
    assert any(words in told for told in withdraw(plan.mode.handle, scan_project(plan.project)))
    assert not plan.mode.state.ready_for_run and not plan.mode.state.approved and plan.mode.state.handoff is None
    with pytest.raises(Conflict):
        plan.mode.approve("0" * 64, "ada")
