"""Runs on a real Slurm: its messages are shown, its actions followed, and every run has its true result."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labwright.sim.slurm import SimulatedSlurm, SlurmSize, simulated_slurm
from labwright.sim.slurm_config import Timers
from tests.support.live_server import LiveServer
from tests.support.slurm import jobs_named
from tests.support.sweeping import alerts_of, sweep_when
from tests.support.waiting import wait_until

MakeServer = Callable[..., LiveServer]


@pytest.fixture
def server(slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> LiveServer:
    return make_slurm_server(slurm).start()


def until_file(server: LiveServer, name: str) -> str:
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.05; done"


def started(server: LiveServer, command: str, **fields: Any) -> dict[str, Any]:
    return server.wait_for_status(server.submit(command, **fields)["id"], "running")


def start_again_now(slurm: SimulatedSlurm, job_id: str) -> None:
    """Start a requeued job now. Slurm would let it wait for two minutes."""
    slurm.client("scontrol", "update", f"jobid={job_id}", "starttime=now")


def logs_of(slurm: SimulatedSlurm) -> str:
    """Return the logs of Slurm's daemons, to explain a failure."""
    return "\n".join(
        f"{path.name}:\n{path.read_text()[-4000:]}" for path in sorted(slurm.layout.logs.glob("slurm*.log"))
    )


def test_cluster_is_found_with_its_partitions(server: LiveServer, slurm: SimulatedSlurm) -> None:
    found = server.get("/cluster")["cluster"]
    assert (found["type"], found["status"], found["source"]) == ("slurm", "healthy", "detected")
    assert (found["node_count"], found["gpu_count"], found["recommended"]["gpuwrap"]) == (3, 6, "disabled")
    main, debug, _urgent = found["partitions"]
    assert (main["name"], main["default"], main["nodes"], main["gpus"], main["time_limit_seconds"]) == (
        "main", True, 3, 6, None,
    )  # fmt: skip
    assert (debug["name"], debug["default"], debug["time_limit_seconds"]) == ("debug", False, 600)
    assert [(node["name"], node["is_well"], node["gpus"], node["cpus"]) for node in found["nodes"]] == [
        (f"node{number}", True, 2, 4) for number in (1, 2, 3)
    ]
    said = {look["looked_at"]: look["said"] for look in found["evidence"]}
    assert "slurm" in said["Slurm (sinfo)"]
    assert said["SLURM_CONF of the server"] == str(slurm.conf)


def test_job_gets_its_requested_resources_and_no_server_address(server: LiveServer) -> None:
    run = server.submit(
        "env; cat $LABWRIGHT_RUN_DIR/secrets.json",
        gpus=2, cpus=2, memory_mb=300, time_limit_seconds=90, slurm={"partition": "debug"}, env={"MY_TOKEN": "kept"},
    )  # fmt: skip
    ended = server.wait_for_end(run["id"])
    assert ended["status"] == "finished", ended
    assert ended["slurm_partition"] == "debug"
    said = dict(line.split("=", 1) for line in server.output(run["id"]).splitlines() if "=" in line)
    assert said["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert (said["SLURM_CPUS_PER_TASK"], said["SLURM_MEM_PER_NODE"], said["SLURM_JOB_PARTITION"]) == (
        "2",
        "300",
        "debug",
    )
    assert said["SLURM_JOB_NAME"] == run["id"]
    assert (said["MY_TOKEN"], said["LABWRIGHT_ATTEMPT"]) == ("kept", "1")
    assert "LABWRIGHT_SERVER_URL" not in said and "LABWRIGHT_RUN_TOKEN" not in said
    assert (ended["node"], ended["slurm_job_id"]) == (said["SLURMD_NODENAME"], said["SLURM_JOB_ID"])
    assert not (server.state / "runs" / run["id"] / "secrets.json").exists()


def test_flags_of_an_srun_size_the_allocation(server: LiveServer) -> None:
    run = server.submit("srun -N2 --ntasks=2 --cpus-per-task=2 bash -c 'echo $SLURM_NODEID of $SLURM_NNODES'")
    ended = server.wait_for_end(run["id"])
    assert ended["status"] == "finished", server.output(run["id"])
    assert sorted(server.output(run["id"]).splitlines()) == ["0 of 2", "1 of 2"]


def test_nested_sbatch_is_refused_with_the_fields_to_use(server: LiveServer) -> None:
    answer = server.call("POST", "/runs", {"command": "cd x && sbatch --gres=gpu:1 job.sh"})
    assert answer.status == 422
    assert "sbatch" in answer.json["error"]["message"]
    assert "`gpus`" in answer.json["error"]["hint"]


def test_options_that_hide_the_job_are_refused(server: LiveServer) -> None:
    for extra in ("--job-name=mine", "-Jmine", "--output=x", "evil.sh", "--array=1-3", "--export=ALL"):
        answer = server.call("POST", "/runs", {"command": "true", "slurm": {"extra": [extra]}})
        assert answer.status == 422, extra


def test_gpuwrap_is_off_and_says_so(server: LiveServer) -> None:
    run = server.post("/runs", {"command": "true", "gpus": 1, "gpuwrap_config": {"enabled": True}})
    assert run["gpuwrap_config"]["enabled"] is False
    assert "gpuwrap is off" in run["warnings"][0]


def test_permanent_refusal_by_slurm_fails_the_run_with_its_message(server: LiveServer) -> None:
    ended = server.wait_for_end(server.submit("true", slurm={"partition": "nowhere"})["id"])
    assert (ended["status"], ended["status_reason"]) == ("failed", "slurm_refused")
    assert "nowhere" in ended["error"]


def test_sbatch_output_without_a_job_id_fails_only_its_run(
    slurm: SimulatedSlurm, make_slurm_server: MakeServer, tmp_path: Path
) -> None:
    path = replaced(tmp_path / "bin", "sbatch", 'case "$*" in *--comment=quiet*) set -- --test-only "$@";; esac')
    server = make_slurm_server(slurm, PATH=path).start()
    silent = server.submit("true", slurm={"extra": ["--comment=quiet"]})["id"]
    ended = server.wait_for_end(silent)
    assert (ended["status"], ended["status_reason"]) == ("failed", "slurm_refused")
    assert "to start at" in ended["error"], "sbatch's own words"
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


def replaced(folder: Path, program: str, first: str, then: str = "") -> str:
    """Return a PATH on which a Slurm program runs these lines first, and its output goes through a filter."""
    folder.mkdir()
    (folder / program).write_text(f'#!/bin/sh\n{first}\n/usr/bin/{program} "$@" {then}\n')
    (folder / program).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_pending_job_shows_slurms_reason_and_can_be_stopped(server: LiveServer, slurm: SimulatedSlurm) -> None:
    holder = started(server, "sleep 1000", nodes=3, gpus=2)
    waiting = server.submit("touch never", gpus=2)
    shown = wait_until(lambda: with_reason(server, waiting["id"], "pending ("), "Slurm's reason")
    assert (shown["status"], shown["status_reason"]) == ("launching", "Slurm: pending (Resources)")
    server.post(f"/runs/{waiting['id']}/stop")
    assert server.wait_for_end(waiting["id"])["status"] == "stopped"
    server.post(f"/runs/{holder['id']}/stop")
    assert server.wait_for_end(holder["id"])["status"] == "stopped"
    wait_until(lambda: set(jobs_named(slurm, waiting["id"])) == {"CANCELLED"}, "Slurm to forget it")
    assert not (server.project / "never").exists()


def with_reason(server: LiveServer, run_id: str, words: str) -> dict[str, Any] | None:
    run = server.run(run_id)
    return run if words in run["status_reason"] else None


def test_runs_launched_together_become_an_array(server: LiveServer) -> None:
    sweep = server.post("/sweeps/wild", {"name": "many"})["id"]
    parent = started(server, until_file(server, "go"))
    made = [server.submit(f"echo {n}", sweep_id=sweep, after=[parent["id"]], name=str(n))["id"] for n in range(12)]
    wide = server.submit("echo wide", cpus=2, after=[parent["id"]])["id"]
    (server.project / "go").touch()
    ended = [server.wait_for_end(run_id) for run_id in made]
    assert {run["status"] for run in ended} == {"finished"}
    assert [server.output(run_id) for run_id in made] == [f"{n}\n" for n in range(12)]
    jobs = {run["slurm_job_id"].partition("_")[0] for run in ended}
    assert len(jobs) == 1
    assert server.wait_for_end(wide)["slurm_job_id"].isdigit(), "another request is another job"
    (listed,) = (server.state / "arrays").glob("*/runs.json")
    by_task = sorted(ended, key=lambda run: int(run["slurm_job_id"].partition("_")[2]))
    assert json.loads(listed.read_text())["run_ids"] == [run["id"] for run in by_task]


def test_array_is_no_larger_than_the_cluster_allows(make_slurm_server: MakeServer) -> None:
    with simulated_slurm(SlurmSize(nodes=1, gpus=0), Timers(max_array_size=5)) as cluster:
        server = make_slurm_server(cluster).start()
        parent = started(server, until_file(server, "go"))
        made = [server.submit(f"echo {n}", after=[parent["id"]])["id"] for n in range(12)]
        (server.project / "go").touch()
        ended = [server.wait_for_end(run_id, timeout=60) for run_id in made]
        server.stop()
    assert {run["status"] for run in ended} == {"finished"}
    sizes = Counter(run["slurm_job_id"].partition("_")[0] for run in ended)
    assert sorted(sizes.values()) == [2, 5, 5]


def test_renamed_job_is_still_followed(server: LiveServer, slurm: SimulatedSlurm) -> None:
    waiting = server.submit("true", slurm={"extra": ["--begin=now+1hour"]})["id"]
    wait_until(lambda: with_reason(server, waiting, "BeginTime"), "the job to be known")
    job = server.run(waiting)["slurm_job_id"]
    slurm.client("scontrol", "update", f"jobid={job}", "name=mine")
    slurm.client("scontrol", "hold", job)
    wait_until(lambda: with_reason(server, waiting, "JobHeld"), "its news", timeout=60)
    slurm.client("scontrol", "update", f"jobid={job}", "starttime=now")
    slurm.client("scontrol", "release", job)
    assert server.wait_for_end(waiting)["status"] == "finished"


def test_pending_slurm_jobs_take_no_local_slot(server: LiveServer) -> None:
    waiting = [server.submit("true", slurm={"extra": ["--begin=now+1hour"]})["id"] for _ in range(3)]
    wait_until(lambda: all(with_reason(server, run_id, "BeginTime") for run_id in waiting), "the jobs to be known")
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 1})
    here = server.wait_for_end(server.submit("true")["id"])
    assert (here["status"], here["launcher"]) == ("finished", "local")
    for run_id in waiting:
        server.post(f"/runs/{run_id}/stop")
        assert server.wait_for_end(run_id)["status"] == "stopped"


def test_runs_survive_a_restart_of_the_server(server: LiveServer) -> None:
    run = started(server, f"{until_file(server, 'go')}; exit 5")
    server.kill()
    (server.project / "go").touch()
    wait_until((server.state / "runs" / run["id"] / "exit.json").exists, "the run to end alone")
    server.start()
    ended = server.wait_for_end(run["id"])
    assert (ended["status"], ended["exit_code"]) == ("failed", 5)


def test_server_killed_between_sbatch_and_commit_finds_its_job_by_name(
    server: LiveServer, slurm: SimulatedSlurm, make_slurm_server: MakeServer
) -> None:
    """The job exists but is not in the database. It must be found, not submitted a second time."""
    bin_folder = server.project / "bin"
    bin_folder.mkdir()
    kill = bin_folder / "sbatch"
    kill.write_text('#!/bin/sh\nid=$(/usr/bin/sbatch "$@")\nkill -9 $PPID\necho "$id"\n')
    kill.chmod(0o755)
    server.stop()
    path = server.environment["PATH"]
    server.environment["PATH"] = f"{bin_folder}:{path}"
    server.start()
    run = server.submit(f"echo once; {until_file(server, 'go')}")
    assert server.process is not None
    server.process.wait(timeout=30)
    server.kill()
    server.environment["PATH"] = path
    server.start()
    wait_until(lambda: server.run(run["id"])["slurm_job_id"], "the job to be found")
    (server.project / "go").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "once\n"
    assert len(jobs_named(slurm, run["id"])) == 1


def test_no_secret_is_in_slurms_record_of_a_job(make_slurm_server: MakeServer, slurm: SimulatedSlurm) -> None:
    server = make_slurm_server(slurm, HF_TOKEN="server-secret").start()
    run = started(server, f'echo "$HF_TOKEN $MINE_TOKEN"; {until_file(server, "go")}', env={"MINE_TOKEN": "run-secret"})
    claim = json.loads((server.state / "runs" / run["id"] / "claim").read_text())
    sidecar = Path(f"/proc/{claim['pid']}/environ").read_bytes() + Path(f"/proc/{claim['pid']}/cmdline").read_bytes()
    assert b"-secret" not in sidecar
    assert "-secret" not in slurm.client("scontrol", "show", "job", run["slurm_job_id"])
    kept = subprocess.run(["grep", "-rl", "-e", "-secret", str(slurm.layout.folder)], capture_output=True, text=True)
    assert kept.stdout == ""
    (server.project / "go").touch()
    server.wait_for_end(run["id"])
    assert server.output(run["id"]) == "server-secret run-secret\n"


def test_plain_python_fits_in_the_default_job_memory(server: LiveServer) -> None:
    """It runs beside its sidecar, with as much memory as a usual import takes."""
    run = server.submit('python3 -c "x = bytearray(300 << 20); import time; time.sleep(3)"')
    assert server.wait_for_end(run["id"], timeout=60)["status"] == "finished"


def test_job_without_a_memory_request_has_room_for_a_script_and_its_sidecar(server: LiveServer) -> None:
    """Slurm checks every second, and adds up the memory of all processes."""
    run = server.submit("python3 -c 'import time; held = bytearray(100 << 20); time.sleep(3)'")
    ended = server.wait_for_end(run["id"], timeout=60)
    assert ended["status"] == "finished", ended["error"]


def grid(**fields: Any) -> dict[str, Any]:
    parameters = {"lr": [0.1, 0.01], "depth": [1, 2]}
    return {"name": "grid", "base_command": "echo", "parameters": parameters, "auto_start": True, **fields}


def test_paused_sweep_is_held_in_slurm_even_across_a_crash(server: LiveServer) -> None:
    sweep = server.post("/sweeps", grid(slurm={"extra": ["--begin=now+1hour"]}))["id"]

    def all_wait_for(reason: str) -> bool:
        return {reason in run["status_reason"] for run in server.get(f"/runs?sweep_id={sweep}")} == {True}

    wait_until(lambda: all_wait_for("BeginTime"), "the jobs to be known")
    server.post(f"/sweeps/{sweep}/pause")
    wait_until(lambda: all_wait_for("JobHeldUser"), "the jobs to be held", 60)
    server.restart()
    server.post(f"/sweeps/{sweep}/resume")
    wait_until(lambda: all_wait_for("BeginTime"), "the jobs to be released", 60)
    server.post(f"/sweeps/{sweep}/stop")


def test_budget_of_runs_lets_counted_jobs_start_before_it_pauses(server: LiveServer) -> None:
    """Three jobs can run at a time; the others are pending when the first of them end."""
    wanted = grid(parameters={"lr": list(range(12))}, gpus=2, budget={"runs": 8}, base_command="sleep 1; echo")
    sweep = server.post("/sweeps", wanted)["id"]
    wait_until(lambda: server.get(f"/sweeps/{sweep}")["progress"]["finished"], "the first to end")
    server.post(f"/sweeps/{sweep}/pause")
    server.post(f"/sweeps/{sweep}/resume")
    held = sweep_when(server, sweep, "paused")
    assert (held["progress"]["launching"], held["progress"]["ready"]) == (0, 4)
    assert [alert["rule"] for alert in alerts_of(server, sweep)] == ["sweep_budget:runs"]
    server.post(f"/sweeps/{sweep}/stop")


def test_jobs_held_by_somebody_else_stay_held(server: LiveServer, slurm: SimulatedSlurm) -> None:
    sweep = server.post("/sweeps", grid(slurm={"extra": ["--begin=now+1hour"]}))["id"]

    def reasons() -> dict[str, str]:
        return {run["id"]: run["status_reason"] for run in server.get(f"/runs?sweep_id={sweep}")}

    wait_until(lambda: set(reasons().values()) == {"Slurm: pending (BeginTime)"}, "the jobs to be known")
    theirs = min(reasons())
    job = server.run(theirs)["slurm_job_id"]
    slurm.client("scontrol", "uhold", job)
    one_held = {**dict.fromkeys(reasons(), "Slurm: pending (BeginTime)"), theirs: "Slurm: pending (JobHeldUser)"}
    wait_until(lambda: reasons() == one_held, "the hold to be shown where it is", 30)
    server.post(f"/sweeps/{sweep}/pause")
    wait_until(lambda: set(reasons().values()) == {"Slurm: pending (JobHeldUser)"}, "all to be held", 30)
    server.restart()
    server.post(f"/sweeps/{sweep}/resume")
    wait_until(lambda: reasons() == one_held, "ours to be released", 30)
    assert slurm.client("squeue", "-h", "-j", job, "-o", "%r").strip() == "JobHeldUser"
    server.post(f"/sweeps/{sweep}/stop")


def test_job_held_by_slurm_after_a_failed_launch_raises_an_alert(
    slurm: SimulatedSlurm, make_slurm_server: MakeServer, tmp_path: Path
) -> None:
    path = replaced(tmp_path / "bin", "squeue", "", "| sed 's/JobHeldUser/launch failed requeued held/'")
    server = make_slurm_server(slurm, PATH=path).start()
    run = server.submit("true", slurm={"extra": ["--hold"]})["id"]
    (alert,) = wait_until(lambda: server.get(f"/alerts?run_id={run}"), "the alert")
    job = server.run(run)["slurm_job_id"]
    assert (alert["rule"], alert["choices"]) == ("slurm_held", ["ignore", "stop"])
    assert f"scontrol release {job}" in alert["message"]
    slurm.client("scontrol", "release", job)
    assert server.wait_for_end(run)["status"] == "finished"
    assert [one["status"] for one in server.get(f"/alerts?run_id={run}")] == ["resolved"]


def test_command_that_calls_sbatch_is_refused_with_its_position(server: LiveServer) -> None:
    bodies = {"/runs": {"command": "sbatch job.sh"}, "/sweeps": grid(base_command="sbatch job.sh")}
    refused = [server.call("POST", path, body).json["error"]["field"] for path, body in bodies.items()]
    assert refused == [["command"], ["base_command"]]


def test_sweep_file_gives_the_same_runs_locally_and_on_slurm(server: LiveServer, make_server: MakeServer) -> None:
    wanted = grid(method="random", max_runs=6, seeds=2, sampling_seed=7, parameters={"lr": {"min": 0.1, "max": 1}})
    made = []
    for lab in (server, make_server("local").start()):
        sweep = lab.post("/sweeps", wanted)["id"]
        wait_until(lambda lab=lab, sweep=sweep: lab.get(f"/sweeps/{sweep}")["status"] == "completed", "its end", 60)
        runs = lab.get(f"/runs?sweep_id={sweep}")
        made.append(sorted((run["command"], run["seed"], run["config_hash"], run["status"]) for run in runs))
        assert {run["launcher"] for run in runs} == {"slurm" if lab is server else "local"}
    assert made[0] == made[1]
    assert len(made[0]) == 6
