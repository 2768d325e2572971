"""A project's own rule can act, at once or after a timeout, through the normal verbs."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

RULE = '[[alerts]]\nname = "too bad"\nmetric = "loss"\ncondition = "> 5"\nseverity = "critical"\n'
JOB = """for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 9}"; done; sleep 1000"""


def stopped_by_rule(make_server: Callable[..., LiveServer], extra: str) -> None:
    server = make_server()
    (server.project / "labwright.toml").write_text(RULE + extra)
    server.start()
    run = server.submit(JOB)
    stopped = server.wait_for_status(run["id"], "stopped")
    assert stopped["status_reason"] == "stopped on the alert: loss > 5: 9 at step 1."
    (alert,) = [a for a in server.get(f"/alerts?run_id={run['id']}") if a["rule"] == "too bad"]
    assert (alert["status"], alert["answer"], alert["answered_by"]) == ("resolved", "stop", "system")


def test_action_is_taken_at_once(make_server: Callable[..., LiveServer]) -> None:
    stopped_by_rule(make_server, 'action = "stop"\n')


def test_default_action_is_taken_when_nobody_answers(make_server: Callable[..., LiveServer]) -> None:
    stopped_by_rule(make_server, 'default_action = "stop"\ndefault_after_seconds = 1\n')


def test_rule_reruns_a_failed_run_once_but_not_one_stopped_by_a_person(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2")
    (server.project / "labwright.toml").write_text(RULE + 'default_action = "rerun"\ndefault_after_seconds = 5\n')
    server.start()
    ends, stopped = server.submit(JOB.replace("sleep 1000", "")), server.submit(JOB)
    wait_until(lambda: server.get(f"/alerts?run_id={stopped['id']}"), "its alert")
    server.post(f"/runs/{stopped['id']}/stop")
    again = wait_until(lambda: [run for run in server.all_runs() if run["parent_run_id"]], "the rerun")
    wait_until(lambda: server.get(f"/alerts?run_id={again[0]['id']}"), "the rerun's alert")
    time.sleep(5.5)  # longer than the rule's timeout: an absence cannot be waited for
    server.wait_for_end(server.submit("true")["id"])
    assert [run["parent_run_id"] for run in server.all_runs() if run["parent_run_id"]] == [ends["id"]]


def test_answering_rerun_stops_an_active_run_and_queues_it_again(server: LiveServer) -> None:
    run = server.submit("sleep 1000")
    server.wait_for_status(run["id"], "running")
    alert = server.post(f"/runs/{run['id']}/alerts", {"message": "diverged", "choices": ["ignore", "stop", "rerun"]})
    server.post(f"/alerts/{alert['id']}/respond", {"choice": "rerun"})
    assert server.wait_for_end(run["id"])["status"] == "stopped"
    (again,) = [other for other in server.all_runs() if other["parent_run_id"] == run["id"]]
    server.wait_for_status(again["id"], "running")


def test_alert_of_an_ended_run_offers_rerun_instead_of_stop(server: LiveServer) -> None:
    run = server.submit("until [ -e go ]; do sleep 0.02; done")
    server.wait_for_status(run["id"], "running")
    asked = {"stop": ["ignore", "stop"], "own": ["stop", "ignore", "halve the rate"], "free": []}
    made = {
        name: server.post(f"/runs/{run['id']}/alerts", {"message": name, "choices": choices})["id"]
        for name, choices in asked.items()
    }
    (server.project / "go").touch()
    server.wait_for_end(run["id"])
    choices = {alert["message"]: alert["choices"] for alert in server.get(f"/alerts?run_id={run['id']}")}
    assert choices == {"stop": ["ignore", "rerun"], "own": ["ignore", "halve the rate"], "free": []}
    assert server.call("POST", f"/alerts/{made['stop']}/respond", {"choice": "stop"}).status == 422
    types = [event["type"] for event in server.get(f"/events?run_id={run['id']}")]
    assert types[-3:] == ["run.status", "alert.updated", "alert.updated"]
