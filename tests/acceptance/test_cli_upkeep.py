"""The commands that maintain a project and show the machine: real processes against a real server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labwright.domain.clock import now
from tests.acceptance.test_cli import LABWRIGHT, answer, labwright
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


def test_tokens_do_only_what_their_scope_allows(lab: LiveServer) -> None:
    viewer = labwright(lab, "token", "--ttl", "1m").stdout.strip()
    assert lab.call("GET", "/runs", token=viewer).status == 200
    assert lab.call("POST", "/runs", {"command": "true"}, token=viewer).status == 403
    assert viewer != lab.token == labwright(lab, "token", "--show").stdout.strip()


def test_upkeep_shows_sizes_and_writes_backups(lab: LiveServer) -> None:
    report = answer(lab, "gc", "--dry-run", "--json")
    assert report["storage"]["total_bytes"] > 0
    assert Path(answer(lab, "backup", "--json")["path"]).exists()


def test_gc_counts_freed_bytes_once(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_KEEP_DAYS="0", LABWRIGHT_KEEP_ARCHIVED_DAYS="0").start()
    run = server.wait_for_end(server.submit("head -c 2000000 /dev/zero")["id"])
    server.post(f"/runs/{run['id']}/archive")
    wait_until(lambda: now() > server.run(run["id"])["archived_at"], "the clock to go on")
    before = answer(server, "gc", "--dry-run", "--json")
    report = answer(server, "gc", "--json")
    assert (report["logs_removed"], report["runs_deleted"]) == (0, 1)
    went = before["storage"]["bytes"]["runs"] - report["storage"]["bytes"]["runs"]
    assert before["freed_bytes"] == report["freed_bytes"] == pytest.approx(went, rel=0.01)


def test_log_removed_by_gc_and_an_empty_log_are_reported_differently(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_KEEP_DAYS="0").start()
    spoke, silent = (server.wait_for_end(server.submit(command)["id"])["id"] for command in ("echo word", "true"))
    assert answer(server, "gc", "--json")["logs_removed"] == 1
    assert answer(server, "gc", "--json")["logs_removed"] == 0
    for way in ([], ["-f"], ["--grep", "word"], ["--digest"]):
        said = labwright(server, "logs", spoke, *way)
        assert "gc removed this output" in said.stdout + said.stderr, way
        said = labwright(server, "logs", silent, *way)
        assert "removed" not in said.stdout + said.stderr, way
    for what in ("logs", "logs?grep=word", "logs/digest"):
        assert server.get(f"/runs/{spoke}/{what}")["removed_at"] > server.run(spoke)["ended_at"]
        assert server.get(f"/runs/{silent}/{what}")["removed_at"] is None


def test_machine_is_shown(lab: LiveServer) -> None:
    assert answer(lab, "cluster", "--detect", "--json")["cluster"]["cpu_count"] >= 1
    assert labwright(lab, "cluster").returncode == 0
    assert labwright(lab, "gpu").returncode == 0


def test_doctor_reports_a_healthy_project_as_healthy(lab: LiveServer) -> None:
    report = json.loads(labwright(lab, "doctor", "--json").stdout)
    assert report["ok"], [check for check in report["checks"] if check["status"] == "fail"]
    checks = {check["name"]: check["status"] for check in report["checks"]}
    assert (checks["server"], checks["database"], checks["bash"]) == ("ok", "ok", "ok")


def test_damaged_database_is_found_and_rebuilt(make_server: Any) -> None:
    server: LiveServer = make_server().start()
    run = json.loads(labwright(server, "run", "--wait", "--json", "--", "exit 6").stdout)
    in_use = labwright(server, "db", "rebuild")
    assert (in_use.returncode, "labwright down" in in_use.stderr) == (1, True)
    server.kill()
    for file in server.state.glob("labwright.db*"):
        file.write_bytes(b"not a database at all" * 500)
    sick = labwright(server, "doctor")
    assert (sick.returncode, "labwright db rebuild" in sick.stdout) == (1, True)
    rebuilt = answer(server, "db", "rebuild", "--json")
    assert rebuilt["runs"] == 1 and Path(rebuilt["kept_aside"]).exists()
    assert labwright(server, "backup").returncode == 0
    assert answer(server, "db", "rebuild", "--json")["runs"] == 1, "those in the backup count"
    server.start()
    assert server.wait_for_end(run["id"])["exit_code"] == 6


def test_simulated_gpus_are_shown_and_changed(tmp_path: Path) -> None:
    script = f"{' '.join(map(repr, LABWRIGHT))} sim set 1 --memory-mb 2000 --utilization 50 --json; nvidia-smi -L"
    called = subprocess.run(
        [*LABWRIGHT, "sim", "gpus", "2", "--", "sh", "-c", f"{script}; exit 3"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert called.returncode == 3, called.stderr
    assert '"memory_used_mb": 2000' in called.stdout
    assert called.stdout.count("Simulated") == 2
