"""The state folder is on a full or read-only disk, or belongs to another user."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labwright.processes import processes_of_run
from tests.acceptance.test_cli import labwright
from tests.support.live_server import LiveServer
from tests.support.storage import AS_ANY_USER, ending, fill, gate, remove_database, try_to_start
from tests.support.waiting import wait_until

NOBODY = 65534


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A separate file system, so that it can be full or read-only for root too. Its size in MB can be chosen."""
    size = f"size={getattr(request, 'param', 6)}m"
    point = tmp_path / "disk"
    point.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(point)], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    yield point
    subprocess.run(["umount", "-l", str(point)], check=True)


@pytest.fixture
def on_small_disk(small_disk: Path, tmp_path: Path) -> Iterator[LiveServer]:
    project = small_disk / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_LEASE_DIR=str(tmp_path / "leases"), LABWRIGHT_MAX_PARALLEL="2")
    yield server.start()
    server.stop()


def test_job_that_fails_on_a_full_disk_reports_it(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    run = server.submit("cat /dev/zero > checkpoint; until [ -e ../../go ]; do sleep 0.02; done; exit 1")
    wait_until(lambda: os.statvfs(small_disk).f_bavail == 0, "a full disk")
    (small_disk.parent / "go").touch()
    folder = server.state / "runs" / run["id"]
    wait_until(lambda: any(b"exit_code" in file.read_bytes() for file in folder.glob("exit.json*")), "its end")
    (server.project / "checkpoint").unlink()
    ended = server.wait_for_end(run["id"])
    assert ended["status"] == "failed" and "disk of its output was full" in ended["error"]


def test_output_printed_on_a_full_disk_waits_for_room(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    run = server.submit("until [ -e ../../go ]; do sleep 0.02; done; seq 100000; exit 3")
    server.wait_for_status(run["id"], "running")
    ballast = fill(small_disk)
    (small_disk.parent / "go").touch()
    output = server.state / "runs" / run["id"] / "output.log"
    blocks = wait_until(lambda: processes_in(run["id"], "seq"), "it to be at the printing")
    assert blocks and output.stat().st_size < 500_000
    ballast.unlink()
    assert server.wait_for_end(run["id"])["exit_code"] == 3
    assert output.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))


def processes_in(run_id: str, name: str) -> list[int]:
    return [pid for pid in processes_of_run(run_id) if program_of(pid) == name]


def program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
        return ""


def test_full_disk_is_reported_loses_nothing_and_recovers(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    done = server.wait_for_end(server.submit("exit 3")["id"])
    running = server.submit(f"{gate(server, 'go')}; exit 4")["id"]
    server.wait_for_status(running, "running")
    before = {run["id"] for run in server.all_runs()}
    ballast = fill(small_disk)
    refused = 0
    for number in range(40):  # use up the free space in the log first
        answer = server.call("POST", "/runs", {"command": "true", "notes": "n" * 20_000, "name": str(number)})
        assert answer.status in (201, 507), answer.body
        if answer.status == 507:
            assert answer.json["error"]["code"] == "storage"
            assert "disk" in answer.json["error"]["hint"]
            refused += 1
        else:
            before.add(answer.json["id"])
    assert refused
    assert server.process is not None
    assert not select.select([server.process.stderr], [], [], 0)[0], "nobody may read there: a full pipe would block it"
    assert server.call("POST", "/sweeps/wild", {"name": "x" * 200, "goal": "g" * 90_000}).status == 507
    assert server.get("/sweeps") == []
    assert server.get("/health")["status"] == "degraded"
    refused = labwright(server, "token", "--header-file")
    assert refused.returncode == 1 and f"{server.state}/headers cannot be written: No space" in refused.stderr
    assert ending(server.run(done["id"])) == ending(done)
    assert {run["id"] for run in server.all_runs()} == before
    ballast.unlink()
    (server.project / "go").touch()
    assert server.wait_for_end(running)["exit_code"] == 4
    assert server.wait_for_end(server.submit("exit 5")["id"])["exit_code"] == 5
    assert server.get("/health")["status"] == "ok"
    known = {run["id"] for run in server.all_runs()}
    assert before <= known
    server.kill()
    ballast = fill(small_disk)
    assert "space" in try_to_start(server).stderr
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert "ead-only" in try_to_start(server).stderr
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    remove_database(server)
    server.start()
    assert {run["id"] for run in server.all_runs()} == known


def test_request_refused_on_a_full_disk_does_not_start_after_a_rebuild(
    on_small_disk: LiveServer, small_disk: Path
) -> None:
    """The journal may still have room when the database has none."""
    server = on_small_disk
    server.wait_for_end(server.submit("true")["id"])
    ballast = fill(small_disk)
    answers = [server.call("POST", "/runs", {"command": f"echo {number}"}) for number in range(40)]
    assert {answer.status for answer in answers} >= {507}
    known = {run["id"] for run in server.all_runs()}
    server.kill()
    ballast.unlink()
    remove_database(server)
    server.start()
    assert {run["id"] for run in server.all_runs()} == known


@pytest.mark.parametrize("small_disk", [32], indirect=True)
def test_runs_can_be_stopped_on_a_full_disk(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    running = server.submit("sleep 1000")["id"]
    server.wait_for_status(running, "running")
    reserve = server.state / "reserve"
    wait_until(reserve.exists, "some room to be kept back")
    fill(small_disk)
    wait_until(lambda: server.call("POST", "/sweeps/wild", {"name": "x", "goal": "g" * 90_000}).status == 507, "full")
    server.post(f"/runs/{running}/stop")
    server.wait_for_status(running, "stopped")
    assert not reserve.exists()


def test_run_that_ends_on_a_full_disk_has_its_true_result(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    gate_file = small_disk.parent / "go"  # not on the full disk
    run = server.submit(f"until [ -e '{gate_file}' ]; do sleep 0.02; done; exit 6")["id"]
    server.wait_for_status(run, "running")
    ballast = fill(small_disk)
    queued = server.call("POST", "/runs", {"command": "exit 7", "auto_start": True})
    gate_file.touch()
    wait_until(lambda: (server.state / "runs" / run / "exit.json").exists(), "the exit to be written")
    ballast.unlink()
    assert server.wait_for_end(run)["exit_code"] == 6
    if queued.status == 201:
        assert server.wait_for_end(queued.json["id"])["exit_code"] == 7


@pytest.fixture
def server_below_file_modes(make_server: Callable[..., LiveServer]) -> LiveServer:
    server = make_server()
    if os.getuid() == 0:
        server.command = ["setpriv", f"--bounding-set={AS_ANY_USER}", *server.command]
    return server.start()


@pytest.mark.parametrize("tty", [False, True])
def test_run_that_ends_in_a_read_only_folder_has_its_true_result(
    server_below_file_modes: LiveServer, tty: bool
) -> None:
    server = server_below_file_modes
    run = server.submit(f"echo first; {gate(server, 'go')}; echo last; exit 4", tty=tty)["id"]
    folder = server.state / "runs" / run
    wait_until((folder / "heartbeat").exists, "it to be watched")
    wait_until(lambda: server.output(run).startswith("first"), "its first word")
    subprocess.run(["chmod", "-R", "a-w", folder], check=True)
    (server.project / "go").touch()
    wait_until(lambda: not processes_of_run(run), "the command to end")
    server.restart()
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    ended = server.wait_for_end(run)
    assert (ended["status"], ended["exit_code"]) == ("failed", 4)
    assert server.output(run).split() == ["first", "last"]


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed")
@pytest.mark.parametrize("what", ["the project", "the state folder", "a file in it"])
def test_folder_of_another_user_is_reported(make_server: Callable[..., LiveServer], what: str) -> None:
    server = make_server()
    if what == "the project":
        os.chown(server.project, NOBODY, NOBODY)
    else:
        server.state.mkdir()
    if what == "the state folder":
        os.chown(server.state, NOBODY, NOBODY)
    if what == "a file in it":
        (server.state / "server.lock").touch(0o600)
        os.chown(server.state / "server.lock", NOBODY, NOBODY)
    done = try_to_start(server, before=["setpriv", f"--bounding-set={AS_ANY_USER}"])
    assert "ermi" in done.stderr
    assert str(server.state) in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed")
@pytest.mark.parametrize("verb", ["check", "rebuild", "backup"])
def test_commands_without_a_server_report_a_folder_of_another_user(
    make_server: Callable[..., LiveServer], verb: str
) -> None:
    server = make_server()
    server.state.mkdir(mode=0o700)
    os.chown(server.state, NOBODY, NOBODY)
    command = [sys.executable, "-m", "labwright.server.without_server", verb, "--project", str(server.project)]
    as_other = ["setpriv", f"--bounding-set={AS_ANY_USER}", *command]
    done = subprocess.run(as_other, env=server.environment, capture_output=True, text=True, check=False, cwd="/")
    assert "Traceback" not in done.stderr
    assert str(server.state) in done.stdout
