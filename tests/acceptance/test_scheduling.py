"""Which run starts when: capacity, priority, arrival, dependencies, sweep limits, fairness between sweeps."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

_LABWRIGHT = "from labwright.cli.main import main; main()"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A machine that runs two at a time."""
    project = tmp_path_factory.mktemp("two") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="2", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("one") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="1", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    server.stop()


def gate(server: LiveServer, name: str) -> str:
    """Return a command that waits until the test opens the gate."""
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.02; done"


def open_gate(server: LiveServer, name: str) -> None:
    (server.project / name).touch()


def starts(server: LiveServer, run_ids: list[str]) -> list[str]:
    """Return the order in which runs were launched, from the events."""
    told = [e["run_id"] for e in server.get("/events?limit=5000") if e["data"].get("to") == "launching"]
    return [run_id for run_id in told if run_id in run_ids]


def test_priority_goes_first_then_arrival(one: LiveServer) -> None:
    holder = one.submit(gate(one, "order"))
    one.wait_for_status(holder["id"], "running")
    late = [one.submit("true", priority=priority)["id"] for priority in (0, 0, 5, -3, 5)]
    raised = one.submit("true", priority=0)["id"]
    one.call("PATCH", f"/runs/{raised}", {"priority": 9})
    open_gate(one, "order")
    for run_id in [*late, raised]:
        one.wait_for_end(run_id)
    assert starts(one, [*late, raised]) == [raised, late[2], late[4], late[0], late[1], late[3]]


def test_capacity_is_never_exceeded(two: LiveServer) -> None:
    count = (
        "exec 9>lock; flock 9; n=$(($(cat n 2>/dev/null || echo 0)+1)); echo $n > n; echo $n >> seen; flock -u 9;"
        " sleep 0.1; flock 9; echo $(($(cat n)-1)) > n"
    )
    made = [two.submit(count)["id"] for _ in range(8)]
    for run_id in made:
        assert two.wait_for_end(run_id)["status"] == "finished"
    assert {int(line) for line in (two.project / "seen").read_text().split()} == {1, 2}


def test_child_waits_for_all_its_parents(two: LiveServer) -> None:
    first, second = (two.submit(gate(two, name))["id"] for name in ("p1", "p2"))
    child = two.submit("true", after=[first, second, first])
    two.wait_for_status(second, "running")
    open_gate(two, "p1")
    two.wait_for_end(first)
    assert two.run(child["id"])["status"] == "queued"
    open_gate(two, "p2")
    assert two.wait_for_end(child["id"])["status"] == "finished"
    assert two.run(child["id"])["launched_at"] >= two.run(second)["ended_at"]


def test_child_of_a_finished_run_starts_at_once(two: LiveServer) -> None:
    parent = two.wait_for_end(two.submit("true")["id"])
    assert two.wait_for_end(two.submit("true", after=[parent["id"]])["id"])["status"] == "finished"


@pytest.mark.parametrize("ending", ["failed", "stopped", "stopped before it began"])
def test_unfinished_parent_fails_the_whole_chain_with_the_reason(two: LiveServer, ending: str) -> None:
    name = f"chain {ending}"
    parent = two.post("/runs", {"command": f"{gate(two, name)}; exit 3", "auto_start": "before" not in ending})
    child = two.submit("touch never", after=[parent["id"]], env={"HF_TOKEN": "x"})
    grandchild = two.post("/runs", {"command": "touch never", "after": [child["id"]]})
    if ending == "failed":
        open_gate(two, name)
    else:
        if ending == "stopped":
            two.wait_for_status(parent["id"], "running")
        two.post(f"/runs/{parent['id']}/stop")
    two.wait_for_end(parent["id"])
    for run, above in ((child, parent), (grandchild, child)):
        ended = two.wait_for_end(run["id"])
        assert (ended["status"], ended["status_reason"]) == ("failed", "dependency_failed")
        assert above["id"] in ended["error"]
        assert ended["started_at"] is None
    assert not (two.project / "never").exists()
    assert not (two.state / "secrets" / f"{child['id']}.json").exists()


def test_failed_run_cannot_become_a_parent(two: LiveServer) -> None:
    parent = two.wait_for_end(two.submit("false")["id"])
    answer = two.call("POST", "/runs", {"command": "true", "after": [parent["id"]]})
    assert answer.status == 422
    assert "Rerun" in answer.json["error"]["hint"]


def test_queued_run_can_be_stopped_and_never_starts(one: LiveServer) -> None:
    holder = one.submit(gate(one, "stop-queued"))
    one.wait_for_status(holder["id"], "running")
    queued = one.submit("touch started-after-stop")
    assert one.post(f"/runs/{queued['id']}/stop")["status"] == "stopped"
    open_gate(one, "stop-queued")
    one.wait_for_end(holder["id"])
    one.wait_for_end(one.submit("true")["id"])
    assert not (one.project / "started-after-stop").exists()


def test_sweep_keeps_its_own_limit_while_others_go_on(two: LiveServer) -> None:
    sweep = two.post("/sweeps/wild", {"name": "narrow", "parallel": 1})["id"]
    first, second = (two.submit(gate(two, "narrow"), sweep_id=sweep, name="a")["id"] for _ in range(2))
    two.wait_for_status(first, "running")
    other = two.wait_for_end(two.submit("true")["id"])
    assert other["status"] == "finished"
    assert two.run(second)["status"] == "queued"
    open_gate(two, "narrow")
    two.wait_for_end(second)
    assert two.run(second)["launched_at"] >= two.run(first)["ended_at"]


def test_two_sweeps_share_the_machine_whatever_their_order(two: LiveServer) -> None:
    early, late = (two.post("/sweeps/wild", {"name": name})["id"] for name in ("early", "late"))
    holders = [two.submit(gate(two, "fair"))["id"] for _ in range(2)]
    for holder in holders:
        two.wait_for_status(holder, "running")
    made = [two.submit("true", sweep_id=early, name="early")["id"] for _ in range(6)]
    made += [two.submit("true", sweep_id=late, name="late")["id"] for _ in range(6)]
    open_gate(two, "fair")
    for run_id in made:
        two.wait_for_end(run_id)
    began = ["early" if run_id in made[:6] else "late" for run_id in starts(two, made)]
    assert abs(began[:6].count("early") - 3) <= 1, began


def test_scheduler_wakes_on_events_and_not_by_polling(one: LiveServer) -> None:
    """A chain of twenty would take twenty seconds with one poll a second."""
    chain: list[dict[str, Any]] = []
    for _ in range(20):
        chain.append(one.submit("true", after=[run["id"] for run in chain[-1:]]))
    last = one.wait_for_end(chain[-1]["id"], timeout=18)
    assert last["status"] == "finished"


def test_concurrent_stops_and_starts_leave_every_run_with_one_end(two: LiveServer) -> None:
    made = [two.submit("sleep 0.05", tags=["storm"])["id"] for _ in range(12)]

    def storm() -> None:
        for run_id in made:
            assert two.call("POST", f"/runs/{run_id}/stop").status in (200, 409)

    threads = [threading.Thread(target=storm) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run_id in made:
        ended = two.wait_for_end(run_id)
        assert ended["status"] in ("stopped", "finished")
        ends = [e for e in two.get(f"/events?run_id={run_id}") if e["data"].get("to") in ("stopped", "finished")]
        assert len(ends) == 1


def test_capacity_set_by_hand_counts_at_once(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 1})
    made = [server.submit(gate(server, "hand"))["id"] for _ in range(3)]
    server.wait_for_status(made[0], "running")
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 3})
    wait_until(lambda: all(server.run(run_id)["status"] == "running" for run_id in made), "all three to run")
    open_gate(server, "hand")


def test_capacity_set_by_hand_overrides_the_setting(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="3").start()
    assert server.get("/cluster")["cluster"]["recommended"]["max_parallel"] == 3
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 1})
    first, second = (server.submit(gate(server, "hand"))["id"] for _ in range(2))
    server.wait_for_status(first, "running")
    assert server.run(second)["status_reason"] == f"1 run at a time, as set by hand: {first}"
    server.stop()
    server.start()
    assert server.get("/cluster")["cluster"]["parallel_by_hand"] == 1
    server.post("/cluster", {"type": "cpu_only"})
    server.wait_for_status(second, "running")
    assert server.get("/cluster")["cluster"]["recommended"]["max_parallel"] == 3
    open_gate(server, "hand")


def test_queued_run_shows_why_it_waits_without_storing_it(two: LiveServer) -> None:
    holders = [two.submit(gate(two, "why"))["id"] for _ in range(2)]
    for holder in holders:
        two.wait_for_status(holder, "running")
    first, second = (two.submit("true")["id"] for _ in range(2))
    assert two.run(first)["status_reason"] == f"2 of 2 slots in use by {', '.join(holders)}"
    assert two.run(second)["status_reason"].endswith("; 1 run ahead")
    listed = {run["id"]: run["status_reason"] for run in two.get("/runs?status=queued")}
    assert listed == {run_id: two.run(run_id)["status_reason"] for run_id in (first, second)}
    shown = subprocess.run(
        [sys.executable, "-c", _LABWRIGHT, "ps", "--project", str(two.project)],
        capture_output=True,
        text=True,
        env={**two.environment, "COLUMNS": "200"},
        check=True,
    )
    assert "2 of 2 slots" in shown.stdout, shown
    open_gate(two, "why")
    two.wait_for_end(second)
    told = [event["data"].get("reason", "") for event in two.get(f"/events?run_id={second}")]
    assert not any("slots" in reason for reason in told)


def test_runs_waiting_for_a_sweep_limit_or_parents_say_so(two: LiveServer) -> None:
    sweep = two.post("/sweeps/wild", {"name": "why", "parallel": 1})["id"]
    first, second = (two.submit(gate(two, "why-sweep"), sweep_id=sweep)["id"] for _ in range(2))
    two.wait_for_status(first, "running")
    assert two.run(second)["status_reason"] == "its sweep runs 1 at a time"
    other = two.submit(gate(two, "why-other"))["id"]
    child = two.submit("true", after=[other, first])["id"]
    assert two.run(child)["status_reason"] == f"waits for {first}, {other}"
    open_gate(two, "why-other")
    two.wait_for_end(other)
    assert two.run(child)["status_reason"] == f"waits for {first}"
    open_gate(two, "why-sweep")
    two.wait_for_end(child)
