"""Limits of a sweep: budgets, failures, a metric that no run logs, hopeless runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_server import LiveServer
from tests.support.sweeping import alerts_of, gate, logs, make_sweep, runs_of, sweep_server, sweep_when
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with sweep_server(tmp_path_factory.mktemp("sweeps")) as server:
        yield server


def test_budget_of_runs_pauses_with_an_alert_and_raise_continues(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=logs("{a}"), parameters={"a": list(range(7))}, budget={"runs": 3})
    held = sweep_when(lab, made["id"], "paused")
    assert "budget" in held["status_reason"]
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["finished"] == 3, "the three to end")
    assert lab.get(f"/sweeps/{made['id']}")["progress"]["ready"] == 4
    (alert,) = alerts_of(lab, made["id"])
    assert (alert["choices"], alert["run_id"]) == (["raise", "stop"], None)
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "raise"})
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["finished"] == 6, "three more to end")
    held = sweep_when(lab, made["id"], "paused")
    assert (held["budget"], held["progress"]["ready"]) == ({"runs": 6}, 1)
    refused = lab.call("POST", f"/sweeps/{made['id']}/resume")
    assert (refused.status, "--runs N" in refused.json["error"]["hint"]) == (409, True)
    assert len(alerts_of(lab, made["id"])) == 1
    lab.post(f"/sweeps/{made['id']}/resume", {"budget": {"runs": 100}})
    assert sweep_when(lab, made["id"], "completed")["progress"]["finished"] == 7
    assert alerts_of(lab, made["id"]) == []


def test_budget_of_runs_alerts_when_they_have_started_not_when_one_ends(lab: LiveServer) -> None:
    """A run may take days; a user who wants more runs should know at its start."""
    wait = gate(lab, "long")
    fields = {"base_command": f": {{a}}; {wait}", "parallel": 2, "budget": {"runs": 1}, "metric": None}
    made = make_sweep(lab, parameters={"a": [1, 2]}, **fields)
    held = sweep_when(lab, made["id"], "paused")
    assert (held["progress"]["running"], held["progress"]["ready"]) == (1, 1)
    (alert,) = alerts_of(lab, made["id"])
    assert "Active runs continue (1)" in alert["message"]
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "raise"})
    (lab.project / "long").touch()
    assert sweep_when(lab, made["id"], "completed")["progress"]["finished"] == 2


def test_budget_of_time_counts_the_remaining_time_of_active_runs(lab: LiveServer) -> None:
    made = make_sweep(
        lab,
        base_command=": {a}; sleep 0.6",
        parameters={"a": list(range(20))},
        parallel=1,
        budget={"wall_seconds": 2.0},
    )
    held = sweep_when(lab, made["id"], "paused")
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["running"] == 0, "the last to end")
    assert 1 <= lab.get(f"/sweeps/{made['id']}")["progress"]["finished"] <= 3
    assert "budget is 2 s" in held["status_reason"]
    lab.post(f"/sweeps/{made['id']}/stop")


def test_run_that_exceeds_the_budget_raises_an_alert_while_active(lab: LiveServer) -> None:
    """The run goes on, since nobody asked to end it. The rest waits for an answer, and raise is one that helps."""
    wait = gate(lab, "late")
    fields = {"base_command": f": {{a}}; {wait}", "parallel": 1, "budget": {"wall_seconds": 4.0}, "metric": None}
    made = make_sweep(lab, parameters={"a": [1, 2]}, **fields)
    held = sweep_when(lab, made["id"], "paused")
    assert held["status_reason"].startswith("its budget is used up: it has been running for")
    assert (held["progress"]["running"], held["progress"]["ready"]) == (1, 1)
    (alert,) = alerts_of(lab, made["id"])
    assert alert["choices"] == ["raise", "stop"] and "Active runs continue (1)" in alert["message"]
    assert lab.call("POST", f"/sweeps/{made['id']}/resume").status == 409
    (lab.project / "late").touch()
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["finished"] == 1, "the first to end")
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "raise"})
    assert sweep_when(lab, made["id"], "completed")["progress"]["finished"] == 2


def test_sweep_over_budget_ends_by_itself_if_nothing_is_left_to_start(lab: LiveServer) -> None:
    wait = gate(lab, "last")
    fields = {"base_command": f": {{a}}; {wait}", "parallel": 1, "budget": {"wall_seconds": 4.0}, "metric": None}
    made = make_sweep(lab, parameters={"a": [1]}, **fields)
    sweep_when(lab, made["id"], "paused")
    assert len(alerts_of(lab, made["id"])) == 1
    (lab.project / "last").touch()
    assert sweep_when(lab, made["id"], "completed")["progress"]["finished"] == 1
    assert alerts_of(lab, made["id"]) == []


def test_sweep_in_which_everything_fails_pauses_and_says_so(lab: LiveServer) -> None:
    space = {"x": {"min": 0, "max": 1}}
    made = make_sweep(lab, base_command="exit 3", parameters=space, method="adaptive", max_runs=50, parallel=2)
    held = sweep_when(lab, made["id"], "paused")
    assert held["progress"]["total"] < 10
    assert "runs that ended failed" in held["status_reason"]
    (alert,) = alerts_of(lab, made["id"])
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "stop"})
    sweep_when(lab, made["id"], "stopped")


@pytest.mark.parametrize(
    ("command", "key", "why", "verdict"),
    [
        (logs("{x}"), "lss", "logged 'lss'; they logged loss", "No run has logged lss. Logged metrics: loss."),
        ("""echo '{"loss": NaN}'; true {x}""", "loss", "has a finite value of 'loss'", "NaN and infinity do not count"),
    ],
)
def test_metric_without_a_value_in_any_run_is_noticed(
    lab: LiveServer, command: str, key: str, why: str, verdict: str
) -> None:
    made = make_sweep(
        lab,
        base_command=command,
        parameters={"x": {"min": 0, "max": 1}},
        method="adaptive",
        max_runs=30,
        metric={"key": key},
    )
    held = sweep_when(lab, made["id"], "paused")
    assert why in held["status_reason"]
    assert verdict in lab.get(f"/sweeps/{made['id']}/results")["verdict"]["text"]
    lab.post(f"/sweeps/{made['id']}/stop")


CURVE = """for s in 1 2 3 4 5 6 7 8; do echo "{\\"step\\": $s, \\"loss\\": {level}}"; sleep 0.05; done
until [ {level} -gt 2 -o -e {gate} ]; do sleep 0.05; done; [ {level} -le 2 ] || sleep 100"""


@pytest.mark.parametrize("rule", [{"method": "median", "after_runs": 2}, {"method": "halving", "first_step": 2}])
def test_hopeless_runs_are_stopped_early_with_a_reason(lab: LiveServer, rule: dict[str, Any]) -> None:
    """The leading runs end by themselves; the others would run forever."""
    name = f"early-{rule['method']}"
    (lab.project / name).touch()
    made = make_sweep(
        lab, base_command=CURVE, parameters={"level": [1, 2, 8, 9], "gate": f"{lab.project}/{name}"}, early_stop=rule
    )
    done = sweep_when(lab, made["id"], "completed")
    ended = {run["params"]["level"]: (run["status"], run["status_reason"]) for run in runs_of(lab, made["id"])}
    assert ended[1] == ("finished", "")
    assert {ended[level][0] for level in (8, 9)} == {"stopped"}
    assert all(ended[level][1].startswith("early_stop: ") for level in (8, 9))
    assert done["best"]["params"]["level"] == 1
