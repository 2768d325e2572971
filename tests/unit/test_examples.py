"""The six projects in examples/ run, and the scan finds exactly what they contain."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from labwright.planning.goals import read_goal
from labwright.planning.scan import ProjectScan, Role, rehearsal_flags, run_command, scan_project

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Example:
    name: str
    script: str
    style: str
    options: list[str]
    metrics: list[str]
    runs: int  # of the goal in its README


PROJECTS = [
    Example(
        "argparse-digits", "train.py", "argparse",
        ["--lr", "--batch-size", "--weight-decay", "--optimizer", "--epochs", "--max-steps", "--noise", "--seed"],
        ["train_loss", "val_loss", "val_acc"], 12,
    ),
    Example(
        "yaml-config", "train.py", "yaml",
        ["seed=", "max_steps=", "optimizer.name=", "optimizer.lr=", "optimizer.momentum=", "model.hidden=",
         "data.points=", "data.noise="],
        ["loss", "accuracy"], 12,
    ),
    Example(
        "click-ngrams", "train.py", "click",
        ["--lr", "--batch-size", "--smoothing", "--schedule", "--steps", "--shuffle", "--seed"],
        ["train_loss", "val_loss", "val_ppl"], 6,
    ),
    Example(
        "typer-walk", "train.py", "typer",
        ["--alpha", "--gamma", "--epsilon", "--exploration", "--wind", "--episodes", "--max-steps", "--double",
         "--seed"],
        ["mean_return"], 18,
    ),
    Example(
        "dataclass-moons", "main.py", "dataclass",
        ["--learning_rate", "--l2", "--features", "--bandwidth", "--num_epochs", "--max_steps", "--seed"],
        ["train_loss", "val_error"], 15,
    ),
    Example(
        "bare-script", "fit.py", "globals",
        ["LR=", "DEGREE=", "RIDGE=", "MAX_STEPS=", "SEED="], ["train_mse", "test_mse"], 8,
    ),
]  # fmt: skip
EACH = pytest.mark.parametrize("example", PROJECTS, ids=[example.name for example in PROJECTS])


def scanned(example: Example) -> ProjectScan:
    return scan_project(EXAMPLES / example.name)


@EACH
def test_scan_finds_exactly_the_flags_metrics_and_entry_point(example: Example) -> None:
    (entry,) = scanned(example).entry_points
    assert (entry.path, entry.kind, entry.style) == (example.script, "train", example.style)
    assert [flag.option for flag in entry.flags if flag.is_settable] == example.options
    assert [metric.name for metric in entry.metrics] == example.metrics
    assert all(metric.direction for metric in entry.metrics)
    assert entry.flags_for(Role.SEED)
    assert entry.flags_for(Role.STEPS)


@EACH
def test_example_trains_when_started_as_the_scan_says(example: Example) -> None:
    scan = scanned(example)
    (entry,) = scan.entry_points
    flag, steps = rehearsal_flags(entry.flags)[0]
    seed = entry.flags_for(Role.SEED)[0]
    command = run_command(entry, scan.environment, {flag.name: steps, seed.name: 7})
    bare = command.removeprefix(scan.environment.activation)  # the tests use their own interpreter
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    outputs = [
        subprocess.run(
            ["bash", "-c", bare], cwd=EXAMPLES / example.name, env=environ, capture_output=True, text=True, timeout=60
        )
        for _ in range(2)
    ]
    assert outputs[0].returncode == 0, outputs[0].stderr
    assert all(re.search(rf'\b{name}"?[=:] ?-?\d', outputs[0].stdout) for name in example.metrics)
    assert outputs[0].stdout == outputs[1].stdout


@EACH
def test_goal_in_the_readme_is_read_without_questions(example: Example) -> None:
    (goal,) = re.findall(r"^> (.+)$", (EXAMPLES / example.name / "README.md").read_text(), re.MULTILINE)
    reading = read_goal(goal, scanned(example))
    assert (reading.questions, reading.unread, reading.warnings) == ((), (), ())
    assert reading.run_count == example.runs
    assert reading.goal and reading.goal.metric in example.metrics
