"""The state folder under attack: damaged, deleted, read-only, full, on a network, or somebody else's."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.client.address import read_server
from labwright.compute import machine
from labwright.compute.journal import Journal
from labwright.compute.rebuild import rebuild
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.sweep import Sweep
from labwright.paths import ProjectPaths
from labwright.processes import processes_of_run
from labwright.server.boot import listen, prepare_state, take_lock
from labwright.store.database import Database
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until
from tests.unit.test_run_moves import a_run

NOBODY = 65534
AS_ANY_USER = "-dac_override,-dac_read_search,-fowner,-chown"  # root without what sets it above file modes


def try_to_start(
    server: LiveServer, *options: str, before: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A start that is to fail: it must end by itself, with words and no traceback."""
    command = [*(before or []), sys.executable, "-m", "labwright.server", "--project", str(server.project), *options]
    done = subprocess.run(
        command, env=server.environment, capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    assert done.returncode > 0, done
    assert done.stderr.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr
    return done


def remove_database(server: LiveServer) -> None:
    for path in server.state.glob("labwright.db*"):
        path.unlink()


def gate(server: LiveServer, name: str) -> str:
    return f"until [ -e '{server.project}/{name}' ]; do sleep 0.02; done"


def facts(run: dict[str, Any]) -> dict[str, Any]:
    """What a rebuild must bring back, whatever the run does meanwhile."""
    kept = (
        "id",
        "name",
        "command",
        "workdir",
        "sweep_id",
        "created_at",
        "created_by",
        "params",
        "seed",
        "after",
        "env",
    )
    return {name: run[name] for name in (*kept, "tags", "notes", "priority", "parent_run_id", "gpus", "archived")}


def ending(run: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("status", "status_reason", "exit_code", "signal", "attempt"))


# -- a damaged database


def test_a_damaged_database_is_told_and_rebuilt(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    sweep = server.post("/sweeps/wild", {"name": "s", "goal": "g"})["id"]
    made = [server.wait_for_end(server.submit(f"exit {i}", sweep_id=sweep)["id"]) for i in range(4)]
    server.stop()
    path = server.state / "labwright.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    done = try_to_start(server)
    assert "damaged" in done.stderr
    assert "labwright db rebuild" in done.stderr
    assert path.read_bytes() == whole[: len(whole) // 2]
    result = rebuild(ProjectPaths(server.project))
    assert (result.runs, result.sweeps, result.unreadable) == (4, 1, 0)
    assert Path(str(result.kept_aside)).read_bytes() == whole[: len(whole) // 2]
    server.start()
    assert [ending(run) for run in server.all_runs()] == [ending(run) for run in made[::-1]]
    assert server.get(f"/sweeps/{sweep}")["progress"]["total"] == 4
    server.kill()
    for file in server.state.glob("labwright.db*"):  # an empty file is a valid database, of no runs
        file.write_bytes(b"")
    server.start()
    assert [ending(run) for run in server.all_runs()] == [ending(run) for run in made[::-1]]


def test_after_an_orderly_end_the_file_alone_is_the_whole_database(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.post("/runs", {"command": "true"})["id"]
    server.stop()
    connection = sqlite3.connect(f"file:{server.state / 'labwright.db'}?immutable=1", uri=True)
    assert connection.execute("SELECT id FROM runs").fetchall() == [(run,)]
    connection.close()


def test_a_database_of_the_future_is_refused_and_left_alone(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    path = server.state / "labwright.db"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()
    assert "999" in try_to_start(server).stderr
    assert path.read_bytes() == before


def test_what_cannot_be_read_hides_nothing_else_from_a_rebuild(tmp_path: Path) -> None:
    paths = prepare_state(tmp_path)
    good = Sweep(id="sweep-0000000001", name="good", created_at="t", created_by="person")
    paths.sweep(good.id).write_text(json.dumps(good.to_dict()))
    paths.sweep("sweep-0000000002").write_bytes(b"")
    journal = Journal(paths.journal)
    journal.note([a_run(sweep_id=good.id)])
    journal.close_file()
    with paths.journal.open("ab") as file:
        file.write(b'{"run": {"id": "run-half')
    broken = paths.runs / "run-0000000000"
    broken.mkdir()
    (broken / "spec.json").write_text("{")
    result = rebuild(paths)
    assert (result.runs, result.sweeps, result.unreadable) == (1, 1, 2)
    assert (broken / "spec.json").exists()


# -- a deleted database


def test_a_database_deleted_under_a_running_server_is_healed(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="2").start()
    sweep = server.post("/sweeps/wild", {"name": "mid"})["id"]
    done = server.wait_for_end(server.submit("exit 3", sweep_id=sweep)["id"])
    held = [server.submit(f"{gate(server, 'go')}; exit {i}", sweep_id=sweep)["id"] for i in range(4)]
    server.wait_for_status(held[0], "running")
    epoch = server.get("/events?limit=1")[0]["epoch"]
    remove_database(server)
    meanwhile = server.post("/runs", {"command": "true", "name": "meanwhile"})["id"]
    assert len(server.all_runs()) == 6
    wait_until((server.state / "labwright.db").exists, "the database to be back")
    (server.project / "go").touch()
    for number, run_id in enumerate(held):
        assert server.wait_for_end(run_id)["exit_code"] == number
    server.restart()
    assert {run["id"] for run in server.all_runs()} == {done["id"], *held, meanwhile}
    assert ending(server.run(done["id"])) == ending(done)
    assert server.get("/events?limit=1")[0]["epoch"] == epoch


def test_a_database_deleted_while_the_server_is_down_comes_back_with_the_truth(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="3", LABWRIGHT_GRACE_SECONDS="1").start()
    sweep = server.post("/sweeps/wild", {"name": "mid", "goal": "g", "parallel": 2})
    common = {"sweep_id": sweep["id"], "tags": ["t"], "params": {"lr": 0.1}, "seed": 1, "env": {"A": "1"}}
    finished = server.wait_for_end(server.submit("true", name="finished", **common)["id"])["id"]
    failed = server.wait_for_end(server.submit("exit 9", name="failed", **common)["id"])["id"]
    killed = server.wait_for_end(server.submit("kill -9 $$", name="killed")["id"])["id"]
    gone = server.wait_for_end(server.submit("true", name="gone")["id"])["id"]
    left = server.state / "runs" / gone
    shutil.copytree(left, server.project / "copy", symlinks=True)
    server.call("DELETE", f"/runs/{gone}")
    server.call("PATCH", f"/runs/{failed}", {"name": "renamed", "notes": "after the end", "tags": ["keep"]})
    server.post(f"/runs/{killed}/archive")
    stopped = server.submit("sleep 300", name="stopped")["id"]
    server.wait_for_status(stopped, "running")
    server.post(f"/runs/{stopped}/stop")
    server.wait_for_end(stopped)
    ready = server.post("/runs", {"command": "true", "name": "ready", **common})["id"]
    server.call("PATCH", f"/runs/{ready}", {"notes": "a note", "priority": 4})
    unstarted = server.post("/runs", {"command": "true", "name": "stopped before it began"})["id"]
    orphan = server.submit("true", name="child of the unstarted", after=[unstarted])["id"]
    grandchild = server.post("/runs", {"command": "true", "name": "its child", "after": [orphan]})["id"]
    server.post(f"/runs/{unstarted}/stop")
    doomed = server.submit(f"{gate(server, 'doom')}; exit 1", name="doomed")["id"]
    bereft = server.submit("touch never", name="child of a deleted one", after=[doomed])["id"]
    (server.project / "doom").touch()
    server.wait_for_end(bereft)
    server.call("DELETE", f"/runs/{doomed}")
    running = server.submit(f"{gate(server, 'go')}; exit 4", name="running", **common)["id"]
    second = server.submit(f"{gate(server, 'go')}; exit 5", name="running too", **common)["id"]
    queued = server.submit("exit 6", name="queued", **common)["id"]
    behind = server.submit("exit 7", name="behind", after=[second])["id"]
    for run_id in (running, second):
        server.wait_for_status(run_id, "running")
    server.call("PATCH", f"/runs/{running}", {"notes": "while it runs"})
    before = {run["id"]: run for run in server.all_runs()}
    order = [run["id"] for run in server.all_runs()]
    server.kill()
    remove_database(server)
    shutil.move(server.project / "copy", left)  # as if the kill had come before the deleted run's files were gone
    server.start()
    after = {run["id"]: run for run in server.all_runs()}
    assert {run_id: facts(run) for run_id, run in after.items()} == {i: facts(run) for i, run in before.items()}
    assert [run["id"] for run in server.all_runs()] == order
    for run_id in (finished, failed, killed, stopped, unstarted, orphan, grandchild, bereft, ready, queued, behind):
        assert ending(after[run_id]) == ending(before[run_id]), before[run_id]["name"]
    assert {after[run_id]["status"] for run_id in (running, second)} == {"running"}
    assert server.get(f"/sweeps/{sweep['id']}")["parallel"] == 2
    (server.project / "go").touch()
    for run_id, code in ((running, 4), (second, 5), (queued, 6)):
        assert server.wait_for_end(run_id)["exit_code"] == code
    assert server.wait_for_end(behind)["status_reason"] == "dependency_failed"
    assert server.wait_for_end(server.post(f"/runs/{ready}/start")["id"])["status"] == "finished"
    assert not (server.project / "never").exists()


# -- backups


def test_backups_are_made_kept_few_and_bring_back_what_folders_do_not_hold(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_BACKUP_MINUTES="0.001", LABWRIGHT_BACKUPS_KEPT="2").start()
    run = server.wait_for_end(server.submit("true")["id"])["id"]
    alert = server.post(f"/runs/{run}/alerts", {"message": "m", "choices": ["ignore"]})["id"]
    server.post(f"/alerts/{alert}/respond", {"choice": "ignore"})
    server.post("/cluster", {"type": "cpu_only", "max_parallel": 5})

    def backed_up() -> bool:
        newest = sorted((server.state / "backups").glob("*.db"))
        return bool(newest) and b"ignore" in newest[-1].read_bytes() and b"cpu_only,5" in newest[-1].read_bytes()

    wait_until(backed_up, "a backup with the answer in it")
    later = server.wait_for_end(server.submit("exit 8")["id"])["id"]
    assert len(list((server.state / "backups").glob("*.db"))) <= 3
    server.kill()
    (server.state / "labwright.db").write_bytes(b"damaged" * 1000)
    newest = max((server.state / "backups").glob("*.db"))
    (server.state / "backups" / "labwright-99990101T000000Z.db").write_bytes(b"a bad backup")
    result = rebuild(ProjectPaths(server.project))
    assert result.backup == newest.name
    server.start()
    assert server.get(f"/alerts?run_id={run}")[0]["answer"] == "ignore"
    assert server.run(later)["exit_code"] == 8
    assert server.get("/cluster")["cluster"]["recommended"]["max_parallel"] == 5


# -- network file systems

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
nas:/home /home nfs4 rw,vers=4.2 0 0
nas:/my\\040data /mnt/my\\040data nfs rw 0 0
nas:/ü /mnt/ü cifs rw 0 0
/dev/sdb1 /home/me/local xfs rw 0 0
me@host: /home/me/remote fuse.sshfs rw 0 0
tmpfs /homework tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/home/me/project", True),
        ("/home", True),
        ("/home/me/local/project", False),
        ("/home/me/remote/x", True),
        ("/homework/project", False),
        ("/mnt/my data/project", True),
        ("/mnt/ü/project", True),
        ("/srv", False),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(path: str, network: bool) -> None:
    assert machine.is_network(Path(path), MOUNTS) is network


def test_the_database_can_live_elsewhere_and_the_project_points_to_it(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server(LABWRIGHT_STATE_DIR="~/local-state")
    server.environment["HOME"] = str(tmp_path)
    server.start()
    run = server.wait_for_end(server.submit("exit 2")["id"])
    assert not (server.state / "labwright.db").exists()
    pointed = Path((server.state / "database.path").read_text().strip())
    assert pointed.is_relative_to(tmp_path / "local-state")
    assert pointed.exists()
    assert pointed.stat().st_mode & 0o077 == 0
    server.environment.pop("LABWRIGHT_STATE_DIR")
    server.restart()
    assert ending(server.run(run["id"])) == ending(run)
    server.kill()
    for path in pointed.parent.iterdir():  # another machine, without that folder
        path.unlink()
    pointed.parent.rmdir()
    server.start()
    assert ending(server.run(run["id"])) == ending(run)


# -- a state folder that cannot be written


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of its own, so that it can be full or read-only for root too. Its size may be chosen, in MB."""
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


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


def test_a_job_that_dies_of_a_full_disk_says_so(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    run = server.submit("cat /dev/zero > checkpoint; until [ -e ../../go ]; do sleep 0.02; done; exit 1")
    wait_until(lambda: os.statvfs(small_disk).f_bavail == 0, "a full disk")
    (small_disk.parent / "go").touch()
    folder = server.state / "runs" / run["id"]
    wait_until(lambda: any(b"exit_code" in file.read_bytes() for file in folder.glob("exit.json*")), "its end")
    (server.project / "checkpoint").unlink()
    ended = server.wait_for_end(run["id"])
    assert ended["status"] == "failed" and "disk of its output was full" in ended["error"]


def test_what_a_job_prints_on_a_full_disk_waits_for_room(on_small_disk: LiveServer, small_disk: Path) -> None:
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
    return [pid for pid in processes_of_run(run_id) if Path(f"/proc/{pid}/comm").read_text().strip() == name]


def test_a_full_disk_is_told_loses_nothing_and_passes(on_small_disk: LiveServer, small_disk: Path) -> None:
    server = on_small_disk
    done = server.wait_for_end(server.submit("exit 3")["id"])
    running = server.submit(f"{gate(server, 'go')}; exit 4")["id"]
    server.wait_for_status(running, "running")
    before = {run["id"] for run in server.all_runs()}
    ballast = fill(small_disk)
    refused = 0
    for number in range(40):  # what room there is in the log is used up first
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
    assert server.get("/health")["status"] in ("ok", "degraded")
    assert ending(server.run(done["id"])) == ending(done)
    assert {run["id"] for run in server.all_runs()} == before
    ballast.unlink()
    (server.project / "go").touch()
    assert server.wait_for_end(running)["exit_code"] == 4
    assert server.wait_for_end(server.submit("exit 5")["id"])["exit_code"] == 5
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


@pytest.mark.parametrize("small_disk", [32], indirect=True)
def test_on_a_full_disk_runs_can_still_be_stopped(on_small_disk: LiveServer, small_disk: Path) -> None:
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


def test_a_run_that_ends_on_a_full_disk_ends_with_the_truth(on_small_disk: LiveServer, small_disk: Path) -> None:
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
def test_a_run_that_ends_while_its_folder_is_read_only_ends_with_the_truth(
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
def test_a_folder_of_somebody_else_is_told(make_server: Callable[..., LiveServer], what: str) -> None:
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


# -- two servers, ports, what an old one left


def test_a_second_server_in_the_project_is_refused_and_told_where_the_first_is(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server().start()
    said = (server.state / "server.json").read_bytes()
    done = try_to_start(server)
    assert server.url in done.stderr
    assert json.loads((server.state / "server.json").read_text())["pid"] == json.loads(said)["pid"]
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"url": "http://127.0.0.1:1", "pid": 1, "start_time": 1, "heartbeat": 1}',
        b'{"host": "elsewhere", "heartbeat": 1}',
        b'{"host": "elsewhere", "heartbeat": "soon"}',
        b'{"host": "elsewhere", "heartbeat": null}',
        b'{"host": "elsewhere"}',
    ],
)
def test_what_an_old_server_left_does_not_stop_the_next(tmp_path: Path, left: bytes) -> None:
    paths = prepare_state(tmp_path)
    paths.server.write_bytes(left)
    os.close(take_lock(paths))


def test_a_server_that_lives_on_another_machine_is_respected(tmp_path: Path) -> None:
    paths = prepare_state(tmp_path)
    told = {"host": "elsewhere", "url": "http://elsewhere:1", "pid": 7, "heartbeat": time.time()}
    paths.server.write_text(json.dumps(told))
    with pytest.raises(Conflict, match="http://elsewhere:1 on elsewhere"):
        take_lock(paths)


def test_a_port_that_was_asked_for_must_be_free(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        done = try_to_start(server, "--port", number)
        assert f"Port {number}" in done.stderr
        assert "--port" in done.stderr
        server.environment["LABWRIGHT_PORT"] = number  # the usual port gives way
        server.start()
        assert not server.url.endswith(f":{number}")


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 99999), ("127.0.0.1", -1), ("no.such.host.invalid", 0)])
def test_an_address_that_is_none_is_told(host: str, port: int) -> None:
    with pytest.raises(Invalid) as caught:
        listen(host, port, chosen=True)
    assert "--port" in caught.value.hint


def test_a_project_that_was_moved_finds_its_runs_at_the_new_place(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.wait_for_end(server.submit("echo here")["id"])
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        assert server.run(run["id"])["run_dir"] == str(moved / ".labwright" / "runs" / run["id"])
        assert server.output(run["id"]) == "here\n"
    finally:
        server.stop()


@pytest.mark.parametrize("tty", [False, True])
def test_a_run_that_goes_while_its_project_is_moved_ends_with_the_truth(
    make_server: Callable[..., LiveServer], tmp_path: Path, tty: bool
) -> None:
    server = make_server().start()
    run = server.submit(f"echo first; until [ -e '{tmp_path}/go' ]; do sleep 0.02; done; echo last; exit 5", tty=tty)[
        "id"
    ]
    wait_until((server.state / "runs" / run / "heartbeat").exists, "it to be watched")
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        (tmp_path / "go").touch()
        ended = server.wait_for_end(run)
        assert (ended["status"], ended["exit_code"]) == ("failed", 5)
        assert server.output(run).split() == ["first", "last"]
    finally:
        server.stop()


def test_a_server_whose_project_was_moved_away_says_so(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    moved = server.project.with_name("moved")
    token = server.token
    server.project.rename(moved)
    refused = server.call("POST", "/sweeps/wild", {"name": "lr", "goal": "which?"}, token=token)
    moved.rename(server.project)
    assert (refused.status, refused.json["error"]["code"]) == (507, "storage")
    assert f"no longer at {server.project}" in refused.json["error"]["message"]
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


def test_runs_of_a_project_that_was_moved_run_at_the_new_place(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    (server.project / "sub").mkdir()
    ended = server.wait_for_end(server.submit("pwd", workdir=str(server.project / "sub"))["id"])
    ready = server.post("/runs", {"command": "pwd"})
    server.stop()
    moved = server.project.with_name("moved")
    server.project.rename(moved)
    server = LiveServer(moved).start()
    try:
        server.post(f"/runs/{ready['id']}/start")
        again = server.post(f"/runs/{ended['id']}/rerun", {"auto_start": True})
        assert server.wait_for_end(ready["id"])["status"] == server.wait_for_end(again["id"])["status"] == "finished"
        assert (server.output(ready["id"]), server.output(again["id"])) == (f"{moved}\n", f"{moved / 'sub'}\n")
    finally:
        server.stop()


def test_a_copy_of_a_project_leaves_the_runs_of_the_original_alone(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    going = server.submit("touch began; until [ -e go ]; do sleep 0.1; done; exit 5")
    server.wait_for_status(going["id"], "running")
    wait_until((server.project / "began").exists)
    queued = server.submit("echo once >> count")
    copied = server.project.with_name("copied")
    subprocess.run(["cp", "-a", server.project, copied], check=True)
    assert read_server(ProjectPaths(server.project)) is not None
    assert read_server(ProjectPaths(copied)) is None
    copy = LiveServer(copied).start()
    try:
        seen = copy.wait_for_end(going["id"])
        assert (seen["status"], seen["status_reason"]) == ("lost", "copied")
        assert copy.wait_for_end(queued["id"])["status_reason"] == "copied"
        (server.project / "go").touch()
        assert server.wait_for_end(going["id"])["exit_code"] == 5
        assert server.wait_for_end(queued["id"])["status"] == "finished"
        assert (server.project / "count").read_text() == "once\n" and not (copied / "count").exists()
    finally:
        copy.stop()


def test_a_folder_at_a_place_that_is_none_of_ours_stops_no_start(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = server.wait_for_end(server.submit("echo here")["id"])
    server.stop()
    with sqlite3.connect(server.state / "labwright.db") as database:
        database.execute("UPDATE runs SET record = json_set(record, '$.run_dir', '/r')")
    server.start()
    assert server.run(run["id"])["run_dir"] == run["run_dir"]


def test_a_project_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no folder"):
        prepare_state(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
