"""Training cannot work in an agent's shell, whatever is typed. Tested with real processes and a real server."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labwright.agent.shell import ShellResult, execute, why_not
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, Forbidden
from labwright.gpu.probe import find_pynvml_dir
from labwright.processes import all_pids
from labwright.sandbox.fences import SandboxLimits
from labwright.sandbox.machine import MachineView, machine_command
from labwright.sim.gpus import SimulatedGpus
from tests.support.lab import lab_in
from tests.support.live_server import LiveServer
from tests.support.other_user import TestUser
from tests.support.waiting import wait_until

AGENT = Actor(Scope.AGENT, "session-of-the-test")
CURL = 'curl -sS -o /dev/stdout -w " %{http_code}" -H @"$LABWRIGHT_HEADER" -H "Content-Type: application/json"'
_keys = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("server") / "project"
    project.mkdir()
    started = LiveServer(project).start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def lab(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A project whose agents know that server and get its tokens."""
    with lab_in(tmp_path_factory.mktemp("shell") / "project") as opened:
        opened.url, opened.token = server.url, server.token
        (opened.paths.project / "notes.txt").write_text("before\n")
        yield opened


def run(lab: Lab, command: str, *, writes: bool = True, **more: Any) -> ShellResult:
    return execute(lab, AGENT, command, writes=writes, key=f"call {next(_keys)}", **more)


def limited(lab: Lab, **settings: Any) -> Lab:
    return replace(lab, settings=replace(lab.settings, **settings))


def test_this_machine_can_run_a_shell() -> None:
    assert why_not() == ""


# What the shell can do


def test_shell_reads_and_writes_the_project_and_returns_the_exit_code(lab: Lab) -> None:
    told = run(lab, "cat notes.txt; echo after > new.txt; mkdir -p a/b; echo wrong >&2; exit 3")
    assert (told.exit_code, told.output) == (3, "before\nwrong\n")
    made = lab.paths.project / "new.txt"
    assert made.read_text() == "after\n" and made.stat().st_uid == os.geteuid()


def test_shell_lists_all_processes_but_cannot_harm_them(lab: Lab) -> None:
    with subprocess.Popen(["sleep", "612.5"]) as bystander:
        told = run(lab, f"ps ax | grep -c '[s]leep 612.5'; kill -9 {bystander.pid}; cat /proc/{bystander.pid}/environ")
        assert bystander.poll() is None
        bystander.kill()
    assert told.output.startswith("1\n") and "Permission denied" in told.output


def test_ps_works_whatever_its_own_pid(lab: Lab) -> None:
    """procps looks itself up by a pid that does not exist outside; repeat it to be sure."""
    told = run(lab, "for _ in {1..40}; do ps -p 1 -o pid= || exit; done; ps -p 4194304; echo $?")
    assert told.output.split() == ["1"] * 40 + ["PID", "TTY", "TIME", "CMD", "1"]


def test_shell_calls_the_server_with_the_header_file(lab: Lab) -> None:
    told = run(lab, f"{CURL} $LABWRIGHT_URL/whoami")
    assert '"scope":"agent"' in told.output and AGENT.name in told.output and told.output.endswith(" 200")
    made = run(lab, CURL + """ "$LABWRIGHT_URL/runs" -d '{"command": "true", "name": "by-curl"}'""")
    assert made.output.endswith(" 201") and f"agent:{AGENT.name}" in made.output


def test_requests_reserved_for_people_are_refused(lab: Lab) -> None:
    for method, path in (("DELETE", "/runs/x"), ("POST", "/cluster"), ("GET", "/sessions"), ("GET", "/approvals")):
        assert run(lab, f"{CURL} -X {method} $LABWRIGHT_URL{path}").output.endswith(" 403"), path


# What the shell cannot do


def test_nothing_outside_the_project_can_be_written(lab: Lab) -> None:
    home = Path.home()
    places = f"/x /usr/x /etc/x /dev/x /dev/shm/../x {home}/x {lab.paths.project.parent}/x {lab.paths.state}/x"
    told = run(lab, f"for place in {places}; do touch $place 2>/dev/null && echo WROTE $place; done; touch /tmp/mine")
    assert "WROTE" not in told.output.replace(f"WROTE {lab.paths.project.parent}/x\n", "")  # its own empty folder
    assert not (lab.paths.project.parent / "x").exists() and not Path("/tmp/mine").exists()


def test_only_harmless_devices_are_visible(lab: Lab) -> None:
    told = run(lab, "ls /dev; echo [$CUDA_VISIBLE_DEVICES] $NVIDIA_VISIBLE_DEVICES")
    *devices, variables = told.output.splitlines()
    harmless = "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero console"
    assert set(devices) <= set(harmless.split()) and variables == "[] void"


def test_gpu_driver_is_not_reachable(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = SimulatedGpus.create(tmp_path / "gpus", 2)
    environment = gpus.environment(os.environ)
    count = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())"
    shutil.copy(Path(find_pynvml_dir()) / "pynvml.py", lab.paths.project)
    code = f"import sys; sys.path.insert(0, {str(lab.paths.project)!r}); {count}"
    seen = subprocess.run(["/usr/bin/python3", "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert seen.stdout == "2\n"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    told = run(lab, f'/usr/bin/python3 -c "{code}"; nvidia-smi')
    assert "NVMLError" in told.output and "\n2\n" not in told.output
    assert told.exit_code in (126, 127)


@pytest.mark.skipif(not shutil.which("sbatch") or not shutil.which("munge"), reason="needs Slurm's commands")
def test_slurm_and_munge_are_not_reachable(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(lab.paths.project / "slurm.conf"))
    (lab.paths.project / "slurm.conf").write_text("ClusterName=test\n")
    told = run(lab, "sbatch --wrap true; munge -n; ls /run /etc/munge /etc/slurm; cat slurm.conf; echo $SLURM_CONF")
    assert told.output.count("no scheduler in this shell") == 2
    assert "munge.key" not in told.output and "ClusterName" not in told.output and "socket" not in told.output


def test_no_socket_file_can_be_connected_to(lab: Lab) -> None:
    """tmux, Docker, munge and others listen on socket files. A read-only mount alone would allow connecting."""
    door = lab.paths.project / "door.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
        listening.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('{door}')"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert "refused" in run(lab, f'/usr/bin/python3 -c "{code}"').output
    door.unlink()


@pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")
def test_tmux_cannot_be_used_to_start_processes(lab: Lab, tmp_path: Path) -> None:
    place = tmp_path / "tmux.sock"
    subprocess.run(["tmux", "-S", str(place), "new-session", "-d", "sleep 600"], check=True)
    try:
        told = run(lab, f"tmux -S {place} new-window 'touch {tmp_path}/started'; tmux ls")
        assert told.exit_code == 1 and not (tmp_path / "started").exists()
    finally:
        subprocess.run(["tmux", "-S", str(place), "kill-server"], check=True)


def test_state_and_tokens_are_hidden(lab: Lab, server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-a-person")
    (lab.paths.project / ".env").write_text("KEY=sk-secret-of-a-person\n")
    looked = run(
        lab,
        f"ls -A .labwright; cat .labwright/token {server.state}/token .env; env;"
        " cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a SECRET; cat /etc/shadow",
    )
    assert "sk-secret" not in looked.output and server.token not in looked.output and "root:" not in looked.output
    assert looked.output.startswith("headers\n")


def test_channel_address_is_not_in_the_environment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CHANNEL", "https://hooks.example.org/T0/B1/who-has-this-may-post")
    monkeypatch.setattr(lab, "private_variables", frozenset({"TEAM_CHANNEL"}))
    told = run(lab, "env")
    assert "PATH=" in told.output and "who-has-this" not in told.output


def test_other_project_of_the_user_is_hidden_while_its_server_runs(lab: Lab, server: LiveServer) -> None:
    """The other project is inside this one, so that only its own mask hides it."""
    outer = replace(lab, paths=type(lab.paths)(server.project.parent))
    outer.paths.state.mkdir(exist_ok=True)
    told = run(outer, "ls -A project project/.labwright; cat project/.labwright/token")
    assert "No such file" in told.output and server.token not in told.output


def test_token_is_not_in_processes_environment_or_output(lab: Lab) -> None:
    told = run(
        lab, 'cat "$LABWRIGHT_HEADER"; stat -c %a "$LABWRIGHT_HEADER"; tr "\\0" "\\n" < /proc/self/environ; ps axww'
    )
    kept = next(lab.paths.headers.glob("shell-*.header")).read_text().split()[-1]
    assert kept.startswith("lwa.") and kept not in told.output
    assert "X-Auth-Token: [the agent's token]" in told.output and "600" in told.output


def test_settings_cannot_be_created_or_changed(lab: Lab) -> None:
    config = lab.paths.config
    told = run(lab, f"echo 'host = \"0.0.0.0\"' > {config.name}")
    assert not config.exists() and "only a person" in told.note
    config.write_text("port = 1\n")
    assert run(lab, f"echo x >> {config.name}; rm -f {config.name}").exit_code != 0
    assert config.read_text() == "port = 1\n"
    config.unlink()


def test_folder_or_link_cannot_replace_the_settings_file(lab: Lab) -> None:
    config, others = lab.paths.config, lab.paths.project / "others.toml"
    for made in (f"mkdir {config.name}", f"ln -s later.toml {config.name}", f"ln -s train.py {config.name}"):
        assert "only a person" in run(lab, made).note
        assert not os.path.lexists(config)
    others.write_text("port = 1\n")
    config.symlink_to(others.name)
    assert "only a person" in run(lab, f"echo 'port = 2' > mine.toml; ln -sf mine.toml {config.name}").note
    assert run(lab, f"rm -f {config.name}").note == ""
    assert config.read_text() == "port = 1\n"
    config.unlink()


# Limits


def test_cpu_time_limit_counts_all_processes_together(lab: Lab) -> None:
    short = limited(lab, shell_cpu_seconds=1)
    alone = run(short, "while :; do :; done")
    assert "processor time" in alone.ended_by and alone.seconds < 10
    together = run(short, "for i in 1 2 3; do (for ((n=0; n<10**8; n++)); do :; done) & done; wait")
    assert "more than 1 s of processor time" in together.ended_by and together.seconds < 10


def test_time_limit_ends_all_started_processes(lab: Lab) -> None:
    told = run(lab, "setsid nohup sleep 613.5 & disown; sleep 613.5", seconds=1)
    assert "longer than 1 s" in told.ended_by and told.seconds < 5
    wait_until(lambda: not sleeping("613.5"), "all of it to be gone")


def test_background_processes_end_with_the_command(lab: Lab) -> None:
    assert run(lab, "nohup setsid sleep 614.5 >/dev/null 2>&1 & echo $?").output == "0\n"
    wait_until(lambda: not sleeping("614.5"), "all of it to be gone")


def sleeping(seconds: str) -> list[int]:
    def command_of(pid: int) -> bytes:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""

    return [pid for pid in all_pids() if command_of(pid) == f"sleep\0{seconds}\0".encode()]


def test_memory_and_process_limits_apply_to_the_total(lab: Lab) -> None:
    small = limited(lab, shell_memory_mb=300)
    eater = "x = bytearray(200 << 20); import time; time.sleep(20)"
    assert "memory" in run(small, f"for i in 1 2 3; do python3 -c '{eater}' & done; wait").ended_by
    told = run(lab, "for ((i=0; i<700; i++)); do sleep 60 & done; wait", seconds=20)
    assert "processes" in told.ended_by or "fork" in told.output


def test_long_output_keeps_head_and_tail_and_says_how_much_is_missing(lab: Lab) -> None:
    told = run(lab, "seq 100000")
    assert told.output.startswith("1\n2\n") and told.output.endswith("99999\n100000\n")
    assert len(told.output) < 4000 and "of 588895 bytes" in told.cut


def test_stopping_the_turn_ends_the_command_at_once(lab: Lab) -> None:
    over = threading.Event()
    threading.Timer(0.3, over.set).start()
    began = time.monotonic()
    told = run(lab, "sleep 615.5", over=over)
    assert "stopped" in told.ended_by and time.monotonic() - began < 60
    assert not sleeping("615.5")


def test_killed_server_leaves_no_command_behind(lab: Lab) -> None:
    command = machine_command(["sleep", "616.5"], MachineView(), SandboxLimits())
    owner = subprocess.Popen([sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"])
    wait_until(lambda: sleeping("616.5"), "the command to run")
    owner.kill()
    owner.wait()
    wait_until(lambda: not sleeping("616.5"), "it to end")


def test_command_does_not_start_again_after_a_kill(lab: Lab) -> None:
    execute(lab, AGENT, "echo once >> count.txt", writes=True, key="the same call")
    with pytest.raises(Conflict, match="not started again"):
        execute(lab, AGENT, "echo once >> count.txt", writes=True, key="the same call")
    assert (lab.paths.project / "count.txt").read_text() == "once\n"


# Plan mode


def test_plan_mode_shell_reads_detects_and_saves_plans(lab: Lab, server: LiveServer) -> None:
    assert run(lab, "cat notes.txt; git --version; ls", writes=False).output.startswith("before\n")
    detected = run(lab, f"{CURL} -X POST $LABWRIGHT_URL/cluster/detect", writes=False)
    assert detected.output.endswith(" 200")
    body = """{"title": "t", "goal": "g", "raw_markdown": "## 📋 Plan: t"}"""
    saved = run(lab, f"{CURL} -X POST $LABWRIGHT_URL/plans -d @- <<'END'\n{body}\nEND", writes=False)
    assert saved.output.endswith(" 201")
    assert server.get("/plans")[0]["title"] == "t"


def test_plan_mode_shell_changes_and_starts_nothing(lab: Lab) -> None:
    told = run(lab, "echo x > notes.txt; rm notes.txt; touch new; mkdir new", writes=False)
    assert told.output.count("Read-only file system") == 4
    assert (lab.paths.project / "notes.txt").read_text() == "before\n"
    for path in ("/runs", "/sweeps/wild", "/plans/x/execute", "/prompt-skills/agent-mode/render"):
        refused = run(lab, f"{CURL} $LABWRIGHT_URL{path} -d '{{}}'", writes=False)
        assert refused.output.endswith(" 403"), path


# Other machines


def test_without_bubblewrap_there_is_no_shell_and_a_hint_to_install_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert why_not.__wrapped__() == "bwrap is not installed"
    monkeypatch.setattr("labwright.agent.shell.command.why_not", lambda: "bwrap is not installed")
    with pytest.raises(Forbidden, match="bwrap is not installed") as refused:
        run(lab, "true")
    assert "apt install bubblewrap" in refused.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_unprivileged_user_gets_the_same_view(stage: Path) -> None:
    somebody = TestUser(f"lw-view-{os.getpid() % 100000}", stage)
    project = somebody.make_folder(stage / "project")
    script = f"echo made > {project}/file; cat /proc/{os.getpid()}/environ; touch /tmp/x /etc/x; ls /dev; id -u"
    command = machine_command(["bash", "-c", script], MachineView(writable=(str(project),)), SandboxLimits())
    try:
        done = subprocess.run(somebody.command(*command), capture_output=True, text=True, check=False)
    finally:
        somebody.remove()
    assert done.stdout.endswith(f"{somebody.uid}\n"), done.stderr
    assert (project / "file").stat().st_uid == somebody.uid
    assert "Permission denied" in done.stderr and "/etc/x" in done.stderr
