"""From a goal to a handoff with the offline rules, on the example projects; what is broken on the way is refused."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labwright.agent import AgentSession
from labwright.agent.modes import PlanMode
from labwright.agent.modes.plan import PlanWorkspaceHandle
from labwright.domain.errors import Conflict, Invalid
from labwright.planning.checks import check_workspace
from labwright.planning.digest_facts import current_digest
from labwright.planning.nodes import NODES
from labwright.planning.pipeline import withdraw
from labwright.planning.scan import scan_project
from labwright.workspace import Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["argparse-digits", "bare-script", "click-ngrams", "dataclass-moons", "typer-walk", "yaml-config"]


@dataclass
class Planned:
    project: Path
    goal: str
    mode: PlanMode

    def run(self, events: list[Any] | None = None) -> dict[str, Any]:
        on_event = None if events is None else events.append
        asked = self.mode.run(session=AgentSession(), user_input=self.goal, on_event=on_event)
        return dict(asyncio.run(asked).mode_state["plan"])

    @property
    def folder(self) -> Path:
        return self.mode.handle.paths.dir


def planned(folder: Path, name: str, goal: str = "") -> Planned:
    project = folder / "project"
    shutil.copytree(EXAMPLES / name, project)
    handle = PlanWorkspaceHandle.materialize(Workspace(project / ".labwright"))
    words = goal or re.findall(r"^> (.+)$", (project / "README.md").read_text(), re.MULTILINE)[0]
    return Planned(project, words, PlanMode(handle))


@pytest.mark.parametrize("name", NAMES)
def test_the_goal_of_each_example_becomes_a_handoff(tmp_path: Path, name: str) -> None:
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


def test_the_public_surface_runs_as_written(tmp_path: Path) -> None:
    code = "async def main():\n" + "".join(f"    {line}\n" for line in SNIPPET.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport asyncio\nasyncio.run(main())"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_an_empty_goal_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.goal = "  "
    with pytest.raises(Invalid):
        plan.run()
    assert not list(plan.folder.iterdir())


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
def test_a_kill_in_a_node_repeats_no_finished_one(tmp_path: Path, node: str) -> None:
    plan = planned(tmp_path, "bare-script")
    done = subprocess.run([sys.executable, "-c", KILLED, str(plan.folder), plan.goal, node])
    assert done.returncode == -signal.SIGKILL
    events: list[Any] = []
    assert plan.run(events)["status"] == "waiting_for_review"
    began = [event["task"] for event in events if event["fact"] == "started"]
    assert began == list(NODES)[list(NODES).index(node) : -1]


def test_a_rejection_runs_again_from_its_node_with_the_reason(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.run()
    plan.mode.reject("use 2 seeds", "DraftImplementationPlan")
    assert plan.run()["status"] == "waiting_for_review"
    assert "× 2 seeds" in plan.mode.handle.paths.text.read_text()


@pytest.mark.parametrize(
    ("file", "words"),
    [("fit.py", "project's fit.py changed"), ("src/experiment/workflow.py", "src/experiment/workflow.py was changed")],
)
def test_a_byte_changed_after_approval_voids_it_and_says_what(tmp_path: Path, file: str, words: str) -> None:
    plan = planned(tmp_path, "bare-script")
    plan.mode.approve(plan.run()["validated_digest"], "ada")
    assert plan.run()["ready_for_run"]
    changed = plan.project / file if (plan.project / file).exists() else plan.folder / file
    changed.write_text(changed.read_text() + "\n# more\n")
    assert any(words in told for told in withdraw(plan.mode.handle, scan_project(plan.project)))
    assert not plan.mode.state.ready_for_run and not plan.mode.state.approved and plan.mode.state.handoff is None
    with pytest.raises(Conflict):
        plan.mode.approve("0" * 64, "ada")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    plan = planned(tmp_path_factory.mktemp("good"), "bare-script", "degree 1, 3 and 5, 2 seeds, lowest test_mse")
    assert plan.run()["validated"]
    return plan


_T, _W = "src/experiment/tasks/{}.py", "src/experiment/workflow.py"
_BODY = "    pick = max if"
# code, file, what is replaced ("" appends, None removes the file), by what
MUTATIONS = [
    ("missing_file", "tests/test_summarise.py", None, ""),
    ("missing_file", "src/experiment/__init__.py", None, ""),
    ("missing_file", _T.format("choose_best"), None, ""),
    ("does_not_compile", _T.format("summarise"), "", "def (:\n"),
    ("does_not_compile", "tests/test_train.py", "", "assert (\n"),
    ("undefined_name", _T.format("choose_best"), _BODY, "    nowhere()\n" + _BODY),
    ("undefined_name", "tests/test_choose_best.py", "rows = [", "rows = nowhere + ["),
    ("forbidden_import", _T.format("choose_best"), "", "import subprocess\n"),
    ("forbidden_import", _T.format("choose_best"), "", "from threading import Thread\n"),
    ("forbidden_call", _T.format("choose_best"), _BODY, "    __import__('os')\n" + _BODY),
    ("forbidden_call", _T.format("choose_best"), "", "import sys\nsys.exit(0)\n"),
    ("forbidden_call", "tests/test_choose_best.py", "", "import os\nos._exit(0)\n"),
    ("import_effect", _T.format("choose_best"), "", "open('/tmp/x', 'w').close()\n"),
    ("missing_package", _T.format("choose_best"), "", "import no_such_package\n"),
    ("import_failed", _W, "", "raise RuntimeError('no')\n"),
    ("no_symbol", _W, "def create_workflow", "def make_workflow"),
    ("not_a_workflow", _W, "return workflow", "return {}"),
    ("empty", _W, 'workflow = Workflow("degree_experiment")', "workflow = Workflow('empty')\n    return workflow"),
    ("code_ir_mismatch", _W, 'Output("summarise", "result"), "direction"', 'Output("train", "runs"), "direction"'),
    ("type_mismatch", _T.format("choose_best"), "direction: str", "direction: list[float]"),
    ("stub", _T.format("choose_best"), "    usable =", "    raise NotImplementedError\n    usable ="),
    ("code_ir_mismatch", _T.format("train"), "[1, 3, 5]", "[1, 3, 7]"),
    ("code_ir_mismatch", _T.format("train"), "python3 fit.py", "python3 other.py"),
    ("metric_without_direction", _T.format("train"), "'minimize'", "''"),
    ("test_failed", "tests/test_choose_best.py", '== {"lr": 0.1}', '== {"lr": 0.9}'),
    ("asserts_nothing", "tests/test_write_table.py", "    assert ", "    lines and "),
    ("asserts_nothing", "tests/test_train.py", "assert len(train.configurations()) == 6", "assert True"),
    ("no_tests", "tests/test_train.py", "def test_", "def check_"),
    ("bad_ir", "ir/workflow.yaml", "id: choose_best", "id: ../choose"),
    ("bad_ir", "ir/workflow.yaml", "id: choose_best", "id: choose-best"),
    ("bad_ir", "ir/workflow.yaml", "source: summarise.result", "source: nobody.result"),
    ("bad_ir", "ir/workflow.yaml", "direction: minimize", "direction: ''"),
    ("bad_ir", "ir/tasks/train.yaml", None, ""),
    ("no_such_script", "ir/tasks/train.yaml", "script: fit.py", "script: fot.py"),
    ("no_such_flag", "ir/workflow.yaml", "flag: degree", "flag: degrees"),
    ("bad_value", "ir/workflow.yaml", "    - 5\n", "    - 5.5\n"),
    ("metric_not_produced", "ir/workflow.yaml", "name: test_mse", "name: test_acc"),
    ("over_budget", "ir/workflow.yaml", "max_runs: null", "max_runs: 2"),
    ("plan_ir_mismatch", "plan/implementation_plan.md", "1, 3, 5", "1, 3, 7"),
    ("plan_ir_mismatch", "plan/implementation_plan.md", "**Runs**: 6", "**Runs**: 7"),
    ("plan_format", "plan/implementation_plan.md", "### Metrics", "### Measures"),
]


@pytest.mark.parametrize(
    ("code", "file", "old", "new"), MUTATIONS, ids=[f"{m[0]}-{i}" for i, m in enumerate(MUTATIONS)]
)
def test_what_is_broken_is_refused_by_its_name(
    good: Planned, tmp_path: Path, code: str, file: str, old: str | None, new: str
) -> None:
    folder = tmp_path / "plans" / good.folder.name
    shutil.copytree(good.folder, folder)
    target = folder / file
    if old is None:
        os.remove(target)
    else:
        text = target.read_text()
        assert old in text
        target.write_text(text.replace(old, new) if old else text + new)
    handle, scan = PlanWorkspaceHandle(folder), scan_project(good.project)
    assert code in {finding.code for finding in check_workspace(handle, scan, current_digest(handle, scan))}
