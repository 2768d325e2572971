"""An approved plan runs to its report: on real runs, through kills, stops, failures and later changes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from labwright.compute.lab import Lab
from labwright.domain.errors import Conflict
from labwright.domain.run import RunStatus
from labwright.planning.nodes import Planning
from labwright.planning.nodes.pipeline import approve, run_pipeline
from labwright.planning.project.digest import current_digest
from labwright.planning.record.state import read_state
from labwright.planning.rules import offline_model
from labwright.planning.run_mode import run_plan
from labwright.planning.scan import scan_project
from labwright.sandbox import Containment
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.services.sweeps.extension import Extension
from labwright.store import sweeps
from tests.support.planned_project import PERSON, approved_plan, execute, plan_of, runs_of_plan, working_lab
from tests.support.run_mode_project import (
    GOAL,
    ONCE,
    RUNS,
    STEPS,
    TRAIN,
    copied,
    make_planned,
    numbers_of,
    report_of,
    starts,
)
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planned(tmp_path_factory.mktemp("planned"))


@pytest.fixture
def project(planned: Path, tmp_path: Path) -> Path:
    return copied(planned, tmp_path)


@pytest.fixture(scope="module")
def executed(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Lab]]:
    """The plan after its execution, for tests that only read it."""
    project = copied(planned, tmp_path_factory.mktemp("executed"))
    with working_lab(project) as lab:
        outcome = execute(lab, plan_of(project))
        assert (outcome.completed, outcome.reason, outcome.report) == (True, "", "results/report.md"), outcome
        yield project, lab


def test_plan_ends_with_a_report_of_its_runs_and_pictures(executed: tuple[Path, Lab]) -> None:
    project, lab = executed
    (experiment,) = numbers_of(project)["experiments"]
    in_sweep = {run.id for run in runs_of_plan(lab, plan_of(project)) if [run.sweep_id] == experiment["sweep_ids"]}
    assert len(in_sweep) == len(RUNS) and {run["run_id"] for run in experiment["runs"]} == in_sweep
    assert all(criterion["met"] for criterion in numbers_of(project)["success_criteria"])
    text = report_of(project)
    assert all(run_id in text for run_id in in_sweep)
    linked = re.findall(r"\]\((\S+\.svg)\)", text)
    assert linked == experiment["pictures"] and len(linked) >= 2
    for file in linked:
        ElementTree.fromstring(plan_of(project).read(f"results/{file}"))


def test_runs_are_exactly_those_of_the_plan(executed: tuple[Path, Lab]) -> None:
    """Grid, seeds and the baseline, which is in the grid here. Nothing else runs, and each run has the plan's id."""
    project, lab = executed
    found = runs_of_plan(lab, plan_of(project))
    of_sweep = [run for run in found if run.sweep_id]
    sweep = sweeps.get(lab.db.reader(), str(of_sweep[0].sweep_id))
    assert {(run.params["lr"], run.seed) for run in of_sweep} == RUNS and len(of_sweep) == len(RUNS)
    assert starts(project) == ONCE
    assert sweep.metric == {"key": "val_acc", "goal": "max", "use": "last"} and sweep.plan_id == plan_of(project).id
    assert sorted(run.name for run in found if not run.sweep_id) == sorted(STEPS[1:])
    assert all("plan" in run.tags for run in found)


def test_sweep_of_a_plan_cannot_be_extended_past_the_approval(executed: tuple[Path, Lab]) -> None:
    project, lab = executed
    sweep_id = next(run.sweep_id for run in runs_of_plan(lab, plan_of(project)) if run.sweep_id)
    with pytest.raises(Conflict, match="belongs to plan"):
        sweep_verbs.extend(lab, str(sweep_id), Extension(seeds=(7,)), PERSON)


def change_task(project: Path) -> None:
    path = plan_of(project).paths.dir / "src/experiment/tasks/choose_best.py"
    path.write_text(path.read_text() + "#")


def change_script(project: Path) -> None:
    (project / "train.py").write_text((project / "train.py").read_text() + "\n")


def add_module(project: Path) -> None:
    (project / "json.py").write_text("")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_task, "src/experiment/tasks/choose_best.py was changed"),
        (change_script, "project's train.py changed"),
        (add_module, "project's json.py changed"),
    ],
)
def test_change_after_approval_is_reported_and_nothing_starts(project: Path, change: Any, words: str) -> None:
    change(project)
    with working_lab(project) as lab:
        with pytest.raises(Conflict, match=re.escape(words)):
            execute(lab, plan_of(project))
        assert not runs_of_plan(lab, plan_of(project))
    assert not starts(project)


def test_package_installed_after_approval_is_reported(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    handle = approved_plan(project, GOAL)
    (packages,) = (project / ".venv").glob("lib/python*/site-packages")
    (packages / "other-1.0.dist-info").mkdir()
    (packages / "other-1.0.dist-info" / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    with working_lab(project) as lab, pytest.raises(Conflict, match="the environment changed"):
        execute(lab, handle)


def test_caches_reports_and_output_of_runs_do_not_count_as_changes(project: Path) -> None:
    (project / "__pycache__").mkdir()
    (project / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"x")
    plan_of(project).write("results/report.md", b"old")
    plan_of(project).write("validation/report.md", b"other")
    with working_lab(project) as lab:
        stopping = threading.Event()
        (project / "hold.txt").touch()
        first = threading.Thread(target=execute, args=(lab, plan_of(project), None, stopping))
        first.start()
        wait_until(lambda: starts(project), "a run to start")
        (project / "outputs").mkdir()
        (project / "outputs" / "config.yaml").write_text("lr: 0.1\n")  # as Hydra does, while the plan runs
        (project / "hold.txt").unlink()
        first.join()
    assert numbers_of(project)["completed"]


def test_edit_during_the_execution_is_neither_used_nor_ignored(project: Path) -> None:
    (project / "hold.txt").touch()
    with working_lab(project) as lab:
        ended: list[Any] = []
        thread = threading.Thread(target=lambda: ended.append(execute(lab, plan_of(project))))
        thread.start()
        wait_until(lambda: starts(project), "a run to start")
        change_task(project)
        (project / "hold.txt").unlink()
        thread.join()
    assert "src/experiment/tasks/choose_best.py was changed" in ended[0].reason
    assert starts(project) == ONCE  # approved runs that were active have ended normally


def test_foreign_handoff_runs_nothing(project: Path) -> None:
    handle = plan_of(project)
    handoff = read_state(handle).handoff
    assert handoff is not None
    other = handoff.model_copy(update={"symbol": "other"})
    with working_lab(project) as lab, pytest.raises(Conflict, match="no such handoff"):
        run_plan(lab, handle, other, scan_project(project), PERSON, lambda _fact: None, threading.Event())


def test_stopped_plan_keeps_its_state_and_the_next_call_continues(project: Path) -> None:
    (project / "hold.txt").touch()
    handle, stopping, ended = plan_of(project), threading.Event(), []
    with working_lab(project) as lab:
        thread = threading.Thread(target=lambda: ended.append(execute(lab, handle, stopping=stopping)))
        thread.start()
        wait_until(lambda: starts(project), "a run to start")
        stopping.set()
        thread.join()
        assert ended[0].suspended and not ended[0].completed
        assert not (handle.paths.results / "report.md").exists()
        assert any(run.status is RunStatus.RUNNING for run in runs_of_plan(lab, handle))
        (project / "hold.txt").unlink()
        facts: list[Any] = []
        assert execute(lab, handle, facts).completed
    assert set(starts(project).values()) == {1}


class PlanProcess:
    """The process that executes the plan of a project."""

    def __init__(self, project: Path) -> None:
        command = [sys.executable, "-m", "tests.support.planned_project", str(project), plan_of(project).id]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def lines(self) -> Any:
        assert self.process.stdout is not None
        return map(json.loads, self.process.stdout)

    def kill_at(self, fact: str, step: str) -> bool:
        """Kill the process at that moment. Return False if it ended before."""
        for line in self.lines():
            if (line.get("fact"), line.get("step")) == (fact, step):
                self.kill()
                return True
        self.process.communicate()
        return False

    def outcome(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        found = list(self.lines())
        self.process.communicate()
        return found[-1], found[:-1]


def check_nothing_ran_twice(project: Path) -> None:
    assert starts(project) == ONCE
    steps = numbers_of(project)["steps"]
    assert {step["status"] for step in steps.values()} == {"finished"}
    with working_lab(project) as lab:
        names = Counter(run.name for run in runs_of_plan(lab, plan_of(project)))
    assert set(names.values()) == {1} and len(names) == len(RUNS) + len(STEPS) - 1


def test_kill_at_each_step_repeats_and_duplicates_nothing(project: Path) -> None:
    """Kills follow each other on the same plan:

    when a step starts, when its runs are created, when it is done. After one of them the database is lost as well.
    """
    for fact, step in (("started", "train"), ("launched", "train")):
        PlanProcess(project).kill_at(fact, step)
    assert PlanProcess(project).kill_at("launched", "summarise")
    for path in (project / ".labwright").glob("labwright.db*"):
        path.unlink()
    PlanProcess(project).kill_at("started", "choose_best")
    last, facts = PlanProcess(project).outcome()
    assert last["outcome"]["completed"], last
    assert ("reused", "train") in [(fact["fact"], fact.get("step")) for fact in facts]
    check_nothing_ran_twice(project)


def test_kills_at_random_moments_lose_and_duplicate_nothing(project: Path) -> None:
    chance = random.Random(os.urandom(8))
    for _ in range(2):
        process = PlanProcess(project)
        for line, _fact in enumerate(process.lines()):
            if line == chance.randrange(8):
                break
        time.sleep(chance.uniform(0.0, 0.3))  # somewhere between two facts
        process.kill()
    last, _facts = PlanProcess(project).outcome()
    assert last["outcome"]["completed"], last
    check_nothing_ran_twice(project)


def test_python_step_runs_sandboxed_in_its_own_run(project: Path) -> None:
    """It sees the approved copy, but not the server's token, the project or the server's variables."""
    handle, scan = plan_of(project), scan_project(project)
    hidden = (str(project / ".labwright/token"), str(project / "train.py"))
    probe = f"""
    import os
    seen = [path for path in {hidden!r} if os.path.exists(path)]
    seen += [name for name in ("$HF_TOKEN", "$LABWRIGHT_RUN_TOKEN") if os.path.expandvars(name) != name]
    if seen:
        raise ValueError(f"it sees {{seen}}")
"""
    task = handle.paths.dir / "src/experiment/tasks/choose_best.py"
    task.write_text(task.read_text().replace("    usable =", f"{probe}    usable =", 1))
    with working_lab(project) as lab:
        planning = Planning(handle=handle, scan=scan, cluster=lab.cluster.current, model=offline_model(), goal=GOAL)
        approve(handle, scan, current_digest(handle, scan).value, "ada")
        assert run_pipeline(planning).ready_for_run, handle.read("validation/report.md").decode()
        outcome = execute(lab, handle)
        assert outcome.completed, outcome
        step = next(run for run in runs_of_plan(lab, handle) if run.name == "choose_best")
        assert "labwright.workflow.perform" in step.command and step.plan_id == handle.id
        assert step.command.startswith("exec env -i ") and "TOKEN" not in step.command


def test_without_bubblewrap_a_python_step_runs_with_limits(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_limits = Containment(kind="limits", contained=(), reason="not here")
    monkeypatch.setattr("labwright.planning.run_mode.task_command.containment", lambda: only_limits)
    with working_lab(project) as lab:
        assert execute(lab, plan_of(project)).completed
        assert all("bwrap" not in run.command for run in runs_of_plan(lab, plan_of(project)))
