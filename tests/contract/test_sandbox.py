"""What sandboxed code cannot do, tested by code that tries. It runs as the current user and as another user."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from labwright.processes import all_pids
from labwright.sandbox import SCRATCH, Fence, SandboxLimits, SandboxResult, containment, run_contained
from labwright.sandbox.child import fault_of
from labwright.sandbox.fences import NO_SANDBOX, limits_command, only_where_it_works
from tests.support.other_user import TestUser

PYTHON_FOLDERS = {folder: folder for folder in {sys.prefix, sys.base_prefix}}


def run(code: str, **limits: Any) -> SandboxResult:
    fence = Fence(read_only=PYTHON_FOLDERS, environment={"PATH": "/usr/bin"})
    command = [sys.executable, "-I", "-c", textwrap.dedent(code)]
    return run_contained(command, fence, SandboxLimits(**{"wall_seconds": 30.0, **limits}))


def test_this_machine_can_sandbox() -> None:
    assert containment().kind == "bubblewrap", containment().reason


def test_plain_code_runs_and_returns_output_and_exit_code() -> None:
    found = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (found.exit_code, found.timed_out) == (3, False)
    assert set(found.output.split()) == {b"out", b"err"}


def test_only_scratch_and_tmp_are_writable() -> None:
    found = run(
        f"""
        import pathlib
        for place in ("{SCRATCH}/a", "/tmp/b"):
            pathlib.Path(place).write_text("x")
        for place in ("/x", "/usr/x", "/etc/x", "/dev/x", "{sys.prefix}/x", "/proc/sys/kernel/hostname"):
            try:
                pathlib.Path(place).write_text("x")
                print("WROTE", place)
            except OSError:
                pass
        """
    )
    assert (found.exit_code, found.output) == (0, b"")


def test_homes_keys_and_users_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = run(
        f"""
        import os, pathlib
        print(sorted(os.environ))
        for place in ("{secret}", "/etc/passwd", "/etc/shadow", "{Path.home()}/.ssh", "/proc/1/environ"):
            try:
                print(place, pathlib.Path(place).read_bytes())
            except OSError as error:
                pass
        """
    )
    assert b"sk-secret" not in found.output and b"PRIVATE" not in found.output and b"root:" not in found.output
    assert found.output.count(b"\n") <= 2  # its own first process may be readable, and contains no secrets


def test_network_and_localhost_are_not_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert (found.exit_code == 1 and b"OSError" in found.output) or b"Error" in found.output


def test_fork_bomb_stops_at_its_limit_and_leaves_nothing() -> None:
    found = run(
        """
        import os, time
        made = 0
        try:
            while True:
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(600)
                made += 1
        except OSError:
            print("made", made)
        """,
        processes=20,
    )
    assert 0 < int(found.output.split()[1]) <= 20
    assert not [pid for pid in all_pids() if b"os.setsid()" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("place", [SCRATCH, "/dev/shm", "/tmp"])
def test_code_cannot_fill_the_disk(place: str) -> None:
    found = run(
        f"""
        for number in range(40):
            open(f"{place}/{{number}}", "wb").write(b"x" * (10 << 20))
        """,
        scratch_mb=30,
    )
    assert found.exit_code == 1 and b"No space left" in found.output


def test_memory_and_cpu_time_are_limited() -> None:
    assert b"MemoryError" in run("x = bytearray(2 << 30)", memory_mb=512).output
    found = run("while True: pass", cpu_seconds=1)
    assert found.exit_code != 0 and not found.timed_out


MEMORY_BY_OTHER_WAYS = {
    "in many processes": """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                kept = bytearray(b"x") * (200 << 20)
                time.sleep(600)
        time.sleep(600)
        """,
    "shared": """
        import mmap, time
        kept = mmap.mmap(-1, 1200 << 20)
        for _ in range(1200):
            kept.write(b"x" * (1 << 20))
        time.sleep(600)
        """,
}


@pytest.mark.parametrize("way", MEMORY_BY_OTHER_WAYS)
def test_memory_limit_counts_all_processes_and_shared_memory(way: str) -> None:
    found = run(MEMORY_BY_OTHER_WAYS[way], memory_mb=512, wall_seconds=120.0)
    assert (found.exit_code, found.timed_out) == (137, False)


def test_shared_memory_counts_once() -> None:
    found = run(
        """
        import mmap, os, time
        kept = mmap.mmap(-1, 100 << 20)
        children = []
        for _ in range(8):
            if (pid := os.fork()) == 0:
                for _ in range(100):
                    kept.write(b"x" * (1 << 20))
                time.sleep(1)  # several looks of whoever counts
                os._exit(0)
            children.append(pid)
        print([os.waitpid(pid, 0)[1] for pid in children])
        """,
        memory_mb=512,
    )
    assert (found.exit_code, found.output) == (0, b"[0, 0, 0, 0, 0, 0, 0, 0]\n"), found


def test_time_limit_ends_code_that_closes_output_and_blocks_signals() -> None:
    found = run(
        """
        import os, signal, time
        for number in range(1, 32):
            try:
                signal.signal(number, signal.SIG_IGN)
            except OSError:
                pass
        os.close(1), os.close(2)
        time.sleep(600)
        """,
        wall_seconds=2.0,
    )
    assert found.timed_out and found.wall_seconds < 20


def test_kill_from_inside_harms_no_outside_process() -> None:
    with subprocess.Popen(["sleep", "600"]) as bystander:
        found = run("import os; os.kill(-1, 9)")
        assert bystander.poll() is None
        bystander.kill()
    assert found.exit_code in (0, 1, 137)


def test_endless_output_is_cut_and_counted() -> None:
    found = run("while True: print('x' * 10_000)", wall_seconds=2.0, output_bytes=100_000)
    assert len(found.output) == 100_000 < found.output_bytes


def test_abrupt_exits_and_signals_give_an_exit_code() -> None:
    assert run("import os; os._exit(7)").exit_code == 7
    assert run("import os; os.kill(os.getpid(), 11)").exit_code == 128 + 11


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_unprivileged_user_is_sandboxed_too(stage: Path) -> None:
    code = (
        "import json; from labwright.sandbox import *;"
        "found = run_contained(['/usr/bin/python3', '-I', '-c', 'open(\"/etc/passwd\")'], Fence(), SandboxLimits());"
        "print(json.dumps([containment().kind, found.exit_code, found.output.decode()]))"
    )
    somebody = TestUser(f"lw-box-{os.getpid() % 100000}", stage)
    command = somebody.command(somebody.python, "-c", code)
    try:
        told = subprocess.run(command, env=somebody.environment(stage), capture_output=True, text=True, check=True)
    finally:
        somebody.remove()
    kind, exit_code, output = json.loads(told.stdout)
    assert (kind, exit_code) == ("bubblewrap", 1)
    assert "FileNotFoundError" in output


def test_forbidden_bubblewrap_is_reported_as_forbidden(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.touch(0o644)
    assert fault_of([str(program), "true"]) == f"{program} may not be used here"


def test_without_bubblewrap_the_limits_still_apply() -> None:
    command = limits_command([sys.executable, "-c", "x = bytearray(2 << 30)"], Fence(), SandboxLimits(memory_mb=512))
    if os.geteuid() == 0:
        command = command[command.index("--") + 1 :]  # this interpreter may be in a place that only root can read
    assert b"MemoryError" in subprocess.run(command, capture_output=True, check=False).stderr


@pytest.mark.parametrize(("answer", "said"), [(0, "ran\n"), (1, f"{NO_SANDBOX} {os.uname().nodename}\n")])
def test_remote_command_runs_only_if_bubblewrap_works(tmp_path: Path, answer: int, said: str) -> None:
    """A fake bubblewrap simulates the other machine: one that works, and one that is forbidden."""
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\nexit {answer}\n")
    (tmp_path / "bwrap").chmod(0o755)
    line = only_where_it_works("echo ran")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (answer, said)
