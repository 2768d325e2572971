"""A wild loop: baseline, iterations, decisions, and everything that ends or pauses it."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.wild import engine, records, verbs
from labwright.agent.wild.engine import Engine
from labwright.agent.wild.spending import Purse
from labwright.agent.wild.worker import WildWorker
from labwright.compute.database.rebuild import rebuild
from labwright.compute.lab import Lab
from labwright.domain.actor import PERSON, Actor, Scope
from labwright.domain.alert import AlertStatus
from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.errors import Conflict, Forbidden, Invalid, NotFound
from labwright.domain.sweep import SweepStatus
from labwright.domain.wild import IterationVerdict, WildStatus
from labwright.files import read_json
from labwright.services import alerts
from labwright.services.runs import verbs as runs
from labwright.services.sweeps import verbs as sweep_verbs
from labwright.store import sweeps
from tests.support.lab import lab_in
from tests.support.waiting import wait_until
from tests.support.wilding import TRACEBACK, Bench, peak, write_project

AGENT = Actor(Scope.AGENT, "tester")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_in(write_project(tmp_path / "project"), max_parallel=2) as opened:
        yield opened


def verdicts(bench: Bench) -> list[IterationVerdict | None]:
    return [iteration.verdict for iteration in bench.wild.iterations]


def asked(bench: Bench) -> Any:
    found, _ = alerts.page(bench.lab, AlertStatus.PENDING, None, None, 10, None)
    return next(alert for alert in found if alert.wild_id == bench.id)


def test_loop_reaches_its_criterion_with_evidence(lab: Lab) -> None:
    bench = Bench(lab)
    wild = bench.go()
    assert wild.status is WildStatus.COMPLETED
    assert wild.baseline and wild.best and wild.best["mean"] >= 0.9 and wild.best["n"] == 3
    assert wild.iterations[0].verdict is IterationVerdict.BASELINE
    proof = wild.iteration(wild.best["number"]).run_ids
    assert all(run_id in wild.status_reason for run_id in proof)
    assert sweeps.get(lab.db.reader(), wild.sweep_id).status is SweepStatus.COMPLETED
    assert wild.used["runs"] == len(bench.run_ids())


def test_report_has_every_number_beside_its_runs(lab: Lab) -> None:
    bench = Bench(lab, "lr 0.01, 0.2 and 0.3: reach val_acc 0.9")
    wild = bench.go(lambda params, seed: TRACEBACK if params["lr"] < 0.02 else peak(params, seed))
    assert wild.report is not None and wild.best is not None
    for heading in ("What is established", "What was tried", "What failed", "What it took"):
        assert f"## {heading}" in wild.report
    for iteration in wild.iterations:
        assert all(run_id in wild.report for run_id in iteration.run_ids)
    assert f"python3 train.py --lr {wild.best['params']['lr']:g} --seed 0" in wild.report


def test_better_run_is_confirmed_by_the_other_seeds(lab: Lab) -> None:
    """A lucky first seed is not kept, and a worse one costs no further runs."""
    bench = Bench(lab, "lr 0.2 and 0.4, highest val_acc", parallel=1)
    values = {0.1: (0.50, 0.51, 0.52), 0.2: (0.60, 0.40, 0.52), 0.4: (0.30, 0.0, 0.0)}
    wild = bench.go(lambda params, seed: values[params["lr"]][seed])
    by_lr = {iteration.params["lr"]: iteration for iteration in wild.iterations}
    assert len(by_lr[0.2].run_ids) == 3 and by_lr[0.2].verdict is IterationVerdict.DROP
    assert len(by_lr[0.4].run_ids) == 1 and by_lr[0.4].verdict is IterationVerdict.DROP
    assert wild.best == wild.baseline
    assert wild.status_reason == "every configuration of the search space was tried"


def test_unlucky_first_seed_hides_no_improvement(lab: Lab) -> None:
    """It is compared with the best configuration's result for the same seed, not with the mean of all."""
    bench = Bench(lab, "lr 0.2 and 0.4, highest val_acc", parallel=1)
    values = {0.1: (0.30, 0.50, 0.52), 0.2: (0.40, 0.70, 0.72), 0.4: (0.30, 0.0, 0.0)}
    wild = bench.go(lambda params, seed: values[params["lr"]][seed])
    by_lr = {iteration.params["lr"]: iteration for iteration in wild.iterations}
    assert len(by_lr[0.2].run_ids) == 3
    assert len(by_lr[0.4].run_ids) == 1 and "with the same seed" in by_lr[0.4].decision["reason"]


def test_loop_ends_when_nothing_improves_beyond_noise(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PATIENCE", 4)
    noise = itertools.cycle([0.50, 0.53, 0.47, 0.51, 0.49])
    bench = Bench(lab, budget={"runs": 200})
    wild = bench.go(lambda _params, _seed: next(noise))
    assert wild.status is WildStatus.COMPLETED
    assert wild.status_reason == "nothing improved beyond noise in the last 4 tries"
    assert set(verdicts(bench)[1:]) == {IterationVerdict.DROP}
    assert "Nothing that was tried beats the baseline" in (wild.report or "")


def test_failing_baseline_fails_the_loop(lab: Lab) -> None:
    wild = Bench(lab).go(lambda _params, _seed: TRACEBACK)
    assert wild.status is WildStatus.FAILED
    assert "gives nothing to compare with" in wild.status_reason


def test_run_without_the_metric_names_the_logged_ones(lab: Lab) -> None:
    wild = Bench(lab).go(lambda _params, _seed: None)
    assert wild.status is WildStatus.FAILED
    assert "without a value of val_acc; it logged nothing" in wild.status_reason


def test_loop_asks_when_its_budget_ends_and_never_exceeds_it(lab: Lab) -> None:
    bench = Bench(lab, budget={"runs": 5})
    wild = bench.go(lambda params, seed: 0.5 + seed * 0.01 + params["lr"] / 100)
    assert (wild.status, len(bench.run_ids())) == (WildStatus.PAUSED, 5)
    assert "5 runs were started and the budget is 5" in wild.status_reason
    assert wild.report and asked(bench).choices == ("raise", "stop")
    with pytest.raises(Conflict, match="does not allow another run"):
        verbs.resume(lab, bench.id, PERSON)
    with pytest.raises(Forbidden):
        verbs.resume(lab, bench.id, AGENT, {"runs": 9})
    verbs.resume(lab, bench.id, PERSON, {"runs": 7})
    assert bench.go(peak, 20).status is WildStatus.PAUSED
    assert len(bench.run_ids()) == 7


def test_answer_to_the_alert_is_carried_out_even_after_a_restart(lab: Lab) -> None:
    bench = Bench(lab, budget={"runs": 4})
    bench.go()
    with pytest.raises(Forbidden, match="Only a person"):
        alerts.respond(lab, asked(bench).id, "raise", AGENT)
    alerts.respond(lab, asked(bench).id, "raise", PERSON)
    assert bench.wild.status is WildStatus.PAUSED
    worker = WildWorker(lab, bench.proposers)  # as a server that was down when the answer came
    worker.start()
    try:
        wait_until(lambda: bench.wild.status is WildStatus.WAITING, "the loop to go on")
        assert bench.wild.budget["runs"] == 8
    finally:
        worker.close()


def test_runs_share_the_remaining_gpu_hours_as_time_limits(lab: Lab) -> None:
    lab.cluster.current = Cluster(type=ClusterType.LOCAL_GPU, gpu_count=2)
    bench = Bench(lab, budget={"gpu_hours": 3, "runs": 40})
    bench.advance()
    limits = [runs.get(lab, run_id).time_limit_seconds for run_id in bench.run_ids()]
    assert limits == [3600.0] * 3
    allowed = Purse(lab, bench.wild).allow(1)
    assert allowed.short and allowed.short[0] == "gpu_hours"  # all of it is reserved by limits of active runs


def test_budget_of_time_stops_active_runs(lab: Lab) -> None:
    bench = Bench(lab, budget={"wall_seconds": 1000})
    bench.advance()
    with lab.db.transaction() as tx:
        late = bench.wild.evolve(active_seconds=2000.0)
        verbs.change(lab, tx, bench.wild, late, PERSON)
    wild = bench.advance()
    assert not bench.unfinished()  # they were queued
    assert (wild.status, bench.advance().status) == (WildStatus.PAUSED, WildStatus.PAUSED)
    assert "all of its 1000 s" in wild.status_reason


def test_changed_evaluation_file_stops_the_loop(lab: Lab) -> None:
    (lab.paths.project / "evaluate.py").write_text("LIMIT = 1\n")
    (lab.paths.project / "elsewhere").write_text("mine\n")
    (lab.paths.project / "notes").symlink_to("elsewhere")
    bench = Bench(lab, protect=("notes",))
    assert {entry["path"] for entry in bench.wild.protected} == {"evaluate.py", "notes"}
    bench.advance()
    bench.end_runs(peak)
    bench.advance()
    (lab.paths.project / "evaluate.py").write_text("LIMIT = 2\n")
    bench.end_runs(lambda _params, _seed: 0.99)
    wild = bench.advance()
    assert wild.status is WildStatus.STOPPED
    assert "evaluate.py" in wild.status_reason and "evaluate.py" in asked(bench).message
    assert wild.best == wild.baseline
    assert all(one.verdict is IterationVerdict.STOP and one.result is None for one in wild.iterations[1:])


def test_file_written_by_the_script_is_not_an_evaluation_file(lab: Lab) -> None:
    predictions = lab.paths.project / "val_predictions.csv"
    predictions.write_text("1\n")
    bench = Bench(lab)
    bench.advance()
    predictions.write_text("2\n")
    bench.end_runs(peak)
    wild = bench.advance()
    assert wild.baseline and wild.protected == ()
    assert "val_predictions.csv: written by the script itself" in wild.notes[-1]


def test_missing_path_cannot_be_protected(lab: Lab) -> None:
    with pytest.raises(Invalid, match=r"no nothing\.csv to protect"):
        Bench(lab, protect=("nothing.csv",))


def test_region_where_runs_failed_is_refused(lab: Lab) -> None:
    bench = Bench(lab, "lr 0.4, 0.41 and 0.42, highest val_acc", parallel=1)
    wild = bench.go(lambda params, seed: TRACEBACK if params["lr"] > 0.2 else peak(params, seed))
    assert len(bench.run_ids()) == 4  # the baseline, and the first failure
    failed = wild.iterations[1].run_ids[0]
    refused = [one.decision["reason"] for one in wild.iterations[2:] if one.decision]
    assert refused == [f"refused: {failed} failed in this region: ValueError: loss is nan"] * 2
    assert f"was not run; refused: {failed}" in (wild.report or "")


def test_pause_resume_and_stop(lab: Lab) -> None:
    bench = Bench(lab)
    bench.advance()
    verbs.pause(lab, bench.id, PERSON)
    assert verbs.view(lab, bench.wild)["iterations"][0]["status"] == "running"
    bench.end_runs(peak)
    assert bench.advance().status is WildStatus.PAUSED
    assert len(bench.wild.iterations) == 1 and bench.wild.iterations[0].is_open
    assert verbs.view(lab, bench.wild)["iterations"][0]["status"] == "ended"
    verbs.resume(lab, bench.id, PERSON)
    assert bench.advance().baseline
    wild = verbs.stop(lab, bench.id, PERSON)
    assert wild.status is WildStatus.STOPPED and wild.report
    assert not bench.unfinished()
    for verb in (verbs.stop, verbs.pause, verbs.resume):
        with pytest.raises(Conflict):
            verb(lab, bench.id, PERSON)


def test_stopping_its_sweep_stops_the_loop(lab: Lab) -> None:
    bench = Bench(lab)
    bench.advance()
    sweep_verbs.stop(lab, bench.wild.sweep_id, PERSON)
    assert bench.advance().status is WildStatus.STOPPED


def test_steering_by_rules_tries_values_next_and_narrows_ranges(lab: Lab) -> None:
    bench = Bench(lab, budget={"runs": 12})
    bench.advance()
    verbs.steer(lab, bench.id, "lr 0.29", PERSON)
    verbs.steer(lab, bench.id, "try lr between 0.2 and 0.4", PERSON)
    with pytest.raises(Invalid, match="found no flag"):
        verbs.steer(lab, bench.id, "be bold", PERSON)
    wild = bench.go(lambda params, seed: peak(params, seed) - 0.5)
    assert wild.iterations[1].params["lr"] == 0.29
    assert wild.iterations[1].hypothesis == "asked for: lr 0.29"
    assert [said["taken_in"] for said in wild.steering] == [2, 3]
    assert all(0.2 <= one.params["lr"] <= 0.4 for one in wild.iterations[1:])


class Killed(BaseException):
    pass


def test_kill_at_any_step_starts_nothing_twice(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill comes before and after every transaction of the engine, and after every created run."""
    bench = Bench(lab, "lr 0.2 and 0.3, highest val_acc", parallel=1)
    for module, name in ((records.Loop, "write"), (runs, "create")):
        monkeypatch.setattr(module, name, killing(getattr(module, name)))
    kills = 0
    for _ in range(200):
        try:
            Engine(lab, bench.proposers).advance(bench.id)
        except Killed:
            kills += 1
            continue
        if bench.wild.is_ended:
            break
        bench.end_runs(peak)
    wild = bench.wild
    assert wild.status is WildStatus.COMPLETED and kills > 10
    made = Counter(run_id for one in wild.iterations for run_id in one.run_ids)
    assert sorted(made) == sorted(bench.run_ids()) and set(made.values()) == {1}
    assert [one.number for one in wild.iterations] == [1, 2, 3]


def killing(call: Any) -> Any:
    """Die before or after the call, or not at all."""
    chance = random.Random(7)

    def dying(*args: Any, **given: Any) -> Any:
        moment = chance.choice(["before", "after", "never", "never", "never"])
        if moment == "before":
            raise Killed
        answer = call(*args, **given)
        if moment == "after":
            raise Killed
        return answer

    return dying


def test_record_survives_json(lab: Lab) -> None:
    bench = Bench(lab)
    bench.advance()
    wild = bench.wild
    assert type(wild).from_dict(json.loads(json.dumps(wild.to_dict()))) == wild
    assert replace(wild, status=wild.status) == wild


def test_loop_continues_from_its_file_and_a_paused_one_can_be_resumed(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    with lab_in(project, max_parallel=2) as lab:
        bench = Bench(lab, budget={"runs": 3})
        paused, made = bench.go(), bench.run_ids()
    lab.paths.database.unlink()
    assert rebuild(lab.paths).loops == 1
    with lab_in(project, max_parallel=2) as lab:
        bench = Bench(lab)
        assert paused.asked is not None and bench.wild == paused.evolve(asked=None)
        with pytest.raises(NotFound):
            alerts.get(lab, paused.asked)
        verbs.resume(lab, bench.id, PERSON, {"runs": 40})
        assert bench.go().status is WildStatus.COMPLETED
        assert set(made) < set(bench.run_ids())
        assert read_json(lab.paths.wild_loop(bench.id)) == json.loads(json.dumps(bench.wild.to_dict()))
