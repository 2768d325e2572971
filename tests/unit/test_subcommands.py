"""A plan uses one subcommand of a script: the named one, the one with the named flags, or the one that trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from labwright.agent.modes import PlanMode
from labwright.agent.modes.plan import PlanWorkspaceHandle
from labwright.planning.goals import read_goal
from labwright.planning.ir.model import read_ir
from labwright.planning.rehearsal.shortening import shortenings
from labwright.planning.scan import ProjectScan, scan_project
from labwright.workspace import Workspace
from tests.support.plan_workspaces import Planned
from tests.support.scanning import write

MAIN = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--max-steps", type=int, default=100)
p.add_argument("--amp", action="store_true")
sub = p.add_subparsers(required=True)
a = sub.add_parser("pretrain")
a.add_argument("--lr", type=float, default=0.1)
a.add_argument("--mask", type=float, default=0.2)
b = sub.add_parser("finetune")
b.add_argument("--lr", type=float, default=0.01)
b.add_argument("--epochs", type=int, default=3)
c = sub.add_parser("evaluate")
c.add_argument("--split", default="val")
p.parse_args()
acc = 0.5
print(f"val_acc={acc}")
"""
ONE_TRAINS = MAIN.replace('"pretrain"', '"export"').replace('"finetune"', '"train"')


def scan_of(folder: Path, code: str) -> ProjectScan:
    return scan_project(write(folder, {"main.py": code}), environ={"PATH": ""})


@pytest.mark.parametrize(
    ("goal", "script"),
    [
        ("main.py finetune with lr 0.1 and 0.2", "main.py finetune"),
        ("lr 0.1 and 0.2 of the pretrain command", "main.py pretrain"),
        ("mask 0.1 and 0.2", "main.py pretrain"),
        ("evaluate what lr 0.1 and 0.2 do after 5 epochs", "main.py finetune"),
    ],
)
def test_subcommand_is_the_named_one_or_the_one_with_the_flags(tmp_path: Path, goal: str, script: str) -> None:
    reading = read_goal(f"{goal}, highest val_acc", scan_of(tmp_path, MAIN))
    assert (reading.script, reading.questions) == (script, ())


def test_matching_subcommand_that_trains_is_chosen_with_its_defaults(tmp_path: Path) -> None:
    reading = read_goal("lr 0.1 and 0.2, highest val_acc", scan_of(tmp_path, ONE_TRAINS))
    assert (reading.script, reading.baseline) == ("main.py train", {"lr": 0.01})


def test_several_training_subcommands_lead_to_a_question_that_an_answer_settles(tmp_path: Path) -> None:
    scan, goal = scan_of(tmp_path, MAIN), "lr 0.1 and 0.2, highest val_acc"
    (asked,) = read_goal(goal, scan).questions
    assert (asked.about, asked.suggestions) == ("script", ("main.py pretrain", "main.py finetune"))
    assert read_goal(f"{asked.suggestions[1]}\n{goal}", scan).script == "main.py finetune"


def test_command_of_a_plan_has_the_subcommand_and_passes_every_check(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, MAIN)
    handle = PlanWorkspaceHandle.materialize(Workspace(tmp_path / ".labwright"))
    plan = Planned(
        tmp_path, "main.py finetune, lr 0.1 and 0.2, amp on and off, max steps 7, by val_acc", PlanMode(handle)
    )
    assert plan.run()["validated"], (plan.folder / "validation/report.md").read_text()
    command = read_ir(handle).experiment.command
    assert command.endswith("main.py --max-steps 7 {amp} finetune --lr {lr}")
    entry = scan.entry_point("main.py finetune")
    assert entry is not None
    names = [one.flag.name for one in shortenings(entry, command, {"lr"})]
    assert names == ["epochs"], "nothing that stands before the subcommand can be put behind it"
