"""A job's environment, output and terminal, and how its whole process tree ends."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.processes import children_of, end_tree, parents_first, processes_of_run, start_time
from tests.support.children import end_with_test
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

TREE = """
setsid sh -c 'echo $$ > daemon.pid; sleep 1000' &
(sh -c 'sleep 1000 & echo $! > orphan.pid' &)
env -i sh -c 'echo $$ > bare.pid; sleep 1000' &
trap '' TERM
echo $$ > stubborn.pid
while :; do sleep 0.1; done
"""


def pids_in(project: Path, *names: str) -> list[int]:
    files = [project / f"{name}.pid" for name in names]
    wait_until(lambda: all(file.exists() and file.read_text().strip() for file in files), "the tree to stand")
    return [int(file.read_text()) for file in files]


def test_stop_ends_the_whole_tree_with_daemons(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_GRACE_SECONDS="0.5").start()
    run = server.submit(TREE)
    pids = pids_in(server.project, "daemon", "orphan", "bare", "stubborn")
    server.post(f"/runs/{run['id']}/stop")
    stopped = server.wait_for_status(run["id"], "stopped")
    assert stopped["status_reason"] == "stopped on request"
    assert [pid for pid in pids if start_time(pid) is not None] == []


def test_shell_ends_before_its_command_so_that_it_runs_nothing_more(tmp_path: Path) -> None:
    """For example `train; echo > done` of a stopped run."""
    script = "bash -c 'bash -c \"sleep 1000; echo > done\"; echo > done'; echo > done"
    shell = end_with_test(subprocess.Popen(["bash", "-c", script], cwd=tmp_path))
    tree = [shell.pid, *wait_until(lambda: len(below := chain_below(shell.pid)) == 3 and below, "the tree to stand")]
    assert parents_first(tree[::-1]) == parents_first(set(tree)) == tree
    end_tree(lambda: filter(start_time, tree), 60, reap=shell.poll)
    assert not (tmp_path / "done").exists()


def chain_below(pid: int) -> list[int]:
    children = children_of(pid)
    return [*children, *chain_below(children[0])] if children else []


def test_processes_left_by_a_command_end_with_it(server: LiveServer) -> None:
    run = server.submit("setsid sh -c 'echo $$ > daemon.pid; sleep 1000' & sleep 0.2; exit 5")
    (daemon,) = pids_in(server.project, "daemon")
    ended = server.wait_for_end(run["id"])
    assert ended["exit_code"] == 5
    assert any("outlived" in warning for warning in ended["warnings"])
    assert start_time(daemon) is None


def test_processes_that_end_just_after_the_command_are_not_reported(lab: LiveServer) -> None:
    """The last process of a sandbox does this."""
    ended = lab.wait_for_end(lab.submit("(sleep 0.05; echo left) & exit 0")["id"])
    assert (ended["status"], ended["warnings"]) == ("finished", [])
    assert lab.output(ended["id"]) == "left\n"


def test_suspended_process_is_woken_to_be_ended(server: LiveServer) -> None:
    run = server.submit("echo $$ > held.pid; kill -STOP $$; sleep 1000")
    pids_in(server.project, "held")
    server.post(f"/runs/{run['id']}/stop")
    server.wait_for_status(run["id"], "stopped")


def test_queued_and_ready_runs_can_be_stopped(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    blocker = server.submit("sleep 1000")
    queued = server.submit("touch must-not-exist")
    ready = server.post("/runs", {"command": "touch must-not-exist"})
    for run in (queued, ready):
        assert server.post(f"/runs/{run['id']}/stop")["status"] == "stopped"
    server.post(f"/runs/{blocker['id']}/stop")
    server.wait_for_status(blocker["id"], "stopped")
    assert not (server.project / "must-not-exist").exists()


def test_time_limit_ends_a_run(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_GRACE_SECONDS="0.3").start()
    run = server.wait_for_end(
        server.submit("trap '' TERM; sleep 1000 & wait; sleep 1000", time_limit_seconds=0.5)["id"]
    )
    assert (run["status"], run["status_reason"]) == ("failed", "time_limit")
    assert "Time limit of 0.5 s" in run["error"]
    assert not processes_of_run(run["id"])


def test_signal_is_reported_as_a_signal_and_never_as_finished(server: LiveServer) -> None:
    direct = server.wait_for_end(server.submit("exec sh -c 'kill -TERM $$'")["id"])
    assert (direct["status"], direct["exit_code"], direct["signal"]) == ("failed", 143, 15)
    through_shell = server.wait_for_end(server.submit("sh -c 'kill -KILL $$'; exit $?")["id"])
    assert (through_shell["exit_code"], through_shell["signal"]) == (137, 9)
    assert "as the shell reports it" in through_shell["error"]


def test_job_has_its_documented_environment(make_server: Callable[..., LiveServer], tmp_path: Path) -> None:
    server = make_server(
        OPENAI_API_KEY="sk-model", LABWRIGHT_MODEL="openai:x", PROJECT_VARIABLE="kept", HF_TOKEN="by-inheritance"
    ).start()
    run = server.wait_for_end(
        server.submit("env -0 > env.bin", env={"MINE": "a b\nc", "WANDB_API_KEY": "s3cret"})["id"]
    )
    got = dict(item.split("=", 1) for item in (server.project / "env.bin").read_text().split("\0") if item)
    assert got["LABWRIGHT_RUN_ID"] == run["id"]
    assert got["LABWRIGHT_RUN_DIR"] == run["run_dir"]
    assert got["LABWRIGHT_SERVER_URL"] == server.url
    assert got["PYTHONUNBUFFERED"] == "1"
    assert got["MINE"] == "a b\nc"
    assert (got["PROJECT_VARIABLE"], got["HF_TOKEN"], got["WANDB_API_KEY"]) == ("kept", "by-inheritance", "s3cret")
    assert "OPENAI_API_KEY" not in got and "LABWRIGHT_MODEL" not in got and "CUDA_VISIBLE_DEVICES" not in got
    assert server.call("GET", f"/runs/{run['id']}", token=got["LABWRIGHT_RUN_TOKEN"]).status == 200


def test_job_creates_files_with_the_umask_of_its_user(make_server: Callable[..., LiveServer]) -> None:
    before = os.umask(0o002)
    try:
        server = make_server().start(cold=True)  # a fork would have its parent's umask
    finally:
        os.umask(before)
    plain, on_terminal = (server.submit("umask", tty=tty) for tty in (False, True))
    for run in (plain, on_terminal):
        server.wait_for_end(run["id"])
        assert server.output(run["id"]).strip() == "0002"
        assert (server.state / "runs" / run["id"] / "output.log").stat().st_mode & 0o777 == 0o600


def test_unread_keys_do_not_delay_the_time_limit(server: LiveServer) -> None:
    run = server.submit("stty raw -echo; echo ready; sleep 1000", tty=True, time_limit_seconds=2)
    stdin = server.state / "runs" / run["id"] / "stdin"
    wait_until(stdin.exists, "a way to type")
    with open(os.open(stdin, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0) as keys:
        wait_until(lambda: not keys.write(b"a" * 4096), "more keys than there is room for")
    assert server.wait_for_end(run["id"])["status_reason"] == "time_limit"


def test_secrets_are_written_nowhere(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(HF_TOKEN="hunter2-inherited").start()
    caller = {"PATH": os.environ["PATH"], "AWS_SECRET_ACCESS_KEY": "hunter2-caller", "PLAIN": "shown"}
    run = server.submit(
        "printenv AWS_SECRET_ACCESS_KEY; sleep 0.1", caller_env=caller, env={"API_TOKEN": "hunter2-env"}
    )
    server.wait_for_end(run["id"])
    assert server.output(run["id"]) == "hunter2-caller\n"
    (server.state / "runs" / run["id"] / "output.log").unlink()
    found = subprocess.run(["grep", "-rl", "hunter2", str(server.state)], capture_output=True, text=True).stdout
    assert found == ""
    recorded = json.loads((server.state / "runs" / run["id"] / "env.json").read_text())
    assert recorded["variables"]["PLAIN"] == "shown"
    assert server.run(run["id"])["secret_env"] == ["API_TOKEN", "AWS_SECRET_ACCESS_KEY"]


def test_workdir_can_have_spaces(server: LiveServer) -> None:
    folder = server.project / "a folder; rm -rf $HOME"
    folder.mkdir()
    run = server.wait_for_end(server.submit("pwd", workdir=str(folder))["id"])
    assert server.output(run["id"]).strip() == str(folder)


def test_command_can_activate_a_venv(server: LiveServer) -> None:
    activate = server.project / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text("export FROM_VENV=yes\n")
    run = server.wait_for_end(server.submit('source .venv/bin/activate && echo "$FROM_VENV"')["id"])
    assert server.output(run["id"]) == "yes\n"


def test_runaway_log_keeps_its_head_and_tail(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_LOG_CAP_MB="1").start()
    run = server.submit(
        "echo first; for i in $(seq 60); do head -c 200000 /dev/zero | tr '\\0' y; sleep 0.02; done; echo last"
    )
    server.wait_for_end(run["id"])
    log = server.state / "runs" / run["id"] / "output.log"
    assert log.stat().st_size > 11_000_000
    assert log.stat().st_blocks * 512 <= 2 << 20
    shown = server.get(f"/runs/{run['id']}/logs?offset=0&limit=1000000")["content"]
    assert shown.startswith("first") and "left out here" in shown
    assert server.get(f"/runs/{run['id']}/logs")["content"].endswith("last\n")


def test_log_is_capped_even_if_the_job_is_silent_since(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_LOG_CAP_MB="1").start()
    flood = "sleep 0.5; head -c 30000000 /dev/zero | tr '\\0' y | fold -w 1000"
    run = server.submit(f"{flood}; until [ -e go ]; do sleep 0.05; done")["id"]
    log = server.state / "runs" / run / "output.log"
    wait_until(lambda: log.exists() and log.stat().st_size >= 30_000_000, "all of it")
    wait_until(lambda: log.stat().st_blocks * 512 <= 2 << 20, "most of it to be dropped")
    (server.project / "go").touch()
    server.wait_for_end(run)


def test_metrics_within_a_flood_survive_the_log_cap(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_LOG_CAP_MB="1").start()
    flood = "head -c 200000 /dev/zero | tr '\\0' y | fold -w 1000; echo"
    run = server.submit(f"sleep 0.5; for i in $(seq 150); do {flood}; echo '{{\"step\": '$i', \"loss\": 1}}'; done")
    ended = server.wait_for_end(run["id"])
    counts = {series["key"]: series["count"] for series in server.get(f"/runs/{run['id']}/metrics")["series"]}
    assert counts["loss"] == 150 and not ended["refused"], ended["refused"]
    log = server.state / "runs" / run["id"] / "output.log"
    assert log.stat().st_blocks * 512 <= 2 << 20


def test_snapshot_run_starts_in_its_workdir_even_without_code_there(server: LiveServer) -> None:
    (server.project / "results").mkdir()
    run = server.wait_for_end(server.submit("pwd", workdir="results", use_snapshot=True)["id"])
    assert run["status"] == "finished"
    assert server.output(run["id"]) == f"{run['run_dir']}/code/results\n"


def test_snapshot_outside_a_project_is_refused(server: LiveServer) -> None:
    refused = server.call("POST", "/runs", {"command": "true", "workdir": "/", "use_snapshot": True})
    assert refused.status == 422
    assert "cannot be snapshotted" in refused.json["error"]["message"]


def test_run_whose_workdir_disappeared_reports_it(server: LiveServer) -> None:
    folder = server.project / "soon gone"
    folder.mkdir()
    run = server.post("/runs", {"command": "true", "workdir": "soon gone"})["id"]
    folder.rmdir()
    server.post(f"/runs/{run}/start")
    ended = server.wait_for_end(run)
    assert (ended["status"], ended["status_reason"]) == ("failed", "could_not_start")
    assert ended["error"] == f"The command could not be started: {folder}: No such file or directory."


def test_snapshot_that_cannot_be_executed_is_refused_at_submit(server: LiveServer) -> None:
    folder = server.project / "with data"
    folder.mkdir()
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(21_000_000)
    wanted = {"command": "true", "workdir": "with data"}
    refused = server.call("POST", "/runs", {**wanted, "use_snapshot": True})
    assert (refused.status, "with data/weights.bin" in refused.json["error"]["message"]) == (409, True)
    assert server.post("/runs", wanted)["snapshot"]["skipped"] == ["with data/weights.bin"]
    (folder / "weights.bin").unlink()


def test_snapshot_run_executes_the_code_as_submitted(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="1").start()
    script = server.project / "code" / "train.sh"
    script.parent.mkdir()
    script.write_text("echo old\n")
    blocker = server.submit("while [ ! -e go ]; do sleep 0.05; done")
    frozen = server.submit("bash train.sh; pwd", workdir="code", use_snapshot=True)
    live = server.submit("bash train.sh", workdir="code")
    script.write_text("echo new\n")
    (server.project / "go").touch()
    for run in (blocker, frozen, live):
        assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(frozen["id"]).splitlines()[0] == "old"
    assert server.output(live["id"]) == "new\n"
    changed = server.get(f"/runs/{frozen['id']}/diff")
    assert changed["changed"] == ["code/train.sh"]
    assert "-echo old" in changed["text"] and "+echo new" in changed["text"]


@pytest.fixture
def tmux_server(make_server: Callable[..., LiveServer]) -> LiveServer:
    return make_server(LABWRIGHT_TMUX="1").start()


def tmux(session: str, *arguments: str) -> str:
    done = subprocess.run(["tmux", "-L", session, *arguments], capture_output=True, text=True, timeout=60)
    return done.stdout


def window_of(server: LiveServer, run_id: str) -> tuple[str, str]:
    target = wait_until(lambda: server.run(run_id)["tmux_target"], "the run's tmux window")
    return target.split(":")[0], target


def test_each_run_has_a_window_that_shows_output_and_passes_keys(tmux_server: LiveServer) -> None:
    server = tmux_server
    run = server.submit('echo "ready for you"; read answer; echo "got $answer"; sleep 0.5')
    session, target = window_of(server, run["id"])
    wait_until(lambda: "ready for you" in tmux(session, "capture-pane", "-p", "-t", target), "the output in tmux")
    tmux(session, "send-keys", "-t", target, "forty two", "Enter")
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert "got forty two" in server.output(run["id"])
    wait_until(lambda: run["id"] not in tmux(session, "list-windows", "-a", "-F", "#W"), "the window to close")


def test_keys_reach_the_job_after_ctrl_d(tmux_server: LiveServer) -> None:
    server = tmux_server
    run = server.submit('echo up; read first; echo "got $first"; read second; echo "got $second"')
    session, target = window_of(server, run["id"])
    wait_until(lambda: "up" in tmux(session, "capture-pane", "-p", "-t", target), "the output in tmux")
    tmux(session, "send-keys", "-t", target, "one", "Enter")
    wait_until(lambda: "got one" in server.output(run["id"]), "the first line")
    tmux(session, "send-keys", "-t", target, "C-d")
    tmux(session, "send-keys", "-t", target, "two", "Enter")
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert "got two" in server.output(run["id"])


def test_ctrl_c_in_the_window_interrupts_the_job(tmux_server: LiveServer) -> None:
    server = tmux_server
    run = server.submit("trap 'echo interrupted; exit 9' INT; echo up; while :; do sleep 0.1; done")
    session, target = window_of(server, run["id"])
    wait_until(lambda: "up" in tmux(session, "capture-pane", "-p", "-t", target), "the output in tmux")
    tmux(session, "send-keys", "-t", target, "C-c")
    assert server.wait_for_end(run["id"])["exit_code"] == 9
    assert "interrupted" in server.output(run["id"])


def test_killing_tmux_kills_no_job(tmux_server: LiveServer) -> None:
    server = tmux_server
    run = server.submit("while [ ! -e go ]; do sleep 0.05; done; echo survived")
    session, _ = window_of(server, run["id"])
    tmux(session, "kill-server")
    (server.project / "go").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert server.output(run["id"]) == "survived\n"


def test_tty_run_has_a_real_terminal(tmux_server: LiveServer) -> None:
    server = tmux_server
    script = "import sys; print(sys.stdin.isatty(), sys.stdout.isatty()); breakpoint(); print('after')"
    run = server.submit(f'python3 -c "{script}"', tty=True)
    session, target = window_of(server, run["id"])
    wait_until(lambda: "(Pdb)" in tmux(session, "capture-pane", "-p", "-t", target), "the debugger's prompt")
    tmux(session, "send-keys", "-t", target, "p 40 + 2", "Enter")
    wait_until(lambda: "\n42" in server.output(run["id"]).replace("\r", ""), "the debugger's answer")
    tmux(session, "send-keys", "-t", target, "c", "Enter")
    assert server.wait_for_end(run["id"])["status"] == "finished"
    assert "True True" in server.output(run["id"])
    assert "after" in server.output(run["id"])


def test_tty_run_that_is_silent_at_first_has_a_window(tmux_server: LiveServer) -> None:
    server = tmux_server
    run = server.submit(
        "until [ -e go ]; do sleep 0.02; done; echo at last; until [ -e end ]; do sleep 0.02; done", tty=True
    )
    session, target = window_of(server, run["id"])
    (server.project / "go").touch()
    wait_until(lambda: "at last" in tmux(session, "capture-pane", "-p", "-t", target), "the output in tmux")
    (server.project / "end").touch()
    assert server.wait_for_end(run["id"])["status"] == "finished"


def test_finished_run_appears_on_the_stream_at_once(server: LiveServer) -> None:
    """This measures no time (the benchmark does), only that nobody has to poll."""
    import http.client
    from urllib.parse import urlsplit

    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.request("GET", "/events/stream?types=run.status", headers={"X-Auth-Token": server.token})
    stream = connection.getresponse()
    run = server.submit("true")
    began = time.monotonic()
    seen = []
    while time.monotonic() - began < 60:
        line = stream.fp.readline().decode()
        if line.startswith("data:") and run["id"] in line:
            seen.append(json.loads(line[5:])["data"]["to"])
            if seen[-1] == "finished":
                break
    assert seen == ["launching", "running", "finished"]
    connection.close()
