"""How runs on a real Slurm end and restart: cancelling, limits, preemption, requeueing and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labwright.compute.slurm.submit import SIDECAR
from labwright.domain.clock import epoch_seconds
from labwright.processes import processes_of_run, send_signal
from labwright.sim.slurm import SimulatedSlurm
from tests.acceptance.test_slurm import MakeServer, grid, logs_of, start_again_now, started, until_file, with_reason
from tests.support.live_server import LiveServer
from tests.support.sidecars import supervisor_of
from tests.support.waiting import wait_until


@pytest.fixture
def server(slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> LiveServer:
    return make_slurm_server(slurm).start()


def test_job_cancelled_by_somebody_else_is_stopped_and_says_so(server: LiveServer, slurm: SimulatedSlurm) -> None:
    running = started(server, "sleep 1000")
    slurm.client("scancel", running["slurm_job_id"])
    ended = server.wait_for_end(running["id"])
    assert (ended["status"], ended["status_reason"]) == ("stopped", "cancelled in Slurm")
    assert "Somebody" in ended["error"]


def test_pending_job_cancelled_by_somebody_else_is_stopped(server: LiveServer, slurm: SimulatedSlurm) -> None:
    waiting = server.submit("touch never", slurm={"extra": ["--begin=now+1hour"]})
    wait_until(lambda: with_reason(server, waiting["id"], "BeginTime"), "the job to be known")
    slurm.client("scancel", f"--name={waiting['id']}")
    ended = server.wait_for_end(waiting["id"])
    assert (ended["status"], ended["status_reason"]) == ("stopped", "cancelled in Slurm")


def test_cancelled_pending_array_task_is_stopped_and_its_array_goes_on(
    server: LiveServer, slurm: SimulatedSlurm
) -> None:
    """Slurm keeps no record of such a task while it has the array."""
    sweep = server.post("/sweeps", grid(slurm={"extra": ["--begin=now+1hour"]}))["id"]

    def tasks() -> list[dict[str, Any]]:
        return [run for run in server.get(f"/runs?sweep_id={sweep}") if "BeginTime" in run["status_reason"]]

    wait_until(lambda: len(tasks()) == 4, "the jobs to be known")
    first, *others = tasks()
    slurm.client("scancel", first["slurm_job_id"])
    ended = server.wait_for_end(first["id"])
    assert (ended["status"], ended["status_reason"]) == ("stopped", "cancelled in Slurm")
    assert [run["id"] for run in tasks()] == [run["id"] for run in others]
    server.post(f"/sweeps/{sweep}/stop")


def test_requeued_job_is_the_next_attempt_with_the_same_secrets(server: LiveServer, slurm: SimulatedSlurm) -> None:
    command = (
        f'echo "attempt $LABWRIGHT_ATTEMPT $MY_TOKEN"; [ $LABWRIGHT_ATTEMPT = 2 ] || {until_file(server, "never")}'
    )
    run = started(server, command, env={"MY_TOKEN": "kept"})
    slurm.client("scontrol", "requeue", run["slurm_job_id"])
    wait_until(lambda: server.run(run["id"])["attempt"] == 2, "the second attempt")
    slurm.client("scontrol", "update", f"jobid={run['slurm_job_id']}", "starttime=now")
    ended = server.wait_for_end(run["id"], timeout=60)
    assert (ended["status"], ended["attempt"], ended["slurm_job_id"]) == ("finished", 2, run["slurm_job_id"])
    said = server.output(run["id"]).splitlines()
    said = [line for line in said if "Terminated" not in line]  # bash prints this if it outlives the sleep it waits for
    assert said == ["attempt 1 kept", "attempt 2 kept"]
    moves = [e["data"]["to"] for e in server.get(f"/events?run_id={run['id']}") if "to" in e["data"]]
    assert moves == ["launching", "running", "queued", "launching", "running", "finished"]


@pytest.mark.timeout(400)
def test_waiting_time_between_attempts_is_not_work_time(server: LiveServer, slurm: SimulatedSlurm) -> None:
    run = started(server, f"[ $LABWRIGHT_ATTEMPT = 2 ] || {until_file(server, 'never')}")
    heartbeat = Path(run["run_dir"], "heartbeat")
    wait_until(heartbeat.exists, "its first heartbeat")
    server.stop()
    slurm.client("scontrol", "requeue", run["slurm_job_id"])
    wait_until(lambda: not processes_of_run(run["id"]), "the first attempt to be gone")
    wait_until(lambda: "PENDING" in slurm.client("squeue", "-h", "-o", "%T"), "the job to be pending again")
    last_seen = epoch_seconds(run["started_at"]) + 0.5  # as if it had been pending since then
    os.utime(heartbeat, (last_seen, last_seen))
    start_again_now(slurm, run["slurm_job_id"])
    # Slurm waits two minutes by itself if it delays the job only after it was asked to start it.
    wait_until(Path(run["run_dir"], "claim.2").exists, "the second attempt", 180)
    server.start()
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["attempt"]) == ("finished", 2)
    assert ended["earlier_seconds"] == pytest.approx(0.5, abs=0.01)


def test_preempted_run_can_save_and_continues_later(
    patient_slurm: SimulatedSlurm, make_slurm_server: MakeServer
) -> None:
    server = make_slurm_server(patient_slurm, LABWRIGHT_GRACE_SECONDS="20").start()  # a busy machine is slow to save
    # A loop: Slurm may end the sleep before it signals the shell, and the end of `wait` would end the run.
    first = "trap 'echo saved; exit 0' TERM; echo attempt 1; exec 2> /dev/null; while :; do sleep 0.1; done"
    command = f"if [ $LABWRIGHT_ATTEMPT = 2 ]; then echo attempt 2; else {first}; fi"
    run = started(server, command, nodes=2, gpus=2)
    wait_until(lambda: server.output(run["id"]) == "attempt 1\n", "it to be ready for a TERM")
    urgent = server.submit("true", nodes=2, gpus=2, slurm={"partition": "urgent"})
    assert server.wait_for_end(urgent["id"], timeout=120)["status"] == "finished"
    wait_until(lambda: server.run(run["id"])["attempt"] == 2, "the run to be queued again")
    start_again_now(patient_slurm, run["slurm_job_id"])
    ended = server.wait_for_end(run["id"], timeout=120)
    assert (ended["status"], ended["attempt"]) == ("finished", 2), f"{ended['error']}\n{logs_of(patient_slurm)}"
    assert server.output(run["id"]) == "attempt 1\nsaved\nattempt 2\n"


def test_job_signalled_before_its_supervisor_has_not_ended_by_itself(server: LiveServer) -> None:
    """The job saves and exits with 0 before its supervisor gets the signal. slurmd's earlier record shows the truth."""
    run = started(server, f"{until_file(server, 'saved')}; exit 0")
    with (server.state / "runs" / run["id"] / "slurm.log").open("a") as log:
        log.write(
            f"slurmstepd: error: *** JOB {run['slurm_job_id']} ON node1 CANCELLED AT 2026 DUE TO PREEMPTION ***\n"
        )
    (server.project / "saved").touch()
    assert server.wait_for_end(run["id"])["status_reason"] == "terminated"


def test_signal_before_the_time_limit_reaches_the_job(server: LiveServer) -> None:
    command = "trap 'echo warned; exit 7' USR1; echo ready; while :; do sleep 0.05; done"
    run = server.submit(f'bash -c "{command}"', time_limit_seconds=60, slurm={"extra": ["--signal=USR1@55"]})
    ended = server.wait_for_end(run["id"], timeout=60)
    assert (ended["status"], ended["exit_code"]) == ("failed", 7)
    assert server.output(run["id"]) == "ready\nwarned\n"


def test_warning_comes_at_the_requested_time(server: LiveServer) -> None:
    """Slurm checks limits twice a minute, and would warn so short a run in its first second or never."""
    command = "trap 'echo $SECONDS; exit 0' USR1; while :; do sleep 0.05; done"
    run = server.submit(command, time_limit_seconds=20, slurm={"extra": ["--signal=USR1@10"]})
    assert server.wait_for_end(run["id"], timeout=60)["status"] == "finished"
    assert 7 <= int(server.output(run["id"])) < 20


def test_signal_sent_by_a_user_is_passed_on_at_once(server: LiveServer, slurm: SimulatedSlurm) -> None:
    command = "trap 'echo saved; exit 0' USR1; echo ready; while :; do sleep 0.05; done"
    run = started(server, command, time_limit_seconds=3600, slurm={"extra": ["--signal=USR1@60"]})
    wait_until(lambda: server.output(run["id"]) == "ready\n", "the trap")
    slurm.client("scancel", "--batch", "--signal=USR1", run["slurm_job_id"])
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "ready\nsaved\n"


def test_child_that_escaped_slurm_ends_with_its_run(server: LiveServer) -> None:
    """proctrack/linuxproc misses a process that forked twice; the run's id identifies it."""
    run = started(server, "(setsid sleep 1000 &) ; sleep 0.2; echo up; sleep 1000")
    wait_until(lambda: server.output(run["id"]) == "up\n", "the child to be there")
    assert len(processes_of_run(run["id"])) >= 3
    server.post(f"/runs/{run['id']}/stop")
    assert server.wait_for_end(run["id"])["status"] == "stopped"
    assert not processes_of_run(run["id"])


def test_run_whose_supervisor_was_killed_is_lost_with_slurms_reason(server: LiveServer) -> None:
    run = started(server, "sleep 1000")
    claim = json.loads((server.state / "runs" / run["id"] / "claim").read_text())
    os.kill(claim["pid"], signal.SIGKILL)
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["status_reason"]) == ("lost", "sidecar_lost")
    assert "Slurm says FAILED" in ended["error"]


@pytest.mark.slow
def test_job_at_slurms_own_time_limit_fails_with_that_reason(server: LiveServer, slurm: SimulatedSlurm) -> None:
    run = started(server, "sleep 1000")
    slurm.client("scontrol", "update", f"jobid={run['slurm_job_id']}", "timelimit=1")
    ended = server.wait_for_end(run["id"], timeout=150)
    assert (ended["status"], ended["status_reason"]) == ("failed", "time_limit")


def test_job_over_its_memory_has_its_true_result(server: LiveServer) -> None:
    """Without control groups Slurm kills all of it, and its state says only FAILED."""
    code = "x = bytearray(600 << 20)\nimport time\ntime.sleep(100)"
    run = server.submit(f'python3 -c "{code}"', memory_mb=100)
    ended = server.wait_for_end(run["id"], timeout=60)
    assert (ended["status"], ended["status_reason"]) == ("failed", "out_of_memory"), ended
    assert ended["error"] == "It used more memory than it had. Request more with memory_mb. It had 100 MB."
    (told,) = [alert for alert in server.get("/alerts") if alert["run_id"] == run["id"]]
    assert told["message"] == ended["error"]


def test_job_restarted_by_slurm_without_counting_is_the_next_attempt(server: LiveServer) -> None:
    """A controller that crashed and forgot that the job had started ends it and starts it once more."""
    command = f"echo $LABWRIGHT_ATTEMPT; [ $LABWRIGHT_ATTEMPT = 2 ] || {until_file(server, 'never')}; exit 3"
    run = started(server, command)
    sidecar = supervisor_of(server, run["id"])
    environ = dict(
        pair.split("=", 1) for pair in Path(f"/proc/{sidecar}/environ").read_text().split("\0") if "=" in pair
    )
    server.kill()
    for pid in [sidecar, *processes_of_run(run["id"])]:  # it would report the end of the others first
        send_signal(pid, signal.SIGKILL)
    again = [sys.executable, "-I", "-S", str(SIDECAR), "slurm", run["run_dir"]]
    assert subprocess.run(again, env=environ, check=False, timeout=60).returncode == 3
    ended = server.start().wait_for_end(run["id"])
    assert (ended["attempt"], ended["exit_code"], ended["status"]) == (2, 3, "failed"), ended["error"]
    assert server.output(run["id"]) == "1\n2\n"
