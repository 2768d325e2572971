"""In a project without an environment, the plan creates it as a tracked, approved run, and its runs use it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.errors import Conflict
from labwright.domain.run import RunStatus
from labwright.planning.ir.model import read_ir
from labwright.workspace import PlanWorkspaceHandle
from tests.support.planned_project import approved_plan, execute, runs_of_plan, working_lab
from tests.support.waiting import wait_until

TRAIN = """
import argparse
import helper

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
print(f"val_acc={helper.half(parser.parse_args().lr)}")
"""
HELPER = "def half(value):\n    return value / 2\n"
GOAL = "find the best lr for train.py: 0.1 and 0.2, metric val_acc"
STEP = "make_environment"
# Makes what the real uv would, as fast as possible. Fails or waits if a file in the project says so.
UV = f"""#!/bin/sh
echo "$@" >> uv.log
case "$1" in
venv) exec {sys.executable} -m venv --without-pip "$2" ;;
pip)
    while [ -e hold.txt ]; do sleep 0.02; done
    if [ -e fail.txt ]; then echo "no such package: helper"; exit 2; fi
    for site in .venv/lib/python*/site-packages; do cp helper.txt "$site/helper.py"; done ;;
esac
"""


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is first on the path, without a real uv, conda or environment."""
    folder = tmp_path_factory.mktemp("bin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{Path(sys.executable).resolve().parent}:/usr/bin:/bin")
        patch.delenv("VIRTUAL_ENV", raising=False)
        yield folder


def project_in(folder: Path, requirements: str) -> Path:
    (folder / "train.py").write_text(TRAIN)
    (folder / "requirements.txt").write_text(requirements)
    return folder


@pytest.fixture
def project(bin_folder: Path, tmp_path: Path) -> Path:
    (bin_folder / "uv").unlink(missing_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def approved(bin_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two approved plans for the same goal, to be copied."""
    _write_uv(bin_folder)
    project = project_in(tmp_path_factory.mktemp("approved"), "helper\n")
    (project / "helper.txt").write_text(HELPER)
    for _ in range(2):
        approved_plan(project, GOAL)
    return project


@pytest.fixture
def with_uv(approved: Path, bin_folder: Path, tmp_path: Path) -> Path:
    _write_uv(bin_folder)
    return Path(shutil.copytree(approved, tmp_path / "project", symlinks=True))


def _write_uv(bin_folder: Path) -> None:
    (bin_folder / "uv").write_text(UV)
    (bin_folder / "uv").chmod(0o755)


def plans_of(project: Path) -> list[PlanWorkspaceHandle]:
    return [PlanWorkspaceHandle(folder) for folder in sorted((project / ".labwright/plans").iterdir())]


def calls(project: Path) -> list[str]:
    return [line.split()[0] for line in (project / "uv.log").read_text().splitlines()]


def made_runs(lab: Any, handle: PlanWorkspaceHandle) -> list[Any]:
    return [run for run in runs_of_plan(lab, handle) if STEP in run.tags]


def test_without_other_tools_venv_and_pip_create_the_environment(project: Path) -> None:
    wheel = project / "helper-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("helper.py", HELPER)
        made.writestr("helper-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: helper\nVersion: 1.0\n")
        made.writestr("helper-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("helper-1.0.dist-info/RECORD", "")
    project_in(project, f"--no-index\n./{wheel.name}\n")
    handle = approved_plan(project, GOAL)
    command = read_ir(handle).workflow.environment
    assert "python3 -m venv .venv" in command and "pip install -r requirements.txt" in command
    assert f"`{command}`" in handle.paths.text.read_text()  # what is reviewed is what runs
    assert not (project / ".venv").exists()
    facts: list[Any] = []
    with working_lab(project) as lab:
        outcome = execute(lab, handle, facts)
        assert outcome.completed, outcome
        (run,) = made_runs(lab, handle)
        trained = [run for run in runs_of_plan(lab, handle) if run.sweep_id]
        assert (run.command, run.status) == (command, RunStatus.FINISHED)
        assert all(run.command.startswith("source .venv/bin/activate && ") for run in trained)
        assert max(one.created_at for one in (run, *trained)) != run.created_at
        assert execute(lab, handle).completed  # a second request repeats nothing
        assert len(made_runs(lab, handle)) == 1
    told = [fact["fact"] for fact in facts if fact.get("step") == STEP]
    assert told == ["started", "launched", "finished"]
    assert "make_environment" in handle.read("results/report.md").decode()


def test_approval_holds_before_and_after_creation_but_not_after_a_change(with_uv: Path) -> None:
    first, second = plans_of(with_uv)
    with working_lab(with_uv) as lab:
        assert execute(lab, first).completed
        assert execute(lab, second).completed  # for the same environment
        assert calls(with_uv) == ["venv", "pip"]
        shutil.rmtree(with_uv / ".venv")
        assert execute(lab, second).completed
        assert calls(with_uv) == ["venv", "pip"] * 2
        (site,) = (with_uv / ".venv").glob("lib/python*/site-packages")
        (site / "helper.py").write_text(HELPER + "#")
        with pytest.raises(Conflict, match="the environment changed"):
            execute(lab, second)


def test_environment_made_by_somebody_else_is_not_the_approved_one(with_uv: Path) -> None:
    handle = plans_of(with_uv)[0]
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-m", "venv", "--without-pip", str(with_uv / ".venv")])
    with working_lab(with_uv) as lab, pytest.raises(Conflict, match="the environment changed"):
        execute(lab, handle)


def test_failure_starts_no_run_and_the_next_attempt_starts_over(with_uv: Path) -> None:
    (with_uv / "fail.txt").touch()
    handle = plans_of(with_uv)[0]
    with working_lab(with_uv) as lab:
        outcome = execute(lab, handle)
        assert not outcome.completed and outcome.reason.startswith(f"{STEP}: ")
        assert "no such package: helper" in outcome.reason
        assert [run for run in runs_of_plan(lab, handle) if run.sweep_id] == []
        (with_uv / "fail.txt").unlink()
        (with_uv / ".venv/half.txt").touch()
        assert execute(lab, handle).completed
        assert [run.status for run in made_runs(lab, handle)] == [RunStatus.FAILED, RunStatus.FINISHED]
    assert not (with_uv / ".venv/half.txt").exists() and not (with_uv / ".venv.unfinished").exists()


def interrupted(_lab: Any, *_given: Any) -> None:
    raise OSError("nothing is written any more")


@pytest.mark.parametrize("at", ["while it is made", "when it is made and not noted yet"])
def test_restart_continues_with_the_active_run(with_uv: Path, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = plans_of(with_uv)[0]
    stop = _stopped_while_made if at == "while it is made" else _ended_before_the_note
    with working_lab(with_uv) as lab:
        stop(lab, handle, with_uv, monkeypatch)
    with working_lab(with_uv) as lab:
        outcome = execute(lab, handle)
        assert outcome.completed, outcome
        assert len(made_runs(lab, handle)) == 1
    assert calls(with_uv) == ["venv", "pip"]


def _stopped_while_made(lab: Any, handle: PlanWorkspaceHandle, project: Path, _patch: pytest.MonkeyPatch) -> None:
    (project / "hold.txt").touch()
    stopping, ended = threading.Event(), []
    thread = threading.Thread(target=lambda: ended.append(execute(lab, handle, stopping=stopping)))
    thread.start()
    wait_until(lambda: (project / "uv.log").exists() and len(calls(project)) == 2, "pip to begin")
    stopping.set()
    thread.join()
    (project / "hold.txt").unlink()
    assert ended[0].suspended


def _ended_before_the_note(lab: Any, handle: PlanWorkspaceHandle, _project: Path, patch: pytest.MonkeyPatch) -> None:
    place = "labwright.planning.run_mode.environment_step.note_made"
    with patch.context() as patched:
        patched.setattr(place, interrupted)
        assert not execute(lab, handle).completed
