"""A script started by hand requests a run, and waits only a limited time."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON
from labwright.domain.errors import Conflict
from labwright.domain.run import Run
from labwright.files import read_json
from labwright.processes import identity
from labwright.services.runs import external
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from tests.support.lab import lab_in


def ask(lab: Lab, answer_by: float | None) -> Run:
    elsewhere = replace(identity(os.getpid()), host="another", boot_id="another")  # so that no monitor starts
    return external.create(lab, NewRun(command="python train.py"), elsewhere, PERSON, None, answer_by)


def test_server_that_responds_too_late_creates_no_run(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        with pytest.raises(Conflict, match="no longer waits"):
            ask(lab, time.time() - 0.1)
        assert os.listdir(lab.paths.runs) == []
        made = ask(lab, time.time() + 60)
        assert os.listdir(lab.paths.runs) == [made.id]


def test_code_is_stored_after_the_script_got_its_response(tmp_path: Path) -> None:
    with lab_in(tmp_path / "project") as lab:
        (lab.paths.project / "train.py").write_text("print('hello')\n")
        made = ask(lab, None)
        assert made.snapshot is None
        external.keep_code(lab, made)
        kept = runs.get(lab, made.id).snapshot
        assert kept is not None and read_json(lab.paths.run(made.id).spec)["run"]["snapshot"] == kept
