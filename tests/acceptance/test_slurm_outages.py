"""Slurm's controller, nodes or daemons die: no run is lost, and none runs twice."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from labwright.sim.slurm import SimulatedSlurm, SlurmSize, simulated_slurm
from labwright.sim.slurm_config import Timers
from tests.acceptance.test_slurm import MakeServer, grid, start_again_now, started, until_file
from tests.support.live_server import LiveServer
from tests.support.slurm import call_times, counting_path, jobs_named
from tests.support.waiting import wait_until


@pytest.fixture
def server(slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> LiveServer:
    return make_slurm_server(slurm).start()


def test_hanging_sinfo_costs_a_timeout_and_not_the_server(tmp_path: Path, make_server: MakeServer) -> None:
    (tmp_path / "bin").mkdir()
    hanging = tmp_path / "bin" / "sinfo"
    hanging.write_text("#!/bin/sh\nsleep 1000\n")
    hanging.chmod(0o755)
    server = make_server(PATH=f"{tmp_path}/bin:{os.environ['PATH']}", SLURM_CONF="/nowhere/slurm.conf").start()
    found = server.get("/cluster")["cluster"]
    assert (found["type"], found["status"]) == ("slurm", "offline")
    assert server.call("POST", "/cluster", {"type": "slurm"}).status == 422
    assert server.post("/cluster", {"type": "cpu_only"})["cluster"]["source"] == "manual"
    assert server.wait_for_end(server.submit("true")["id"])["launcher"] == "local"
    server.restart()
    found = server.get("/cluster")["cluster"]
    assert (found["type"], found["source"]) == ("cpu_only", "manual"), "what was set by hand outlives the server"


def test_drained_node_degrades_the_cluster(own_slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> None:
    server = make_slurm_server(own_slurm).start()
    own_slurm.client("scontrol", "update", "nodename=node2", "state=drain", "reason=test")
    found = server.post("/cluster/detect")["cluster"]
    assert (found["status"], found["partitions"][0]["nodes_unwell"]) == ("degraded", 1)
    assert any("node2 is drained" in look["said"] for look in found["evidence"])


def test_dead_controller_slows_nobody_down_and_its_return_loses_nothing(
    own_slurm: SimulatedSlurm, make_slurm_server: MakeServer
) -> None:
    server = make_slurm_server(own_slurm).start()
    going = started(server, f"{until_file(server, 'go')}; exit 4")
    own_slurm.kill_controller()
    began = time.monotonic()
    made = [server.submit("echo late")["id"] for _ in range(3)]
    assert time.monotonic() - began < 8  # none of these query Slurm
    (server.project / "go").touch()
    assert server.wait_for_end(going["id"])["exit_code"] == 4, "what the run says needs no controller"
    wait_until(lambda: "Slurm does not" in server.run(made[0])["status_reason"], "the reason to be shown")
    assert server.get("/health")["status"] == "degraded"
    assert "\nlabwright_healthy 0\n" in server.call("GET", "/metrics/prometheus").body.decode()
    stopped = server.submit("touch never")["id"]
    assert server.run(stopped)["status_reason"].startswith("Slurm does not answer: "), "also of what was never sent"
    server.post(f"/runs/{stopped}/stop")
    own_slurm.start_controller()
    for run_id in made:
        assert server.wait_for_end(run_id, timeout=90)["status"] == "finished"
        assert server.output(run_id) == "late\n"
    assert server.get("/health")["status"] == "ok"
    assert server.wait_for_end(stopped, timeout=60)["status"] == "stopped"
    assert not (server.project / "never").exists()


def test_resumed_sweep_continues_though_a_restarted_controller_forgot_the_release(
    own_slurm: SimulatedSlurm, make_slurm_server: MakeServer
) -> None:
    server = make_slurm_server(own_slurm).start()
    sweep = server.post("/sweeps", grid(slurm={"extra": ["--begin=now+1hour"]}))["id"]

    def reasons_in_slurm() -> set[str]:
        return set(own_slurm.client("squeue", "-h", "-r", "-o", "%r").split())

    wait_until(lambda: reasons_in_slurm() == {"BeginTime"}, "the jobs to be sent")
    server.post(f"/sweeps/{sweep}/pause")
    wait_until(lambda: reasons_in_slurm() == {"JobHeldUser"}, "the jobs to be held", 60)
    server.post(f"/sweeps/{sweep}/resume")
    wait_until(lambda: reasons_in_slurm() == {"BeginTime"}, "the jobs to be released", 60)
    own_slurm.client("scontrol", "uhold", *own_slurm.client("squeue", "-h", "-r", "-o", "%i").split())  # its old state
    wait_until(lambda: reasons_in_slurm() == {"BeginTime"}, "the jobs to be released again", 90)
    server.post(f"/sweeps/{sweep}/stop")


def give_up(slurm: SimulatedSlurm, node: str) -> None:
    """Give up the node, as the controller does after a long silence."""
    slurm.client("scontrol", "update", f"nodename={node}", "state=down", "reason=silent")


def test_run_on_a_lost_node_restarts_elsewhere(own_slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> None:
    server = make_slurm_server(own_slurm).start()
    command = f"echo $LABWRIGHT_ATTEMPT; [ $LABWRIGHT_ATTEMPT = 2 ] || {until_file(server, 'never')}"
    run = started(server, command)
    own_slurm.lose_node(run["node"])
    give_up(own_slurm, run["node"])
    wait_until(lambda: server.run(run["id"])["attempt"] == 2, "the run to be queued again", timeout=60)
    start_again_now(own_slurm, run["slurm_job_id"])
    ended = server.wait_for_end(run["id"], timeout=90)
    assert (ended["status"], ended["attempt"]) == ("finished", 2)
    assert ended["node"] != run["node"]
    printed = server.output(run["id"]).splitlines()
    assert [line for line in printed if "Killed" not in line] == ["1", "2"]  # the shell may print this about its sleep


def test_run_on_a_lost_node_without_requeue_is_lost(own_slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> None:
    server = make_slurm_server(own_slurm).start()
    run = started(server, "sleep 1000", slurm={"extra": ["--no-requeue"]})
    heartbeat = server.state / "runs" / run["id"] / "heartbeat"
    wait_until(heartbeat.exists, "the heartbeat")
    own_slurm.lose_node(run["node"])
    os.utime(heartbeat, (0, 0))  # as if half a minute had passed
    give_up(own_slurm, run["node"])
    ended = server.wait_for_end(run["id"], timeout=90)
    assert (ended["status"], ended["status_reason"]) == ("lost", "node_fail")


def test_dead_slurmd_does_not_make_its_runs_run_twice(own_slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> None:
    """Slurm gives up the node and restarts the job. The first attempt is still alive, and its end counts."""
    server = make_slurm_server(own_slurm).start()
    run = started(server, f"echo once; {until_file(server, 'go')}; exit 6")
    own_slurm.kill_node(run["node"])
    give_up(own_slurm, run["node"])
    wait_until(lambda: server.run(run["id"])["attempt"] == 2, "Slurm to give the node up", timeout=60)
    start_again_now(own_slurm, run["slurm_job_id"])
    wait_until(lambda: jobs_named(own_slurm, run["id"]) == ["RUNNING"], "the second attempt to wait", timeout=60)
    (server.project / "go").touch()
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["exit_code"]) == ("failed", 6)
    assert server.output(run["id"]) == "once\n"


def test_jobs_forgotten_by_a_killed_controller_are_submitted_again(
    own_slurm: SimulatedSlurm, make_slurm_server: MakeServer
) -> None:
    server = make_slurm_server(own_slurm).start()
    saved = own_slurm.layout.state.with_name("earlier")
    shutil.copytree(own_slurm.layout.state, saved)
    later = {"extra": ["--begin=now+10"]}
    alone = server.submit("echo $LABWRIGHT_RUN_ID >> ran; exit 3", slurm=later)["id"]
    sweep = server.post("/sweeps", grid(base_command="echo $LABWRIGHT_RUN_ID >> ran; echo {lr} {depth}", slurm=later))[
        "id"
    ]

    def all_sent() -> bool:
        return all(run["slurm_job_id"] for run in server.get("/runs"))

    wait_until(all_sent, "Slurm to have them")
    own_slurm.kill_controller()
    shutil.rmtree(own_slurm.layout.state)
    saved.rename(own_slurm.layout.state)
    own_slurm.start_controller()
    assert server.wait_for_end(alone, timeout=120)["exit_code"] == 3
    made = [run["id"] for run in server.get(f"/runs?sweep_id={sweep}")]
    ended = [server.wait_for_end(run_id) for run_id in made]
    assert {run["status"] for run in ended} == {"finished"}, ended[0]["error"]
    assert sorted((server.project / "ran").read_text().split()) == sorted([alone, *made])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_300_runs_survive_a_controller_restart_and_a_node_death(tmp_path: Path, make_slurm_server: MakeServer) -> None:
    """Every run ends once with its true status, and Slurm is queried at most once in five seconds."""
    calls = tmp_path / "calls"
    path = counting_path(calls, "squeue", "sinfo", "sacct", "scontrol")
    with simulated_slurm(SlurmSize(nodes=3, gpus=2), Timers(node_silence_seconds=5)) as cluster:
        server = make_slurm_server(cluster, PATH=path)
        (server.project / "labwright.toml").unlink()  # the default of five seconds
        server.start()
        parent = started(server, until_file(server, "go"))
        command = "echo $N >> ran; sleep 0.2; exit $((N % 3))"
        made = [server.submit(command, env={"N": str(n)}, after=[parent["id"]])["id"] for n in range(300)]
        (server.project / "go").touch()
        wait_until(lambda: server.get("/cluster")["run_summary"]["failed"] >= 20, "some to have ended", timeout=120)
        cluster.restart_controller()
        cluster.kill_node("node2")
        ended = [server.wait_for_end(run_id, timeout=600) for run_id in made]
        wait_until(lambda: len(call_times(calls, "squeue")) > 2, "some questions to Slurm")
        server.stop()
    assert [run["exit_code"] for run in ended] == [n % 3 for n in range(300)]
    assert [run["status"] for run in ended] == ["failed" if n % 3 else "finished" for n in range(300)]
    assert sorted(map(int, (server.project / "ran").read_text().split())) == list(range(300))
    assert len({run["slurm_job_id"].partition("_")[0] for run in ended}) == 1
    asked = call_times(calls, "squeue")
    assert len(asked) <= 1 + (asked[-1] - asked[0] + 1) / 5, "one question in five seconds, for all of them"
    assert len(call_times(calls, "scontrol", "sacct")) <= 1, "the size of arrays, once"
    minutes = (asked[-1] - asked[0]) / 60
    assert len(call_times(calls, "sinfo")) <= 2 * (2 + minutes), "what there is: at the start, and once a minute"
