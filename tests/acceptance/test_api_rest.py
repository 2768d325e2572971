"""Sweeps, alerts, the cluster and housekeeping over HTTP."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labwright.sim.gpus import SimulatedGpus
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("rest") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    server.stop()


def test_sweep_shows_its_progress(lab: LiveServer) -> None:
    made = lab.post("/sweeps/wild", {"name": "lr", "goal": "which lr?", "chat_session_id": "c-1", "parallel": 2})
    assert (made["method"], made["status"], made["goal"]) == ("wild", "running", "which lr?")
    assert (made["created_by"], made["parallel"], made["chat_session_id"]) == ("person", 2, "c-1")
    for command in ("true", "false", "true"):
        lab.wait_for_end(lab.submit(command, sweep_id=made["id"])["id"])
    progress = lab.get(f"/sweeps/{made['id']}")["progress"]
    assert (progress["total"], progress["finished"], progress["failed"], progress["running"]) == (3, 2, 1, 0)


def test_sweeps_are_listed_newest_first_in_pages(lab: LiveServer) -> None:
    made = [lab.post("/sweeps/wild", {"name": f"s{i}"})["id"] for i in range(5)]
    seen: list[str] = []
    cursor = ""
    while len(seen) < 5:
        answer = lab.call("GET", f"/sweeps?limit=2{cursor}")
        seen += [sweep["id"] for sweep in answer.json]
        cursor = f"&cursor={answer.headers['x-next-cursor']}" if "x-next-cursor" in answer.headers else ""
        lab.post("/sweeps/wild", {"name": "meanwhile"})
    assert seen[:5] == made[::-1]


def test_alert_is_stored_listed_and_answered_once(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])["id"]
    body = {"message": "loss is NaN ✓", "choices": ["ignore", "stop"], "severity": "critical"}
    alert = lab.post(f"/runs/{run}/alerts", body)
    assert {**alert, **body} == alert
    assert alert["status"] == "pending"
    assert [found["id"] for found in lab.get(f"/alerts?status=pending&run_id={run}")] == [alert["id"]]
    assert lab.call("POST", f"/alerts/{alert['id']}/respond", {"choice": "explode"}).status == 422
    answered = lab.post(f"/alerts/{alert['id']}/respond", {"choice": "ignore"})
    assert (answered["status"], answered["answer"], answered["answered_by"]) == ("resolved", "ignore", "person")
    again = lab.call("POST", f"/alerts/{alert['id']}/respond", {"choice": "ignore"})
    assert again.status == 409
    assert lab.get(f"/alerts?status=pending&run_id={run}") == []
    assert [found["id"] for found in lab.get(f"/alerts?status=resolved&run_id={run}")] == [alert["id"]]
    types = [event["type"] for event in lab.get(f"/events?run_id={run}")]
    assert types[-2:] == ["alert.raised", "alert.resolved"]


def test_alerts_are_paged(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})["id"]
    made = [lab.post(f"/runs/{run}/alerts", {"message": str(i)})["id"] for i in range(4)]
    first = lab.call("GET", f"/alerts?run_id={run}&limit=3")
    rest = lab.call("GET", f"/alerts?run_id={run}&limit=3&cursor={first.headers['x-next-cursor']}")
    assert [alert["id"] for alert in first.json + rest.json] == made[::-1]
    assert "x-next-cursor" not in rest.headers


def test_answer_stop_stops_the_run(lab: LiveServer) -> None:
    run = lab.submit("sleep 300")["id"]
    lab.wait_for_status(run, "running")
    alert = lab.post(f"/runs/{run}/alerts", {"message": "diverged", "choices": ["stop"]})
    lab.post(f"/alerts/{alert['id']}/respond", {"choice": "stop"})
    assert lab.wait_for_end(run)["status"] == "stopped"


def test_answer_stop_is_accepted_after_the_run_ended(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])["id"]
    alert = lab.post(f"/runs/{run}/alerts", {"message": "late", "choices": ["stop"]})
    assert lab.post(f"/alerts/{alert['id']}/respond", {"choice": "stop"})["status"] == "resolved"
    assert lab.run(run)["status"] == "finished"


def test_answer_rerun_makes_one_run_however_many_answer(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("exit 3", tags=["again"])["id"])["id"]
    alert = lab.post(f"/runs/{run}/alerts", {"message": "failed", "choices": ["rerun", "ignore"]})

    def answer(_: int) -> int:
        return lab.call("POST", f"/alerts/{alert['id']}/respond", {"choice": "rerun"}).status

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(answer, range(6))) == [200, *[409] * 5]
    children = [found for found in lab.get("/runs?tag=again") if found["parent_run_id"] == run]
    assert len(children) == 1


def test_failed_rerun_leaves_the_alert_open(lab: LiveServer) -> None:
    (lab.project / "soon gone").mkdir()
    run = lab.wait_for_end(lab.submit("true", workdir="soon gone")["id"])["id"]
    alert = lab.post(f"/runs/{run}/alerts", {"message": "again?", "choices": ["rerun"]})
    (lab.project / "soon gone").rmdir()
    assert lab.call("POST", f"/alerts/{alert['id']}/respond", {"choice": "rerun"}).status == 422
    assert lab.get(f"/alerts?run_id={run}")[0]["status"] == "pending"


def test_manual_cluster_settings_survive_restart_until_a_person_detects(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    detected = server.get("/cluster")["cluster"]
    assert (detected["source"], detected["type"]) == ("detected", "cpu_only")
    by_hand = server.post("/cluster", {"type": "cpu_only", "max_parallel": 7, "shared_machine": True})["cluster"]
    assert (by_hand["source"], by_hand["recommended"]["max_parallel"]) == ("manual", 7)
    server.restart()
    again = server.get("/cluster")["cluster"]
    assert (again["source"], again["recommended"]["max_parallel"]) == ("manual", 7)
    assert again["shared_machine"] is True
    found = server.call("POST", "/cluster/detect").json["cluster"]
    assert (found["source"], found["recommended"]) == ("detected", detected["recommended"])
    server.restart()
    assert server.get("/cluster")["cluster"]["source"] == "detected"


def test_refused_setting_changes_nothing(lab: LiveServer) -> None:
    lab.post("/cluster", {"type": "cpu_only", "max_parallel": 3})
    for body in ({"type": "slurm"}, {"type": "local_gpu"}, {"type": "cpu_only", "max_parallel": -1}):
        assert lab.call("POST", "/cluster", body).status == 422
        cluster = lab.get("/cluster")["cluster"]
        assert (cluster["source"], cluster["recommended"]["max_parallel"]) == ("manual", 3)
    assert lab.call("POST", "/cluster/detect", {"preferred_type": "slurm"}).status == 422
    assert lab.get("/cluster")["cluster"]["source"] == "manual"
    lab.post("/cluster/detect")


@pytest.fixture
def gpu_server(make_server: Callable[..., LiveServer], tmp_path: Path) -> LiveServer:
    gpus = SimulatedGpus.create(tmp_path / "driver", 2)
    server = make_server()
    server.environment = gpus.environment({**server.environment, "LABWRIGHT_GRACE_SECONDS": "1"})
    return server.start()


def test_server_starts_if_manually_set_cards_are_missing(gpu_server: LiveServer) -> None:
    assert gpu_server.post("/cluster", {"type": "local_gpu"})["cluster"]["gpu_count"] == 2
    gpu_server.kill()
    gpu_server.environment = {**os.environ, **{k: v for k, v in gpu_server.environment.items() if "_LEASE" in k}}
    gpu_server.environment |= {"LABWRIGHT_PORT": "0", "LABWRIGHT_TMUX": "0"}
    gpu_server.start()
    assert gpu_server.get("/cluster")["cluster"]["type"] == "cpu_only"


def test_gpu_requests_of_runs_are_understood(gpu_server: LiveServer) -> None:
    for gpus in (0, 2):
        run = gpu_server.post("/runs", {"command": "true", "gpus": gpus})
        again = gpu_server.post(f"/runs/{run['id']}/rerun", {"auto_start": False})
        assert again["gpus"] == gpus
    for broken in ("CUDA_VISIBLE_DEVICES=it's x", 'CUDA_VISIBLE_DEVICES="0 x', "CUDA_VISIBLE_DEVICES=\\"):
        assert gpu_server.call("POST", "/runs", {"command": broken}).status == 201, broken
    assert gpu_server.call("POST", "/runs", {"command": "true", "gpus": 3}).status == 422


def test_gc_reports_sizes_and_keeps_what_was_not_deleted(lab: LiveServer) -> None:
    sizes = lab.get("/storage")
    assert sizes["total_bytes"] == sum(sizes["bytes"].values()) > 0
    stranger = lab.state / "runs" / "run-0000000000"
    stranger.mkdir()
    (stranger / "output.log").write_text("the only copy")
    os.utime(stranger, (0, 0))
    report = lab.post("/gc", {"dry_run": True})
    assert (report["dry_run"], report["orphan_folders"]) == (True, 0)
    lab.post("/gc")
    assert (stranger / "output.log").read_text() == "the only copy"


def test_gc_removes_leftovers_of_a_deleted_run_after_a_kill(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true")["id"])["id"]
    lab.call("DELETE", f"/runs/{run}")
    left = lab.state / "runs" / run
    left.mkdir()
    assert lab.post("/gc")["orphan_folders"] == 1
    assert not left.exists()


def test_gc_removes_unneeded_secrets_and_claims(lab: LiveServer) -> None:
    waiting = lab.post("/runs", {"command": "true", "env": {"HF_TOKEN": "x"}})["id"]
    claims = lab.state / "metric-claims"
    claims.mkdir(exist_ok=True)
    held, free, young = claims / "1-1", claims / "1-2", claims / "1-3"
    gone, kept = lab.state / "secrets" / "run-0000000000.json", lab.state / "secrets" / f"{waiting}.json"
    for path in (held, free, young, gone):
        path.touch()
    for path in (held, free, gone, kept):
        os.utime(path, (0, 0))
    with open(held) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert lab.post("/gc", {"dry_run": True})["leftover_files"] == 2
        assert lab.post("/gc")["leftover_files"] == 2
    assert [path.exists() for path in (held, young, kept, free, gone)] == [True, True, True, False, False]


def test_backup_can_be_made_on_request(lab: LiveServer) -> None:
    path = Path(lab.post("/backup")["path"])
    wait_until(path.exists, "the backup")
    assert path.stat().st_mode & 0o077 == 0


def test_prometheus_metrics_count_runs_and_alerts(lab: LiveServer) -> None:
    before = figures(lab)
    failed = lab.wait_for_end(lab.submit("exit 3")["id"])
    wait_until(lambda: lab.get(f"/alerts?run_id={failed['id']}"), "the alert of a failed run")
    after = figures(lab)
    assert after['labwright_runs{status="failed"}'] == before['labwright_runs{status="failed"}'] + 1
    assert after["labwright_alerts_pending"] > before["labwright_alerts_pending"]
    assert after["labwright_events_total"] > before["labwright_events_total"]
    assert after["labwright_healthy"] == 1
    assert 20e6 < after["process_resident_memory_bytes"] < 300e6


def figures(lab: LiveServer) -> dict[str, float]:
    text = lab.call("GET", "/metrics/prometheus").body.decode()
    assert text.endswith("\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_server_log_is_machine_readable(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_SERVER_LOG_JSON="true").start()
    lines = [json.loads(line) for line in (server.project / ".labwright/logs/server.log").read_text().splitlines()]
    assert any(line["message"].startswith("listening on ") and line["level"] == "info" for line in lines)
