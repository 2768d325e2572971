"""Each setup fault named in docs/troubleshooting.md is created here and must be found by `doctor`.

Tests combine several faults, because one call takes as long for one as for all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.client.address import locate
from labwright.paths import ProjectPaths
from tests.acceptance.test_cli import LABWRIGHT, labwright
from tests.support.live_server import LiveServer
from tests.support.other_user import TestUser

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_ROW = re.compile(r"^\| (?P<seen>[^|]+) \|[^|]+\|[^|]+\| `(?P<line>[^`]+)` \|$", re.MULTILINE)
SEEN_ELSEWHERE = {"model"}  # tested in test_models.py: a key that others can read, a model that responds
MADE_HERE = {
    *("server", "address", "state folder", "disk", "database", "settings", "tables", "token"),
    *("tmux", "git", "gcc", "sandbox", "GPU driver", "GPU leases", "Slurm"),
}


def lines(server: LiveServer, **options: object) -> dict[str, dict[str, str]]:
    report = json.loads(labwright(server, "doctor", "--json", **options).stdout)
    return {check["name"]: check for check in report["checks"]}


def bare_path(folder: Path, **scripts: str) -> str:
    """Return a PATH with bash and only the given tools."""
    folder.mkdir()
    (folder / "bash").symlink_to(shutil.which("bash") or "")
    for name, text in scripts.items():
        script = folder / name.replace("_", "-")
        script.write_text(f"#!{shutil.which('bash')}\n{text}\n")
        script.chmod(0o755)
    return str(folder)


def test_page_names_each_line_that_is_tested() -> None:
    table = PAGE.read_text().partition("|---|---|---|---|\n")[2]
    assert {row["line"] for row in _ROW.finditer(table)} == MADE_HERE | SEEN_ELSEWHERE


def test_missing_damaged_or_open_files_are_found(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server()
    server.state.mkdir(mode=0o755)
    (server.state / "labwright.db").write_bytes(b"no database" * 1000)
    (server.project / "labwright.toml").write_text('[[alert]]\nmetric = "loss"\n')
    leases = tmp_path / "bad-leases"
    leases.mkdir()
    (leases / "mutex").mkdir()  # an object of another user in its place
    with socket.create_server(("127.0.0.1", 0)) as taken:
        env = {
            "PATH": bare_path(
                tmp_path / "bin",
                nvidia_smi="echo driver mismatch >&2; exit 9",
                sinfo="echo unable to contact >&2; exit 1",
            ),
            "SLURM_CONF": "/nowhere",
            "LABWRIGHT_PORT": str(taken.getsockname()[1]),
            "LABWRIGHT_LEASE_DIR": str(leases),
        }
        found = lines(server, env=env)
    status = {name: check["status"] for name, check in found.items()}
    assert {name: status[name] for name in ("state folder", "database", "GPU leases", "Slurm")} == dict.fromkeys(
        ("state folder", "database", "GPU leases", "Slurm"), "fail"
    )
    warned = ("tables", "address", "tmux", "git", "gcc", "GPU driver", "server")
    assert {name: status[name] for name in warned} == dict.fromkeys(warned, "warn")
    assert all(found[name]["fix"] for name in (*warned, "state folder", "database", "GPU leases", "Slurm"))
    assert "did you mean [[alerts]]" in found["tables"]["said"]
    assert "db rebuild" in found["database"]["fix"] and "unable to contact" in found["Slurm"]["said"]
    assert "chmod go= " in found["state folder"]["fix"] and "is in use" in found["address"]["said"]


def test_multi_line_messages_of_other_programs_become_one_line(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server()
    bad_driver = bare_path(tmp_path / "bin", nvidia_smi="printf 'no driver\\n\\e[31mmismatch\\n' >&2; exit 9")
    server.state.mkdir(mode=0o700)
    file = server.state / "labwright.db"
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE rows AS SELECT zeroblob(99999) AS row")
    database.close()
    content = file.read_bytes()
    file.write_bytes(content[:5000] + b"\xff" * 4000 + content[9000:])
    shown = labwright(server, "doctor", env={"PATH": bad_driver}).stdout
    assert "damaged: " in shown and "no driver" in shown
    assert [line for line in shown.splitlines()[:-1] if not line.startswith(("ok ", "warn ", "fail ", "  "))] == []
    assert "\x1b" not in shown


def test_fix_can_be_typed_verbatim_with_spaces_in_a_folder_name(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    project = tmp_path / "my project"
    (project / ".labwright").mkdir(parents=True, mode=0o755)
    fix = lines(make_server(), cwd=project)["state folder"]["fix"]
    subprocess.run(["bash", "-c", fix], check=True)
    assert (project / ".labwright").stat().st_mode & 0o777 == 0o700


def test_broken_state_folder_link_is_found_and_its_fix_works(
    make_server: Callable[..., LiveServer], tmp_path: Path
) -> None:
    server = make_server()
    server.state.symlink_to(tmp_path / "scratch disk" / "state")
    found = lines(server)["state folder"]
    assert found["status"] == "fail" and "scratch disk/state, which does not exist" in found["said"]
    subprocess.run(["bash", "-c", found["fix"].partition(": ")[2]], check=True)
    assert lines(server)["state folder"]["status"] == "ok"


@pytest.mark.skipif(os.getuid() != 0, reason="giving a file away needs root")
def test_files_of_another_user_in_the_state_folder_are_found(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    server.state.mkdir(mode=0o700)
    for name in ("token", "journal.jsonl"):
        (server.state / name).touch(mode=0o600)
    os.chown(server.state / "token", 65534, 65534)
    found = lines(server)["state folder"]
    assert found["status"] == "fail" and found["said"].endswith("of another user: token")
    subprocess.run(["bash", "-c", found["fix"].removeprefix("sudo ")], check=True)
    assert lines(server)["state folder"]["status"] == "ok"


@pytest.mark.skipif(os.getuid() != 0, reason="making users takes root")
def test_unwritable_project_and_database_are_found(stage: Path) -> None:
    user = TestUser(f"lw-cy-{os.getpid() % 100000}", stage)
    try:
        (stage / "theirs").mkdir()
        found = lines_as(user, stage / "theirs")["state folder"]
        assert found["status"] == "fail" and "the folder is not writable" in found["said"] and found["fix"]
        state = user.make_folder(user.make_folder(stage / "own") / ".labwright")
        (state / "labwright.db").touch(mode=0o600)
        found = lines_as(user, stage / "own")["database"]
        assert found["status"] == "fail" and "db rebuild" not in found["fix"] and "damaged" not in found["said"]
    finally:
        user.remove()


def lines_as(user: TestUser, project: Path) -> dict[str, dict[str, str]]:
    command = user.command(user.python, *LABWRIGHT[1:], "doctor", "--json", "--project", str(project))
    told = subprocess.run(
        command, env=user.environment(project), cwd=project, stdout=subprocess.PIPE, timeout=60, check=False
    )
    return {check["name"]: check for check in json.loads(told.stdout)["checks"]}


def test_invalid_settings_and_address_are_found(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server()
    (server.project / "labwright.toml").write_text("max_paralel = 3\n")
    (found,) = [check for check in lines(server).values() if check["status"] == "fail"]
    assert found["name"] == "settings" and "max_parallel" in found["said"] + found["fix"]
    (server.project / "labwright.toml").write_text('host = "203.0.113.9"\n')
    found = lines(server)["address"]
    assert found["status"] == "fail" and "Cannot listen" in found["said"]


@pytest.mark.parametrize(
    ("table", "named"), [('[[notify]]\nkind = "pigeon"\n', "[[notify]] number 1"), ("[slurm]\nqueue = 1\n", "queue")]
)
def test_table_that_prevents_the_start_is_found(make_server: Callable[..., LiveServer], table: str, named: str) -> None:
    server = make_server()
    (server.project / "labwright.toml").write_text(table)
    found = lines(server)["tables"]
    assert found["status"] == "fail" and named in found["said"] and found["fix"]


def test_server_with_another_token_is_found(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    good = lines(server)
    assert [good[name]["status"] for name in ("server", "token", "address")] == ["ok", "ok", "ok"]
    own = server.token
    (server.state / "token").write_text("x" * 43)
    found = lines(server)
    (server.state / "token").write_text(own)
    assert (found["server"]["status"], found["token"]["status"]) == ("ok", "fail")
    assert "labwright down, labwright up -d" in found["token"]["fix"]
    assert "its models" in good and "its models" not in found  # one fault, one line


def test_hanging_server_is_found_with_its_fix(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    pid = locate(ProjectPaths(server.project)).process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        found = lines(server)["server"]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert found["status"] == "fail" and "does not answer" in found["said"]
    assert f"kill -9 {pid}, then labwright up -d" in found["fix"]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")
def test_machine_that_forbids_namespaces_is_found(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server()
    bare_path(tmp_path / "bin", bwrap="echo bwrap: No permissions to create new namespace >&2; exit 1")
    hidden = 'mount --bind "$0" "$(command -v bwrap)" && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", hidden, str(tmp_path / "bin" / "bwrap"), *LABWRIGHT, "doctor", "--json"]
    told = subprocess.run(
        command, cwd=server.project, env=server.environment, stdout=subprocess.PIPE, timeout=60, check=False
    )
    found = {check["name"]: check for check in json.loads(told.stdout)["checks"]}["sandbox"]
    assert found["status"] == "warn" and "No permissions" in found["said"]
    assert "Allow user namespaces" in found["fix"] and "Install" not in found["fix"]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")
def test_full_or_read_only_disk_is_found(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(server.project)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        server.state.mkdir(mode=0o700)
        assert lines(server)["disk"]["status"] == "fail"
        subprocess.run(["mount", "-o", "remount,ro", str(server.project)], check=True)
        found = lines(server)["state folder"]
        assert found["status"] == "fail" and "read-only" in found["said"] and "chmod" not in found["fix"]
        subprocess.run(["mount", "-o", "remount,rw", str(server.project)], check=True)
        server.state.rmdir()
        subprocess.run(["mount", "-o", "remount,ro", str(server.project)], check=True)
        found = lines(server)["state folder"]
        assert found["status"] == "fail" and "cannot be created: the disk is read-only" in found["said"]
    finally:
        subprocess.run(["umount", "-l", str(server.project)], check=True)
