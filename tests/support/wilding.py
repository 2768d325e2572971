"""Wild loops on a real database, with runs that end when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from labwright.agent.wild import verbs
from labwright.agent.wild.engine import Engine
from labwright.agent.wild.wanted import NewWild
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.run import Run, RunStatus
from labwright.domain.wild import AT_WORK, Wild
from labwright.llm.model import Model
from labwright.store import sweeps
from tests.support.lab import end

SCRIPT = """\
import argparse
import random

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
noise = random.Random(args.seed).gauss(0, 0.005)
print(f"val_acc={0.95 - 2 * abs(args.lr - 0.3) + noise:.5f}", flush=True)
"""
GOAL = "reach val_acc 0.9 by tuning lr"
LOOP_ID = "wild-0123456789"  # the search's random seed: a new one each time would make the tests random
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in fit\nValueError: loss is nan\n'
Measure = Callable[[dict[str, Any], int], "float | str | None"]


def write_project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(SCRIPT)
    return folder


def peak(params: dict[str, Any], seed: int) -> float:
    """Return the script's score: best at lr 0.3, plus a little noise."""
    return 0.95 - 2 * abs(params.get("lr", 0.1) - 0.3) + (seed - 1) * 0.004


class Proposing:
    """The same model for every loop, or no model."""

    def __init__(self, model: Model | None = None, tokens: int = 0) -> None:
        self._model = model
        self.tokens = tokens
        self.allowed: list[str] = []

    def model(self, wild_id: str) -> Model | None:
        return self._model

    def spent(self, wild_id: str) -> tuple[int, float]:
        return self.tokens, 0.0

    def allow_more(self, wild_id: str) -> None:
        self.allowed.append(wild_id)


class Bench:
    """One loop, advanced step by step."""

    def __init__(self, lab: Lab, goal: str = GOAL, model: Model | None = None, **wanted: Any) -> None:
        self.lab = lab
        self.proposers = Proposing(model)
        self.engine = Engine(lab, self.proposers)
        search = "scripted" if model else verbs.RULES
        self.id = verbs.start(lab, NewWild(id=LOOP_ID, goal=goal, **wanted), search, PERSON).id

    @property
    def wild(self) -> Wild:
        return verbs.get(self.lab, self.id)

    def advance(self) -> Wild:
        self.engine.advance(self.id)
        return self.wild

    def unfinished(self) -> list[Run]:
        return sweeps.unended_runs(self.lab.db.reader(), self.wild.sweep_id)

    def end_runs(self, measure: Measure) -> None:
        """End all runs. A number is the logged score, a text is the failure, None means nothing was logged."""
        for run in self.unfinished():
            found = measure(run.params, run.seed or 0)
            if isinstance(found, str):
                end(self.lab, run, RunStatus.FAILED, output=found)
            else:
                series = {} if found is None else {self.wild.metric["key"]: [found]}
                end(self.lab, run, RunStatus.FINISHED, series=series)

    def go(self, measure: Measure = peak, rounds: int = 200) -> Wild:
        """Advance until the loop ends or asks the user."""
        for _ in range(rounds):
            if self.advance().status not in AT_WORK:
                return self.wild
            self.end_runs(measure)
        raise AssertionError(f"it does not come to an end: {self.wild.iterations[-3:]}")

    def run_ids(self) -> list[str]:
        return [row.id for row in sweeps.runs_of(self.lab.db.reader(), self.wild.sweep_id)]
