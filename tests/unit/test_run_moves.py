"""The table of moves: every legal move works, every other one raises."""

from __future__ import annotations

import json
from itertools import product

import pytest

from labwright.domain.errors import IllegalMove
from labwright.domain.run import ACTIVE, MOVES, TERMINAL, GpuwrapConfig, Run, RunStatus

# Written by hand from DESIGN.md, to catch a mistake in the table.
LEGAL = {
    "ready": {"queued", "stopped", "failed"},
    "queued": {"launching", "stopped", "failed"},
    "launching": {"waiting", "running", "queued", "finished", "failed", "stopped", "lost"},
    "waiting": {"running", "finished", "failed", "stopped", "lost"},
    "running": {"waiting", "queued", "finished", "failed", "stopped", "lost"},
    "lost": {"finished", "failed"},
    "finished": set(),
    "failed": set(),
    "stopped": set(),
}


def a_run(status: RunStatus = RunStatus.READY, **facts: object) -> Run:
    values = {"id": "run-0123456789", "name": "n", "command": "true", "workdir": "/", "created_by": "person"}
    return Run(**{**values, "created_at": "2026-01-01T00:00:00.000Z", "status": status, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(("before", "to"), list(product(RunStatus, RunStatus)))
def test_run_makes_exactly_the_moves_of_the_table(before: RunStatus, to: RunStatus) -> None:
    run = a_run(before)
    if to.value in LEGAL[before.value]:
        assert run.move(to).status is to
    else:
        with pytest.raises(IllegalMove):
            run.move(to)


def test_table_names_every_status() -> None:
    assert {status.value for status in MOVES} == set(LEGAL)


def test_ended_run_cannot_change_unless_it_was_lost() -> None:
    assert {status for status in TERMINAL if MOVES[status]} == {RunStatus.LOST}
    assert not ACTIVE & TERMINAL


def test_move_clears_the_reason_of_the_previous_status() -> None:
    waiting = a_run(RunStatus.LAUNCHING).move(RunStatus.WAITING, status_reason="all GPUs are busy")
    assert waiting.move(RunStatus.RUNNING).status_reason == ""


def test_status_cannot_be_changed_as_a_plain_field() -> None:
    with pytest.raises(IllegalMove):
        a_run().evolve(status=RunStatus.FINISHED)


def test_run_survives_json() -> None:
    run = a_run(
        tags=("a", "b"),
        gpuwrap_config=GpuwrapConfig(retries=3),
        params={"lr": 0.1, "ü": ["✓", None]},
        after=("run-a",),
        env={"A": "1"},
    )
    assert Run.from_dict(json.loads(run.to_json())) == run


def test_record_of_a_newer_version_is_read_without_its_new_fields() -> None:
    assert Run.from_dict({**a_run().to_dict(), "field_of_the_future": 1}) == a_run()
