"""`labwright up` and `labwright down`: a server starts, refuses clearly, and ends without ending its runs."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.processes import identity, start_time
from tests.acceptance.test_cli import LABWRIGHT, answer, labwright
from tests.support.children import end_with_test
from tests.support.live_server import LiveServer
from tests.support.storage import AS_ANY_USER, fill
from tests.support.waiting import wait_until


@pytest.fixture
def place(tmp_path: Path) -> Iterator[LiveServer]:
    """A project whose server is started by the command, not by the test."""
    project = tmp_path / "project"
    project.mkdir()
    place = LiveServer(project)
    yield place
    for run in place.state.glob("runs/*"):
        labwright(place, "stop", run.name)
    labwright(place, "down")


def up(place: LiveServer, *arguments: str) -> str:
    place.url = answer(place, "up", "-d", "--json", *arguments)["url"]
    return place.url


def process_of(place: LiveServer) -> int:
    return int(json.loads((place.state / "server.json").read_text())["pid"])


def server_url(place: LiveServer) -> str:
    return str(json.loads((place.state / "server.json").read_text())["url"])


def test_up_starts_one_server_and_down_leaves_its_runs_alone(place: LiveServer) -> None:
    started = labwright(place, "up", "-d")
    assert started.returncode == 0, started.stderr
    place.url = server_url(place)
    assert place.url in started.stdout
    assert place.token not in started.stdout
    assert place.call("GET", "/health").status == 200

    second = labwright(place, "up", "-d")
    assert (second.returncode, place.url in second.stderr) == (1, True)

    run = place.submit("while ! test -e go; do sleep 0.05; done; exit 8")
    place.wait_for_status(run["id"], "running")
    ended = labwright(place, "down")
    assert (ended.returncode, "1 run still active" in ended.stdout) == (0, True)
    assert not (place.state / "server.json").exists()
    assert labwright(place, "ps").returncode == 3

    (place.project / "go").touch()
    up(place)
    assert place.wait_for_end(run["id"])["exit_code"] == 8


def test_down_says_nothing_about_runs_the_server_did_not_report(place: LiveServer) -> None:
    up(place)
    run = place.submit("while ! test -e go; do sleep 0.05; done")
    place.wait_for_status(run["id"], "running")
    (place.state / "token").write_text("lw_another\n")
    ended = labwright(place, "down")
    assert ended.stdout == "The server has stopped. Active runs continue.\n"
    assert "This needs a valid token" in ended.stderr

    (place.project / "go").touch()
    up(place)
    assert place.wait_for_end(run["id"])["status"] == "finished"


def test_two_starts_at_once_give_one_server_and_its_address(place: LiveServer) -> None:
    starts = [
        subprocess.Popen(
            [*LABWRIGHT, "up", "-d"], cwd=place.project, env=place.environment, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = sorted(start.communicate()[1] for start in starts)
    refusal = (
        f"error: A server for {place.project} already runs at {server_url(place)} (process {process_of(place)}).\n"
    )
    assert [words.partition("hint: ")[0] for words in said] == ["", refusal]
    assert sorted(start.returncode for start in starts) == [0, 1]


def test_commands_work_in_subfolders_of_the_project(place: LiveServer) -> None:
    up(place)
    below = place.project / "a" / "b"
    below.mkdir(parents=True)
    assert labwright(place, "ps", cwd=below).returncode == 0
    assert labwright(place, "ps", "--project", str(place.project), cwd="/").returncode == 0
    refused = labwright(place, "up", "-d", cwd=below)
    assert refused.returncode == 1 and "For a server of this folder: labwright up --project ." in refused.stderr
    assert "No runs yet" in labwright(place, "ps").stdout


def test_taken_port_is_reported_and_nothing_runs(place: LiveServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = labwright(place, "up", "-d", "--port", str(port))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: Port {port} on 127.0.0.1 is in use.\nhint: ")
    assert not (place.state / "server.json").exists()


def test_invalid_settings_are_reported_with_the_servers_message(place: LiveServer) -> None:
    (place.project / "labwright.toml").write_text("colour = 'blue'\n")
    refused = labwright(place, "up", "-d")
    assert (refused.returncode, "unknown setting 'colour'" in refused.stderr) == (1, True)


def test_server_file_of_a_killed_server_is_not_trusted(place: LiveServer) -> None:
    up(place)
    killed = process_of(place)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: start_time(killed) is None, "it to be gone: a large process takes its time")
    wait_until(lambda: labwright(place, "ps").returncode == 3, "the end to be noticed")
    tidied = labwright(place, "down")
    assert (tidied.returncode, "had already stopped" in tidied.stdout) == (0, True)
    assert "No server is running" in labwright(place, "down").stdout
    up(place)
    assert process_of(place) != killed


def test_token_is_never_sent_to_another_process_on_the_port(place: LiveServer) -> None:
    up(place)
    facts = json.loads((place.state / "server.json").read_text())
    labwright(place, "down")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(1.0)
        facts["url"] = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        (place.state / "server.json").write_text(json.dumps(facts))
        assert labwright(place, "ps").returncode == 3
        with pytest.raises(TimeoutError):
            stranger.accept()


def test_full_disk_is_reported_by_the_command(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(disk)], check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        place = LiveServer(disk)
        up(place)
        labwright(place, "down")
        fill(disk)
        refused = labwright(place, "up", "-d")
        assert (refused.returncode, "cannot be written" in refused.stderr) == (1, True), refused.stderr
        assert "hint: Free disk space" in refused.stderr
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_down_ends_a_server_whose_state_became_read_only(place: LiveServer) -> None:
    before = ["setpriv", f"--bounding-set={AS_ANY_USER}"] if os.getuid() == 0 else []

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*before, *LABWRIGHT, *arguments]
        return subprocess.run(
            command, cwd=place.project, env=place.environment, capture_output=True, text=True, timeout=120, check=True
        )

    call("up", "-d")
    place.state.chmod(0o500)
    try:
        ended = call("down")
    finally:
        place.state.chmod(0o700)
    assert ("has stopped" in ended.stdout, ended.stderr) == (True, "")


def test_foreground_server_is_the_command_process(place: LiveServer) -> None:
    (place.project / "logging.py").write_text("raise SystemExit('the project is not ours to import')\n")
    command = end_with_test(
        subprocess.Popen(
            [*LABWRIGHT, "up"], cwd=place.project, env=place.environment, stdout=subprocess.PIPE, text=True
        )
    )
    assert command.stdout is not None
    assert "Labwright" in command.stdout.readline()
    assert process_of(place) == command.pid
    assert labwright(place, "down").returncode == 0
    command.communicate(timeout=60)


def test_down_ends_a_server_whose_file_is_missing(place: LiveServer) -> None:
    up(place)
    pid, listed = process_of(place), place.state / "server.json"
    written = listed.stat().st_mtime
    wait_until(lambda: listed.stat().st_mtime != written, "a heartbeat, so that the next one is far")
    listed.unlink()
    told = labwright(place, "down")
    assert (told.returncode, f"process {pid}" in told.stdout) == (0, True), told
    assert start_time(pid) is None
    assert "No server is running" in labwright(place, "down").stdout


def test_down_never_signals_a_process_that_only_reuses_the_pid(place: LiveServer) -> None:
    place.state.mkdir(mode=0o700)
    other = end_with_test(subprocess.Popen(["sleep", "1000"]))
    named = {**identity(other.pid).to_dict(), "start_time": 1}
    with open(place.state / "server.lock", "w") as lock:
        lock.write(json.dumps(named))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = labwright(place, "down")
    assert told.returncode == 1 and "fuser -v" in told.stderr
    assert other.poll() is None
    other.kill()
    other.wait()


def test_mistyped_settings_table_is_reported_by_up_doctor_and_log(place: LiveServer) -> None:
    (place.project / "labwright.toml").write_text('[[alert]]\nmetric = "loss"\n')
    words = "[alert] has no effect: did you mean [[alerts]]?"
    assert words in labwright(place, "up", "-d").stderr
    assert words in (place.state / "logs" / "server.log").read_text()
    assert words in labwright(place, "doctor").stdout


def test_secrets_left_by_a_kill_are_removed_at_the_next_start(place: LiveServer) -> None:
    secrets = place.state / "secrets"
    secrets.mkdir(parents=True, mode=0o700)
    (secrets / "run-0000000000.json").write_text('{"HF_TOKEN": "x"}')
    up(place)
    assert list(secrets.iterdir()) == []
