"""Orders to Slurm are carried out one after the other, whatever happens to one of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.launcher import Launch
from labwright.compute.slurm import submit as batch
from labwright.compute.slurm.commands import SlurmCommands
from labwright.compute.slurm.job_book import JobBook
from labwright.compute.slurm.jobs import (
    Cancelled,
    NotSubmitted,
    OrderOutcome,
    Recalled,
    SlurmReport,
    StopDelayed,
    Submitted,
    Troubled,
)
from labwright.compute.slurm.launcher import SlurmLauncher
from labwright.compute.slurm.orders import HOLD, Cancelling, CancelOrder, Holding, HoldOrder
from labwright.compute.slurm.resources import SlurmDefaults
from labwright.compute.slurm.submit import Submission
from labwright.domain.run import Run
from labwright.paths import ProjectPaths
from tests.support.waiting import wait_until

Launcher = Callable[..., SlurmLauncher]


def run(number: int, **facts: Any) -> Run:
    base = {"name": "x", "command": "true", "workdir": "/w", "created_at": "t", "created_by": "me"}
    return Run(**{"id": f"run-{number:010d}", "run_dir": f"/runs/{number}", **base, **facts})


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    made: list[SlurmLauncher] = []

    def make(**scripts: str) -> SlurmLauncher:
        for program, script in scripts.items():
            (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / program).chmod(0o755)
        commands = SlurmCommands({"PATH": f"{tmp_path}:{os.defpath}"})
        made.append(SlurmLauncher(commands, SlurmDefaults(), ProjectPaths(tmp_path), grace_seconds=1))
        return made[-1]

    yield make
    for one in made:
        one.close()


def next_report(launcher: SlurmLauncher) -> SlurmReport:
    (report,) = wait_until(launcher.reports, "a report")
    return report


def test_sbatch_without_a_job_id_fails_its_run_and_the_next_goes_on(launcher: Launcher) -> None:
    sbatch = 'case "$*" in *run-0000000001*) echo "sbatch: Job 7 to start at noon" >&2;; *) echo 8;; esac'
    slurm = launcher(sbatch=sbatch, squeue="true")
    slurm.launch([Launch(run(1), {})])
    refused = next_report(slurm)
    assert isinstance(refused, NotSubmitted)
    assert refused.for_good and "to start at noon" in refused.message
    slurm.launch([Launch(run(2), {})])
    assert next_report(slurm) == Submitted(job_ids={run(2).id: "8"})


def test_job_not_named_by_sbatch_is_found_by_its_name(launcher: Launcher) -> None:
    slurm = launcher(sbatch="echo thank you", squeue='case "$*" in *--name=run-0000000001*) echo 12;; esac')
    slurm.launch([Launch(run(1), {})])
    assert next_report(slurm) == Submitted(job_ids={run(1).id: "12"})


def test_run_is_in_doubt_if_nobody_knows_its_job(launcher: Launcher) -> None:
    slurm = launcher(sbatch="true", squeue="echo 'Unable to contact slurm controller' >&2; exit 1")
    slurm.launch([Launch(run(1), {})])
    report = next_report(slurm)
    assert isinstance(report, NotSubmitted)
    assert report.in_doubt and not report.for_good


def test_unexpected_failure_is_reported_and_the_next_order_goes_on(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = launcher(sbatch="echo 8")
    monkeypatch.setattr(batch, "_literal", lambda _: 1 / 0)
    slurm.launch([Launch(run(1), {})])
    report = next_report(slurm)
    assert isinstance(report, NotSubmitted)
    assert report.in_doubt and "ZeroDivisionError" in report.message
    assert "ZeroDivisionError" in slurm.fault
    monkeypatch.undo()
    slurm.launch([Launch(run(1), {})])
    assert next_report(slurm) == Submitted(job_ids={run(1).id: "8"})
    assert slurm.fault == ""


def test_stop_that_fails_unexpectedly_is_reported_and_retried(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = launcher(scancel="true")
    monkeypatch.setattr("labwright.compute.slurm.launcher.TRY_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(JobBook, "has_started", lambda *_: 1 / 0)
    slurm.nudge(run(1, slurm_job_id="5"))
    assert isinstance(next_report(slurm), Troubled)
    monkeypatch.undo()
    wait_until(lambda: Cancelled(run_id=run(1).id) in slurm.reports(), "the stop")
    assert slurm.fault == ""


def test_unreadable_run_does_not_keep_others_from_slurm(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm, options = launcher(sbatch="echo 8"), batch.sbatch_options
    monkeypatch.setattr(
        batch, "sbatch_options", lambda run, defaults: options(run, defaults) if run.command != "bad" else 1 / 0
    )
    slurm.launch([Launch(run(1, command="bad"), {}), Launch(run(2), {})])
    reports: list[SlurmReport] = []
    wait_until(lambda: reports.extend(slurm.reports()) or len(reports) == 2, "both")
    refused, sent = reports
    assert isinstance(refused, NotSubmitted)
    assert refused.for_good and refused.run_ids == (run(1).id,)
    assert sent == Submitted(job_ids={run(2).id: "8"})


def test_stop_does_not_wait_for_a_hanging_sbatch(launcher: Launcher, tmp_path: Path) -> None:
    """An unsent job is never sent. A job that is being sent waits and is then cancelled by its id."""
    sbatch = f"touch {tmp_path}/called; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo 8"
    slurm = launcher(sbatch=sbatch, scancel=f'echo "$@" > {tmp_path}/cancelled')
    slurm.launch([Launch(run(1), {})])
    wait_until((tmp_path / "called").exists, "sbatch")
    slurm.launch([Launch(run(2), {})])
    slurm.nudge(run(2))
    assert next_report(slurm) == Cancelled(run_id=run(2).id)
    slurm.nudge(run(1))
    delayed = next_report(slurm)
    assert isinstance(delayed, StopDelayed) and "sbatch has not answered" in delayed.message
    (tmp_path / "go").touch()
    reports: list[SlurmReport] = []
    wait_until(lambda: reports.extend(slurm.reports()) or len(reports) == 2, "both")
    assert reports == [Submitted(job_ids={run(1).id: "8"}), Cancelled(run_id=run(1).id)]
    assert (tmp_path / "cancelled").read_text() == "8\n"


def test_tasks_of_an_array_are_cancelled_and_held_by_one_order(tmp_path: Path) -> None:
    """One order for each of a thousand tasks would slow the controller down for everybody."""
    for program in ("scancel", "scontrol", "squeue"):
        (tmp_path / program).write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said-to-{program}\n')
        (tmp_path / program).chmod(0o755)
    with (tmp_path / "squeue").open("a") as listing:
        listing.write("printf 'JOBID\\037STATE\\037REASON\\037NAME\\037NODELIST\\n'\n")
    commands, paths = SlurmCommands({"PATH": f"{tmp_path}:{os.defpath}"}), ProjectPaths(tmp_path)
    jobs = ["3", *(f"7_{task}" for task in range(1500) if task != 4), "8_2"]
    runs = [run(number, slurm_job_id=job) for number, job in enumerate(jobs)]
    told: list[OrderOutcome] = []
    cancelling = Cancelling(commands, paths, JobBook(paths), told.append, grace_seconds=1)
    assert cancelling.carry_out([CancelOrder(run=run) for run in runs]) == []
    assert told == [Cancelled(run_id=run.id) for run in runs]
    assert (tmp_path / "said-to-scancel").read_text() == "3 7_[0-3,5-999]\n7_[1000-1499] 8_2\n"
    for held in runs[:3]:
        os.makedirs(paths.run(held.id).dir)
    Holding(commands, paths, JobBook(paths)).carry_out([HoldOrder(verb=HOLD, run=run) for run in runs[:3]])
    assert (tmp_path / "said-to-scontrol").read_text() == "uhold 3,7_[0-1]\n"


def test_job_that_ignores_signals_is_ended_by_slurm_after_the_grace_period(tmp_path: Path) -> None:
    """For example a suspended job: it gets no signal, and its sidecar does not see the stop."""
    refuses = '[ "$1" != --batch ] || { echo "Job can not be altered now" >&2; exit 1; }'
    (tmp_path / "scancel").write_text(f"#!/bin/sh\n{refuses}\n")
    (tmp_path / "scancel").chmod(0o755)
    commands, paths = SlurmCommands({"PATH": f"{tmp_path}:{os.defpath}"}), ProjectPaths(tmp_path)
    begun = run(1, slurm_job_id="17")
    os.makedirs(paths.run(begun.id).dir)
    Path(paths.run(begun.id).claim(1)).touch()
    cancelling = Cancelling(commands, paths, JobBook(paths), lambda _: None, grace_seconds=1)
    told_at = time.monotonic()
    (later,) = cancelling.carry_out([CancelOrder(run=begun)])
    assert later.hard and later.not_before > told_at + 1
    assert cancelling.carry_out([later]) == []


ACCOUNTS = "echo 'AccountingStorageType = accounting_storage/slurmdbd'"


def test_accounting_is_queried_once_for_all_jobs_and_matched_by_name(launcher: Launcher, tmp_path: Path) -> None:
    said = f"echo '7|TIMEOUT|n1|{run(1).id}'; echo '8|FAILED|n1|of somebody else'; echo '9|RUNNING|n1|{run(3).id}'"
    slurm = launcher(scontrol=ACCOUNTS, sinfo="echo slurm 24.05.1", sacct=f"echo x >> {tmp_path}/calls; {said}")
    for number, job in ((1, "7"), (2, "8"), (3, "9")):
        slurm.recall(run(number, slurm_job_id=job))
    told = next_report(slurm)
    assert isinstance(told, Recalled)
    rows = {run_id: row and row.state for run_id, row in told.rows.items()}
    assert rows == {run(1).id: "TIMEOUT", run(2).id: None, run(3).id: None}
    assert (tmp_path / "calls").read_text() == "x\n"


@pytest.mark.parametrize(
    "scripts",
    [
        {"scontrol": "echo 'AccountingStorageType = (null)'", "sacct": "echo '7|TIMEOUT|n1|run-0000000001'"},
        {"scontrol": ACCOUNTS, "sacct": "echo 'Unable to connect to database' >&2; exit 1"},
        {"scontrol": ACCOUNTS, "sacct": "echo '7_[x|y|z|q'"},
    ],
)
def test_without_accounting_nothing_is_known(launcher: Launcher, scripts: dict[str, str]) -> None:
    slurm = launcher(sinfo="echo slurm 24.05.1", **scripts)
    slurm.recall(run(1, slurm_job_id="7"))
    assert next_report(slurm) == Recalled(rows={run(1).id: None})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_dead_thread_is_started_again(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = launcher(sbatch="echo 8")
    monkeypatch.setattr(Submission, "send_all", lambda *_: exec("raise SystemExit"))
    slurm.launch([Launch(run(1), {})])
    wait_until(lambda: slurm._thread is not None and not slurm._thread.is_alive(), "its end")
    monkeypatch.undo()
    slurm.launch([Launch(run(2), {})])
    assert next_report(slurm) == Submitted(job_ids={run(2).id: "8"})


def test_first_tasks_of_an_array_above_the_queue_limit_are_sent(launcher: Launcher) -> None:
    """Otherwise a sweep of 300 would wait forever if a user may have 100 jobs."""
    sbatch = """
for word; do case "$word" in --array=0-*) last=${word#--array=0-};; esac; done
[ "${last:-0}" -lt 3 ] && { echo 9; exit; }
echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2
echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)" >&2
exit 1
"""
    slurm = launcher(sbatch=sbatch, scontrol="true", sinfo="echo slurm 24.05.2")
    slurm.launch([Launch(run(number), {}) for number in range(10)])
    reports: list[SlurmReport] = []
    wait_until(lambda: reports.extend(slurm.reports()) or len(reports) == 3, "all reports")
    (sent,) = [report for report in reports if isinstance(report, Submitted)]
    assert sent.job_ids == {run(number).id: f"9_{number}" for number in range(3)}
    later = [report for report in reports if isinstance(report, NotSubmitted)]
    assert not any(report.for_good or report.in_doubt for report in later)
    assert sorted(run_id for report in later for run_id in report.run_ids) == [
        run(number).id for number in range(3, 10)
    ]
    assert not slurm.silence, "some were taken: the rest is tried again soon"
