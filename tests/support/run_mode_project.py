"""A project with an approved plan, whose script can be paused, made to fail and made to end slowly."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.planned_project import approved_plan, plan_of

TRAIN = '''
"""Learns nothing, quickly; notes each start."""
import argparse
import json
import os
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--max-steps", type=int, default=3)
options = parser.parse_args()
with open("starts.txt", "a") as starts:
    starts.write(f"{options.lr} {options.seed}\\n")
names = {str(options.lr), f"{options.lr}/{options.seed}"}
if os.path.exists("fail.txt") and names & set(open("fail.txt").read().split()):
    raise SystemExit(f"lr {options.lr} <b>explodes</b> | `here`")


def end_slowly(*_signal):
    open("asked.txt", "w").close()
    while os.path.exists("slow.txt"):
        time.sleep(0.02)
    sys.exit(1)


signal.signal(signal.SIGTERM, end_slowly)
while os.path.exists("hold.txt") and not os.path.exists(f"go-{options.lr}"):
    time.sleep(0.02)
for step in range(options.max_steps):
    record = {"step": step, "val_acc": options.lr + 0.01 * options.seed + 0.001 * step}
    print(json.dumps(record), flush=True)
'''
GOAL = "find the best lr for train.py: 0.1 and 0.2, 2 seeds, metric val_acc"
RUNS = {(lr, seed) for lr in (0.1, 0.2) for seed in (0, 1)}
ONCE = Counter(f"{lr} {seed}" for lr, seed in RUNS)
STEPS = ["train", "summarise", "choose_best", "compare_with_baseline", "write_table"]


def make_planned(folder: Path) -> Path:
    """Make the planned project once, to be copied: planning takes longer than a test."""
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    approved_plan(project, GOAL)
    return project


def copied(planned: Path, folder: Path) -> Path:
    return Path(shutil.copytree(planned, folder / "project", symlinks=True))


def starts(project: Path) -> Counter[str]:
    return (
        Counter((project / "starts.txt").read_text().splitlines()) if (project / "starts.txt").exists() else Counter()
    )


def report_of(project: Path) -> str:
    return plan_of(project).read("results/report.md").decode()


def numbers_of(project: Path) -> dict[str, Any]:
    return dict(json.loads(plan_of(project).read("results/results.json")))
