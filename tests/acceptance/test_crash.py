"""Whatever is killed, every run ends once, with its true result."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labwright.compute.local.launcher import SIDECAR
from labwright.processes import children_of, processes_of_run, send_signal, start_time
from tests.support.live_server import ENDED, LiveServer
from tests.support.sidecars import monitors_of, relays_of, supervisor_of
from tests.support.waiting import wait_until

RUNS = 100


def counted_command(ran: Path, index: int, seconds: float) -> str:
    """Return a command that writes one letter each time it runs, prints ten lines, and has its own exit code."""
    return (
        f"printf x >> '{ran}/{index}'\n"
        f"for i in 1 2 3 4 5; do echo line $i; done; sleep {seconds:.2f}\n"
        f"for i in 6 7 8 9 10; do echo line $i; done; exit {index % 5}"
    )


def submit_counted(server: LiveServer, ran: Path, lengths: random.Random, longest: float) -> dict[str, int]:
    ran.mkdir()
    return {
        server.submit(counted_command(ran, index, lengths.uniform(0.05, longest)))["id"]: index for index in range(RUNS)
    }


def check_all_true(server: LiveServer, ran: Path, wanted: dict[str, int]) -> None:
    found = {run["id"]: run for run in server.all_runs()}
    assert set(found) == set(wanted)
    whole = "".join(f"line {i}\n" for i in range(1, 11))
    for run_id, index in wanted.items():
        run = found[run_id]
        assert run["exit_code"] == index % 5, run
        assert run["status"] == ("failed" if index % 5 else "finished"), run
        assert (ran / str(index)).read_text() == "x", f"run {index} did not run exactly once"
        assert server.output(run_id) == whole


def ended_once(server: LiveServer) -> None:
    """Check that each run reached an end exactly once in the stored events."""
    ends: dict[str, int] = {}
    after = 0
    while page := server.get(f"/events?after={after}&limit=5000"):
        after = page[-1]["seq"]
        for event in page:
            if event["type"] == "run.status" and event["data"]["to"] in ENDED:
                ends[event["run_id"]] = ends.get(event["run_id"], 0) + 1
    assert set(ends.values()) == {1}


def test_hundred_runs_survive_repeated_server_kills(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="8").start()
    lengths = random.Random(1)
    wanted = submit_counted(server, tmp_path / "ran", lengths, 0.8)
    for _ in range(8):
        time.sleep(lengths.uniform(0.2, 1.0))  # the moment of the kill is the random part
        server.restart()
    wait_until(lambda: all(run["status"] in ENDED for run in server.all_runs()), "all runs to end", 60)
    server.restart()
    check_all_true(server, tmp_path / "ran", wanted)  # at the first response, without waiting
    ended_once(server)


def test_hundred_runs_survive_random_kills_of_monitors_and_relays(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="8").start()
    chance = random.Random(2)
    wanted = submit_counted(server, tmp_path / "ran", chance, 1.5)
    killed = 0
    seen: set[int] = set()

    def all_ended() -> bool:
        nonlocal killed, seen
        before, seen = seen, monitors_of(server) | relays_of(server)
        for pid in sorted(before & seen):
            if chance.random() < 0.3:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed += 1
        return all(run["status"] in ENDED for run in server.all_runs())

    wait_until(all_ended, "all runs to end", 90)
    assert killed > 20
    check_all_true(server, tmp_path / "ran", wanted)
    ended_once(server)


def run_until_file(server: LiveServer, name: str, **fields: Any) -> dict[str, Any]:
    """Return a job that runs until a file appears."""
    run = server.submit(f"while [ ! -e '{server.project}/{name}' ]; do sleep 0.05; done", **fields)
    return server.wait_for_status(run["id"], "running")


def test_killed_supervisor_means_lost_only_after_the_job_ends(server: LiveServer) -> None:
    run = run_until_file(server, "go")
    os.kill(supervisor_of(server, run["id"]), signal.SIGKILL)
    told = wait_until(
        lambda: (found := server.run(run["id"]))["status_reason"].startswith("its supervisor") and found,
        "the dead supervisor to be noticed",
    )
    assert told["status"] == "running"
    (server.project / "go").touch()
    lost = server.wait_for_status(run["id"], "lost")
    assert lost["exit_code"] is None
    assert "supervisor" in lost["error"]
    (alert,) = (found for found in server.get("/alerts?status=pending") if found["run_id"] == run["id"])
    assert (alert["rule"], alert["message"], alert["choices"]) == ("exit", lost["error"], ["ignore", "rerun"])


def test_orphaned_job_can_still_be_stopped(server: LiveServer) -> None:
    run = run_until_file(server, "never")
    os.kill(supervisor_of(server, run["id"]), signal.SIGKILL)
    stop(server, run["id"])


def test_orphan_ends_at_its_time_limit_with_that_reason(server: LiveServer) -> None:
    run = server.submit("sleep 1000", time_limit_seconds=2)
    events = server.state / "runs" / run["id"] / "events.jsonl"
    wait_until(lambda: events.exists() and "started" in events.read_text(), "its start")
    with contextlib.suppress(ProcessLookupError):  # possible on a slow machine
        os.kill(supervisor_of(server, run["id"]), signal.SIGKILL)
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["status_reason"]) == ("failed", "time_limit")
    assert ended["error"].startswith("Time limit of 2 s reached")


def test_run_counts_as_running_if_its_supervisor_dies_before_reporting_the_start(server: LiveServer) -> None:
    """The start report goes into a pipe that nobody reads, so that the supervisor is killed before it."""
    server.wait_for_end(server.submit("true")["id"])
    assert server.process is not None
    (helper,) = children_of(server.process.pid)
    os.kill(helper, signal.SIGSTOP)
    run = server.submit("trap 'exit 0' TERM; touch begun; while :; do sleep 0.05; done")
    server.wait_for_status(run["id"], "launching")
    server.kill()
    os.kill(helper, signal.SIGKILL)
    run_dir = server.state / "runs" / run["id"]
    os.mkfifo(run_dir / "events.jsonl")
    with subprocess.Popen([sys.executable, "-I", "-S", str(SIDECAR), "run", str(run_dir)]) as supervisor:
        wait_until((server.project / "begun").exists, "the job to begin")
        supervisor.kill()
    (run_dir / "events.jsonl").unlink()
    server.start()
    found = server.wait_for_status(run["id"], "running")
    assert found["pid"] in processes_of_run(run["id"])
    assert found["started_at"] >= found["launched_at"][:19]
    stop(server, run["id"])


def stop(server: LiveServer, run_id: str) -> None:
    server.post(f"/runs/{run_id}/stop")
    server.wait_for_status(run_id, "stopped")
    assert not processes_of_run(run_id)


KILLED_AFTER_THE_FORK = """
import os, sys, time
from labwright.paths import RunPaths
from labwright.sidecar.monitor import MonitorProcess
from labwright.sidecar.record import RunJournal, load_spec
from labwright.sidecar.sources.start import Start

supervisor, paths = os.getpid(), RunPaths(sys.argv[1])
spec = load_spec(paths)

def until_it_is_dead():
    while os.getppid() == supervisor:
        time.sleep(0.01)

monitor_process = MonitorProcess(paths, spec, RunJournal(paths, spec["run"]["id"], ""), until_it_is_dead)
monitor_process.job_started(time.time(), Start(time.time()))
monitor_process.start()
print(monitor_process.pid)
"""


def test_monitor_without_its_supervisor_ends_with_the_job(server: LiveServer) -> None:
    """Its parent is by then an unrelated process that does not end."""
    run = server.wait_for_end(server.submit("true")["id"])
    pid_file = server.project / "pid"
    with pid_file.open("w") as file:
        subprocess.run([sys.executable, "-c", KILLED_AFTER_THE_FORK, run["run_dir"]], stdout=file, check=True)
    monitor = int(pid_file.read_text())
    try:
        wait_until(lambda: start_time(monitor) is None, "the monitor to end")
    finally:
        send_signal(monitor, signal.SIGKILL)


def test_job_without_supervisor_and_monitor_is_watched_again_at_once(server: LiveServer) -> None:
    run = run_until_file(server, "never")
    monitor = wait_until(lambda: monitors_of(server), "the monitor to start").pop()
    heartbeat = server.state / "runs" / run["id"] / "heartbeat"
    wait_until(heartbeat.exists, "its first sign")
    for pid in (supervisor_of(server, run["id"]), monitor):
        os.kill(pid, signal.SIGKILL)
    os.utime(heartbeat, (time.time() + 1000,) * 2)  # because of its death, not its silence
    stop(server, run["id"])


def test_orphan_without_a_relay_still_prints_all_its_output(server: LiveServer) -> None:
    """The output is larger than a pipe, so the job would block forever if nobody read it."""
    run = server.submit("echo begin; until [ -e go ]; do sleep 0.05; done; seq 100000; echo end > /dev/stderr")["id"]
    server.wait_for_status(run, "running")
    wait_until((server.state / "runs" / run / "heartbeat").exists, "its monitor's first sign")
    monitor = wait_until(lambda: monitors_of(server), "the monitor to start").pop()
    relay = wait_until(lambda: relays_of(server), "the relay to start").pop()
    for pid in (supervisor_of(server, run), monitor, relay):
        os.kill(pid, signal.SIGKILL)
    (server.project / "go").touch()
    server.wait_for_status(run, "lost")
    numbers = "".join(f"{number}\n" for number in range(1, 100_001))
    wait_until(lambda: server.output(run) == f"begin\n{numbers}end\n", "the whole output")


def test_orphan_without_monitor_and_server_is_adopted_at_the_next_start(server: LiveServer) -> None:
    run = run_until_file(server, "never")
    supervisor = supervisor_of(server, run["id"])
    monitor = wait_until(lambda: monitors_of(server), "the monitor to start").pop()
    server.kill()
    for pid in (supervisor, monitor):
        os.kill(pid, signal.SIGKILL)
    server.start()
    assert server.run(run["id"])["status"] == "running"
    stop(server, run["id"])


def test_late_evidence_replaces_lost_with_the_true_result(server: LiveServer) -> None:
    run = run_until_file(server, "go")
    os.kill(supervisor_of(server, run["id"]), signal.SIGKILL)
    (server.project / "go").touch()
    server.wait_for_status(run["id"], "lost")
    facts = {
        "status": "failed", "reason": "exit_code", "exit_code": 4, "signal": None, "error": "Exit code 4",
        "attempt": 1, "started_at": 0, "ended_at": time.time(), "usage": {},
    }  # fmt: skip
    (server.state / "runs" / run["id"] / "exit.json").write_text(json.dumps(facts))
    server.restart()
    found = server.run(run["id"])
    assert (found["status"], found["exit_code"]) == ("failed", 4)


def test_same_run_started_twice_runs_once(server: LiveServer) -> None:
    """A second sidecar for the same attempt loses the claim and exits."""
    run = server.submit("echo once; until [ -e go ]; do sleep 0.02; done")
    server.wait_for_status(run["id"], "running")
    run_dir = server.state / "runs" / run["id"]
    for _ in range(3):
        subprocess.run([sys.executable, "-I", "-S", str(SIDECAR), "run", str(run_dir)], check=True, timeout=60)
    (server.project / "go").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "once\n"


def test_active_run_cannot_be_started_again(server: LiveServer) -> None:
    run = run_until_file(server, "go")
    assert server.call("POST", f"/runs/{run['id']}/start").status == 409
    (server.project / "go").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"


def test_chain_of_any_length_fails_with_its_first_run(server: LiveServer) -> None:
    first = server.submit("while [ ! -e go ]; do sleep 0.05; done; exit 3")
    last = first
    for _ in range(600):
        last = server.submit("touch never", after=[last["id"]])
    (server.project / "go").touch()
    assert server.wait_for_end(last["id"])["status_reason"] == "dependency_failed"
    assert server.run(first["id"])["exit_code"] == 3
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


def test_run_with_deleted_folder_does_not_restart_and_can_be_stopped(server: LiveServer) -> None:
    begun = server.project / "begun"
    run = server.submit(f"echo x >> '{begun}'; sleep 1000")["id"]
    server.wait_for_status(run, "running")
    server.kill()
    shutil.rmtree(server.state / "runs" / run)
    server.start()
    wait_until(lambda: "deleted" in server.run(run)["status_reason"], "it to be noticed")
    server.post(f"/runs/{run}/stop")
    server.wait_for_end(run)
    assert not processes_of_run(run)
    assert begun.read_text() == "x\n"


def test_run_whose_folder_is_deleted_while_active_is_lost(server: LiveServer) -> None:
    run = server.submit("sleep 1000")["id"]
    server.wait_for_status(run, "running")
    server.kill()
    for pid in (supervisor_of(server, run), *processes_of_run(run)):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes_of_run(run), "the job to be gone")
    shutil.rmtree(server.state / "runs" / run)
    server.start()
    assert "deleted" in server.wait_for_status(run, "lost")["error"]


def test_job_with_unreadable_records_blocks_no_other_run(server: LiveServer) -> None:
    spoil = 'cd "$LABWRIGHT_RUN_DIR"; rm -f events.jsonl; mkdir events.jsonl'
    spoiled = server.submit(f"while [ ! -e go ]; do sleep 0.05; done; {spoil}")["id"]
    server.wait_for_status(spoiled, "running")
    (server.project / "go").touch()
    assert server.wait_for_end(spoiled)["exit_code"] == 0
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


def test_runs_start_after_all_run_folders_were_deleted(server: LiveServer) -> None:
    server.wait_for_end(server.submit("true")["id"])
    shutil.rmtree(server.state / "runs")
    run = server.wait_for_end(server.submit("echo here")["id"])
    assert (run["status"], server.output(run["id"])) == ("finished", "here\n")


def test_invalid_run_folder_blocks_no_other_run(server: LiveServer) -> None:
    forger = server.submit(
        'tail -n 1 "$LABWRIGHT_RUN_DIR/events.jsonl" > x; cat x >> "$LABWRIGHT_RUN_DIR/events.jsonl"'
    )
    assert server.wait_for_end(forger["id"])["status"] == "finished"
    broken = run_until_file(server, "go")
    (server.state / "runs" / broken["id"] / "claim").write_text("garbage")
    server.restart()
    assert server.call("POST", f"/runs/{broken['id']}/stop").status == 200
    assert server.wait_for_end(server.submit("echo well")["id"])["status"] == "finished"
    assert server.call("GET", "/health").json["status"] == "ok"
    (server.project / "go").touch()
    server.wait_for_end(broken["id"])


def test_secrets_survive_a_kill_between_folder_and_claim(server: LiveServer) -> None:
    server.wait_for_end(server.submit("true")["id"])
    assert server.process is not None
    (helper,) = children_of(server.process.pid)
    os.kill(helper, signal.SIGSTOP)
    run = server.submit('echo "it is $MY_TOKEN"', env={"MY_TOKEN": "kept"})
    server.wait_for_status(run["id"], "launching")
    server.kill()
    os.kill(helper, signal.SIGKILL)
    server.start()
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "it is kept\n"


def test_terminal_run_ends_with_its_supervisor(server: LiveServer) -> None:
    """Its terminal has closed, so the run gets a hang-up signal instead of writing forever."""
    run = server.submit("while :; do printf '%3000s\\n' x; sleep 0.05; done", tty=True)
    server.wait_for_status(run["id"], "running")
    os.kill(supervisor_of(server, run["id"]), signal.SIGKILL)
    server.wait_for_status(run["id"], "lost")
