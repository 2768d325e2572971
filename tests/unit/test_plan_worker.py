"""The plan worker: what it does if the machine fails during a compilation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.llm import Model
from labwright.planning import plans
from labwright.planning.rules import offline_model
from labwright.planning.worker import PlanWorker
from tests.support.lab import lab_in
from tests.support.planning import EXAMPLES, QUICK
from tests.support.waiting import wait_until


class Planner:
    """A planner that is unavailable the first few times."""

    def __init__(self, failures: int) -> None:
        self._failures = failures

    def __call__(self, _plan_id: str) -> Model:
        self._failures -= 1
        if self._failures >= 0:
            raise OSError(5, "Input/output error", "notes.yaml")
        return offline_model()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(PlanWorker, "retry_seconds", 0.01)
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "bare-script", project, ignore=shutil.ignore_patterns(".labwright", "__pycache__"))
    with lab_in(project) as opened:
        yield opened


@pytest.mark.parametrize(("failures", "status"), [(3, "waiting_for_review"), (1_000_000, "failed")])
def test_compilation_is_retried_and_finally_given_up(lab: Lab, failures: int, status: str) -> None:
    plan_id = plans.create_document(lab, title="t", goal=QUICK, raw_markdown="", session_id=None, actor=PERSON)["id"]
    plans.compile_plan(lab, plan_id, plans.CompileOptions(rehearsal=False), PERSON)
    worker = PlanWorker(lab, Planner(failures))
    worker.start()
    wait_until(lambda: not plans.get(lab, plan_id)["compiling_by"], "the end of it", 60)
    planning = plans.get(lab, plan_id)["planning"]
    worker.close()
    assert planning["status"] == status
    assert ("notes.yaml" in planning["error"]) is (status == "failed")
