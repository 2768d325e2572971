"""Failed or stopped parts of an approved plan: the report names them, and the next execution repeats only those."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path

import pytest

from labwright.domain.run import RunStatus
from labwright.planning.record.state import read_state
from labwright.planning.run_mode import experiments_with_failed_runs, note_failed
from labwright.services.runs import verbs as run_verbs
from labwright.services.sweeps import verbs as sweep_verbs
from tests.support.planned_project import PERSON, execute, plan_of, runs_of_plan, working_lab
from tests.support.run_mode_project import ONCE, RUNS, copied, make_planned, numbers_of, report_of, starts
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planned(tmp_path_factory.mktemp("planned"))


@pytest.fixture
def project(planned: Path, tmp_path: Path) -> Path:
    return copied(planned, tmp_path)


def test_failed_configuration_is_counted_and_does_not_end_the_plan(project: Path) -> None:
    (project / "fail.txt").write_text("0.2")
    with working_lab(project) as lab:
        assert execute(lab, plan_of(project)).completed
    text, (experiment,) = report_of(project), numbers_of(project)["experiments"]
    failed = next(found for found in experiment["configurations"] if found["params"] == {"lr": 0.2})
    assert (failed["n"], failed["progress"]) == (0, {"failed": 2})
    assert "    lr 0.2 <b>explodes</b> | `here`" in text  # the run's own message, in an indented block
    assert "- [ ] Every run ends" in text and "2 of 4 runs" in text


def test_branches_fail_independently_and_the_report_says_what_to_do(project: Path) -> None:
    (project / "fail.txt").write_text("0.1")  # the baseline
    with working_lab(project) as lab:
        outcome = execute(lab, plan_of(project))
    assert not outcome.completed and outcome.reason.startswith("compare_with_baseline: ")
    steps = {name: step["status"] for name, step in numbers_of(project)["steps"].items()}
    assert (steps["compare_with_baseline"], steps["choose_best"], steps["write_table"]) == (
        "failed",
        "finished",
        "finished",
    )
    text = report_of(project)
    assert "What failed, and what to do" in text and "labwright logs run-" in text
    assert re.search(r"would have given, and `labwright plan execute plan-\w+` makes them again; if not: ", text)


def test_if_every_run_fails_their_message_is_the_reason_and_all_are_repeated(
    project: Path,
) -> None:
    (project / "fail.txt").write_text("0.1 0.2")
    with working_lab(project) as lab:
        outcome = execute(lab, plan_of(project))
        text = report_of(project)
        (project / "fail.txt").unlink()  # not an approved file: the missing one is there now
        again = execute(lab, plan_of(project))
    assert re.match(r"train: no run finished with val_acc\. run-\w+ failed: lr 0\.\d <b>explodes</b>", outcome.reason)
    assert "No run finished with a value" in text and "`labwright plan execute plan-" in text
    assert again.completed and starts(project) == ONCE + ONCE


def test_stopped_sweep_fails_its_step_and_unfinished_runs_are_repeated(
    project: Path,
) -> None:
    (project / "hold.txt").touch()
    (project / "go-0.1").touch()
    handle, ended, facts = plan_of(project), [], []
    with working_lab(project) as lab:
        thread = threading.Thread(target=lambda: ended.append(execute(lab, handle, facts)))
        thread.start()
        wait_until(lambda: "0.2 0" in starts(project), "the second configuration to start")
        done = {run.id for run in runs_of_plan(lab, handle) if run.status is RunStatus.FINISHED}
        (sweep_id,) = {fact["sweep_id"] for fact in facts if fact["fact"] == "launched"}
        sweep_verbs.pause(lab, sweep_id, PERSON)
        wait_until(lambda: [fact for fact in facts if fact["fact"] == "paused"], "the pause to be told")
        sweep_verbs.stop(lab, sweep_id, PERSON)
        thread.join()
        assert "was stopped" in ended[0].reason and not ended[0].completed
        (project / "hold.txt").unlink()
        assert execute(lab, handle).completed
    (experiment,) = numbers_of(project)["experiments"]
    first, second = experiment["sweep_ids"]
    assert first == sweep_id and len(experiment["runs"]) == len(RUNS)
    assert f"Sweeps `{first}` and `{second}`." in report_of(project)
    assert done and done < {run["run_id"] for run in experiment["runs"]}
    assert all(starts(project)[f"0.1 {seed}"] == 1 for seed in (0, 1))
    assert all(criterion["met"] for criterion in numbers_of(project)["success_criteria"])


def test_only_failed_runs_are_repeated(project: Path) -> None:
    (project / "fail.txt").write_text("0.1/1")  # one seed of one configuration
    handle = plan_of(project)
    handoff = read_state(handle).handoff
    assert handoff is not None
    with working_lab(project) as lab:
        assert execute(lab, handle).completed
        assert re.search(r"`labwright plan execute plan-\w+` makes again those that did not finish", report_of(project))
        (project / "fail.txt").unlink()
        execute(lab, handle)  # as after a restart: nobody requested them
        assert starts(project) == ONCE
        assert experiments_with_failed_runs(lab, handle, handoff) == ["train"]
        note_failed(handle, ["train"], "some of its runs failed")
        assert experiments_with_failed_runs(lab, handle, handoff) == ["train"]  # even if a kill came now
        assert execute(lab, handle).completed
        assert experiments_with_failed_runs(lab, handle, handoff) == []
    (experiment,) = numbers_of(project)["experiments"]
    assert starts(project) == ONCE + Counter(["0.1 1"])
    assert len(experiment["sweep_ids"]) == 2 and not experiment["failed"]
    assert {found["n"] for found in experiment["configurations"]} == {2}


def test_failed_runs_are_repeated_even_after_they_were_deleted(project: Path) -> None:
    (project / "fail.txt").write_text("0.1/1")
    handle = plan_of(project)
    handoff = read_state(handle).handoff
    assert handoff is not None
    with working_lab(project) as lab:
        assert execute(lab, handle).completed
        (failed,) = [run for run in runs_of_plan(lab, handle) if run.status is RunStatus.FAILED]
        run_verbs.archive(lab, failed.id, PERSON)
        run_verbs.delete(lab, failed.id, PERSON)
        assert experiments_with_failed_runs(lab, handle, handoff) == ["train"]


def test_runs_being_retried_are_waited_for_and_not_duplicated(project: Path) -> None:
    (project / "fail.txt").write_text("0.1/1")
    handle, facts = plan_of(project), []
    with working_lab(project) as lab:
        assert execute(lab, handle).completed
        (project / "fail.txt").unlink()
        (project / "hold.txt").touch()
        (sweep_id,) = {run.sweep_id for run in runs_of_plan(lab, handle) if run.sweep_id}
        sweep_verbs.retry_failed(lab, sweep_id, PERSON)
        wait_until(lambda: starts(project)["0.1 1"] == 2, "the retry to start")
        note_failed(handle, ["train"], "some of its runs failed")
        thread = threading.Thread(target=lambda: execute(lab, handle, facts))
        thread.start()
        wait_until(lambda: [fact for fact in facts if fact.get("step") == "train"], "the step to begin")
        (project / "hold.txt").unlink()
        thread.join()
    (experiment,) = numbers_of(project)["experiments"]
    assert starts(project) == ONCE + Counter(["0.1 1"])
    assert experiment["sweep_ids"] == [sweep_id] and not experiment["failed"]


def test_report_of_a_stopped_plan_waits_for_ending_runs(project: Path) -> None:
    (project / "hold.txt").touch()
    (project / "slow.txt").touch()
    handle, ended, facts = plan_of(project), [], []
    with working_lab(project) as lab:
        thread = threading.Thread(target=lambda: ended.append(execute(lab, handle, facts)))
        thread.start()
        wait_until(lambda: starts(project), "a run to start")
        (sweep_id,) = {fact["sweep_id"] for fact in facts if fact["fact"] == "launched"}
        sweep_verbs.stop(lab, sweep_id, PERSON)
        wait_until((project / "asked.txt").exists, "the run to be asked to end")
        assert thread.is_alive() and not (handle.paths.results / "report.md").exists()
        (project / "slow.txt").unlink()
        thread.join()
    (experiment,) = numbers_of(project)["experiments"]
    assert {run["status"] for run in experiment["runs"]} == {"stopped"}
