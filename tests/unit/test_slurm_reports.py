"""Slurm's reports update the database: forgotten jobs, held jobs, stops that have to wait."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labwright.compute.lab import Lab
from labwright.compute.slurm import endings as slurm_endings
from labwright.compute.slurm.jobs import (
    JobListing,
    JobRow,
    Recalled,
    SlurmReport,
    StopDelayed,
    read_sacct,
    sacct_arguments,
)
from labwright.compute.slurm.reports import SlurmReports
from labwright.domain.actor import PERSON
from labwright.domain.alert import Alert
from labwright.domain.clock import epoch_seconds
from labwright.domain.run import SLURM, Run, RunStatus
from labwright.files import write_json
from labwright.services import alerts
from labwright.services.runs import verbs as run_verbs
from tests.support.lab import lab_in, make_run, move

STUCK = "launch failed requeued held"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setattr(slurm_endings, "_EXIT_PATIENCE_SECONDS", 0.0)
    with lab_in(tmp_path / "project") as lab:
        yield lab
        lab.slurm.close()


def sent(lab: Lab, job: int | str, name: str = "x") -> Run:
    run = make_run(lab, name)
    facts = {"launcher": SLURM, "slurm_job_id": str(job), "launched_at": "2020-01-01T00:00:00Z"}
    return move(lab, run, RunStatus.QUEUED, RunStatus.LAUNCHING, **facts)


def hear(lab: Lab, reports: SlurmReports, *heard: SlurmReport) -> None:
    for report in heard:
        lab.slurm._report(report)
    reports.apply()


def seen(*rows: JobRow) -> JobListing:
    return JobListing(rows=rows, asked_at=time.time(), had_started={})


def row(run: Run, reason: str, state: str = "PENDING") -> JobRow:
    return JobRow(job_id=str(run.slurm_job_id), tasks=None, state=state, reason=reason, name=run.id, nodes="")


def current(lab: Lab, run: Run) -> Run:
    return run_verbs.get(lab, run.id)


def held_alerts(lab: Lab, status: str = "pending") -> list[Alert]:
    return alerts.page(lab, status, None, None, 100, None)[0]


@pytest.mark.parametrize(
    ("printed", "status", "reason"),
    [
        ("7|CANCELLED by 1000|None assigned|{run}", RunStatus.STOPPED, "cancelled in Slurm"),
        ("7|TIMEOUT|gpu[01-02]|{run}", RunStatus.FAILED, "time_limit"),
        ("7|OUT_OF_MEMORY|gpu01|{run}", RunStatus.FAILED, "out_of_memory"),
        ("7|NODE_FAIL|gpu01|{run}", RunStatus.LOST, "node_fail"),
    ],
)
def test_forgotten_job_ends_as_the_accounting_says(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, printed: str, status: RunStatus, reason: str
) -> None:
    run, reports = sent(lab, 7), SlurmReports(lab, lambda _: None)
    asked: list[str] = []
    monkeypatch.setattr(lab.slurm, "recall", lambda run: asked.append(run.id))
    hear(lab, reports, seen())
    hear(lab, reports, seen())
    assert asked == [run.id], "once, whatever the number of looks"
    assert current(lab, run).status is RunStatus.LAUNCHING
    (found,) = read_sacct(printed.format(run=run.id))
    hear(lab, reports, Recalled(rows={run.id: found}), seen())
    assert (current(lab, run).status, current(lab, run).status_reason) == (status, reason)


def test_job_that_nobody_remembers_is_lost(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run, reports = sent(lab, 7), SlurmReports(lab, lambda _: None)
    monkeypatch.setattr(lab.slurm, "recall", lambda _: None)
    hear(lab, reports, seen(), Recalled(rows={run.id: None}), seen())
    assert current(lab, run).status is RunStatus.LOST
    assert "knows nothing of job 7" in str(current(lab, run).error)


@pytest.mark.parametrize(("has_started", "status"), [(False, RunStatus.STOPPED), (True, RunStatus.LOST)])
def test_task_missing_from_its_array_was_cancelled_unless_it_had_started(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, has_started: bool, status: RunStatus
) -> None:
    monkeypatch.setattr(lab.slurm, "recall", lambda _: None)
    runs, reports = [sent(lab, f"7_{task}", f"r{task}") for task in (0, 1)], SlurmReports(lab, lambda _: None)
    array = lab.paths.array("array-x")
    Path(array.dir).mkdir(parents=True)
    write_json(array.runs, {"run_ids": [run.id for run in runs]})
    if has_started:
        Path(array.log(1)).touch()
    left = JobRow(job_id="7", tasks=(0,), state="PENDING", reason="Priority", name="array-x", nodes="")
    hear(lab, reports, seen(left), Recalled(rows={runs[1].id: None}), seen(left))
    assert [current(lab, run).status for run in runs] == [RunStatus.LAUNCHING, status]


@pytest.mark.parametrize(("job", "tasks"), [("7", None), ("7_1", (0, 1))])
def test_renamed_job_is_recognized_by_its_number(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, job: str, tasks: tuple[int, ...] | None
) -> None:
    monkeypatch.setattr(lab.slurm, "recall", lambda _: None)
    run, reports = sent(lab, job), SlurmReports(lab, lambda _: None)
    renamed = JobRow(job_id="7", tasks=tasks, state="PENDING", reason="Priority", name="mine", nodes="")
    hear(lab, reports, seen(renamed), Recalled(rows={run.id: None}), seen(renamed))
    assert (current(lab, run).status, current(lab, run).status_reason) == (
        RunStatus.LAUNCHING,
        "Slurm: pending (Priority)",
    )


def test_job_name_counts_more_than_its_number(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers start again from 1 at some time."""
    monkeypatch.setattr(lab.slurm, "recall", lambda _: None)
    run, other, reports = sent(lab, 7), sent(lab, 8), SlurmReports(lab, lambda _: None)
    of_other = replace(row(other, "Priority"), job_id="7")
    hear(lab, reports, seen(of_other), Recalled(rows={run.id: None}), seen(of_other))
    assert [current(lab, one).status for one in (run, other)] == [RunStatus.LOST, RunStatus.LAUNCHING]


def test_waiting_time_of_a_requeued_job_before_a_query_is_not_work_time(lab: Lab) -> None:
    run = move(lab, sent(lab, 7), RunStatus.RUNNING, started_at="2020-01-01T00:00:00.000Z")
    heartbeat = Path(lab.paths.run(run.id).heartbeat)
    heartbeat.parent.mkdir(parents=True, exist_ok=True)
    heartbeat.touch()
    last_seen = epoch_seconds("2020-01-01T00:50:00.000Z")
    os.utime(heartbeat, (last_seen, last_seen))
    hear(lab, SlurmReports(lab, lambda _: None), replace(seen(row(run, "BeginTime")), had_started={run.id: 1}))
    assert (current(lab, run).attempt, current(lab, run).earlier_seconds) == (2, 3000.0)


def test_sacct_is_queried_for_whole_jobs_without_truncation() -> None:
    assert sacct_arguments(["7", "8_3"]) == [
        "sacct", "--noheader", "--allocations", "--parsable2", "--format=JobID,State,NodeList,JobName", "--jobs=7,8_3",
    ]  # fmt: skip
    (task,) = read_sacct("8_3|COMPLETED|n1|array-x\nnot a row\n")
    assert (task.job_id, task.tasks, task.state, task.nodes) == ("8", (3,), "COMPLETED", "n1")


def test_many_held_jobs_are_one_alert_that_follows_them(lab: Lab) -> None:
    runs, reports = [sent(lab, number, f"r{number}") for number in (1, 2, 3)], SlurmReports(lab, lambda _: None)
    hear(lab, reports, seen(*(row(run, STUCK) for run in runs)))
    (alert,) = held_alerts(lab)
    assert (alert.rule, alert.choices) == ("slurm_held", ("ignore",))
    assert "3 jobs" in alert.message and "scontrol release 1,2,3" in alert.message
    hear(lab, reports, seen(*(row(run, STUCK) for run in runs[:2]), row(runs[2], "Resources")))
    (alert,) = held_alerts(lab)
    assert "scontrol release 1,2 " in alert.message
    hear(lab, reports, seen(row(runs[0], "Resources"), row(runs[1], STUCK), row(runs[2], "Resources")))
    (alert,) = held_alerts(lab)
    assert (alert.run_id, alert.choices) == (runs[1].id, ("ignore", "stop"))
    hear(lab, reports, seen(*(row(run, "Resources") for run in runs)))
    assert held_alerts(lab) == []


def test_ignored_held_jobs_raise_no_further_alert(lab: Lab) -> None:
    runs, reports = [sent(lab, number, f"r{number}") for number in (1, 2)], SlurmReports(lab, lambda _: None)
    look = seen(*(row(run, STUCK) for run in runs))
    hear(lab, reports, look)
    alerts.respond(lab, held_alerts(lab)[0].id, "ignore", PERSON)
    hear(lab, reports, look, seen(row(runs[1], STUCK)))
    assert held_alerts(lab) == []


def test_stop_that_waits_for_sbatch_says_so(lab: Lab) -> None:
    run, reports = sent(lab, 7), SlurmReports(lab, lambda _: None)
    hear(lab, reports, StopDelayed(run_id=run.id, message="sbatch has not answered yet"))
    assert current(lab, run).status_reason == "sbatch has not answered yet"
