"""The commands as people use them: real processes against a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import end_with_test
from tests.support.live_server import ENDED, LiveServer
from tests.support.waiting import wait_until
from tests.support.warm import can_be_warm, warm_command

LABWRIGHT = [sys.executable, "-c", "from labwright.cli.main import main; main()"]

LATIN = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}


def labwright(server: LiveServer, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Call the command in the project's folder, without a terminal."""
    options.setdefault("cwd", server.project)
    environment = {**server.environment, **options.pop("env", {})}
    lets_go = "up" in arguments  # the encoding of its streams, as pipes that close show it
    if options.keys() == {"cwd"} and can_be_warm(environment) and not lets_go:
        return warm_command(arguments, environment, options["cwd"], timeout=120)
    return subprocess.run(
        [*LABWRIGHT, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
        **options,
    )


def answer(server: LiveServer, *arguments: str, **options: Any) -> Any:
    """Return the command's --json output. The command must succeed."""
    called = labwright(server, *arguments, **options)
    assert called.returncode == 0, called.stderr
    return json.loads(called.stdout)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server shared by all tests of this file that leave it unchanged."""
    project = tmp_path_factory.mktemp("lab") / "a project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="8", LABWRIGHT_GRACE_SECONDS="1").start()
    yield server
    for run in server.all_runs():
        if run["status"] not in ENDED:
            server.call("POST", f"/runs/{run['id']}/stop")
    server.stop()


def begin(server: LiveServer, *arguments: str) -> subprocess.Popen[str]:
    return end_with_test(
        subprocess.Popen(
            [*LABWRIGHT, *arguments],
            cwd=server.project,
            env=server.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def running(server: LiveServer, name: str) -> dict[str, Any]:
    """Return the run with this name once it is running."""

    def found() -> dict[str, Any] | None:
        runs = [run for run in server.get("/runs") if run["name"] == name]
        return runs[0] if runs and runs[0]["status"] == "running" else None

    return wait_until(found, f"{name} to run")


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        (["echo", "a  b", "$HOME"], "a  b $HOME\n", 0),
        (["echo one; echo two; exit 3"], "one\ntwo\n", 3),
        (["kill -9 $$"], "", 137),
    ],
)
def test_run_with_wait_shows_the_output_and_exits_like_the_run(
    lab: LiveServer, command: list[str], output: str, code: int
) -> None:
    called = labwright(lab, "run", "--wait", "--", *command)
    assert (called.stdout, called.returncode) == (output, code)


def test_stopped_run_ends_its_waiter_with_130(lab: LiveServer) -> None:
    waiter = begin(lab, "run", "--wait", "--name", "to be stopped", "--", "sleep", "60")
    run = running(lab, "to be stopped")
    stopped = answer(lab, "stop", run["id"], "--json")
    assert stopped[0]["status"] == "stopped"
    waiter.communicate(timeout=60)
    assert waiter.returncode == 130


def test_ended_run_does_not_keep_others_from_being_stopped(lab: LiveServer) -> None:
    over = lab.wait_for_end(lab.submit("true")["id"])
    going = lab.wait_for_status(lab.submit("sleep 60")["id"], "running")
    called = labwright(lab, "stop", over["id"], going["id"])
    assert lab.run(going["id"])["status"] == "stopped"
    assert going["id"] in called.stdout and over["id"] not in called.stdout
    assert called.returncode == 1 and f"{over['id']} has already ended" in called.stderr


def test_terminal_without_utf_8_shows_what_it_can(lab: LiveServer) -> None:
    run = lab.wait_for_end(lab.submit("true", name="größe 模型")["id"])
    for shown in ("show", "ps"):
        called = labwright(lab, shown, *([run["id"]] if shown == "show" else ["--all"]), env=LATIN, encoding="latin-1")
        assert called.returncode == 0 and "größe ??" in called.stdout, called.stderr
    assert answer(lab, "show", run["id"], "--json", env=LATIN)["name"] == "größe 模型"


def test_output_that_cannot_be_written_is_a_one_line_error(lab: LiveServer) -> None:
    with open("/dev/full", "w") as full:
        called = subprocess.run(
            [*LABWRIGHT, "ps", "--all"],
            env=lab.environment,
            cwd=lab.project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (called.returncode, called.stderr) == (1, "error: Standard output: No space left on device.\n")


def test_ctrl_c_ends_the_wait_but_not_the_run(lab: LiveServer) -> None:
    waiter = begin(lab, "run", "--wait", "--name", "continues", "--", "sleep", "60")
    run = running(lab, "continues")
    waiter.send_signal(signal.SIGINT)
    _, said = waiter.communicate(timeout=60)
    assert waiter.returncode == 130
    assert f"labwright stop {run['id']}" in said
    assert lab.run(run["id"])["status"] == "running"
    labwright(lab, "stop", run["id"])


def test_wait_survives_a_restart_of_the_server(make_server: Any) -> None:
    server: LiveServer = make_server().start()
    waiter = begin(
        server, "run", "--wait", "--name", "long", "--", "echo a; while ! test -e go; do sleep 0.05; done; exit 5"
    )
    run = running(server, "long")
    wait_until(lambda: server.output(run["id"]), "its first output")
    server.restart()
    (server.project / "go").touch()
    output, said = waiter.communicate(timeout=40)
    assert (output, waiter.returncode) == ("a\n", 5), said


def test_run_has_the_callers_folder_and_environment(lab: LiveServer) -> None:
    folder = lab.project / "deep er"
    folder.mkdir()
    script = 'basename "$PWD"; echo "$MINE $GIVEN ${LABWRIGHT_LEASE_DIR-unset}"'
    called = labwright(lab, "run", "--wait", "--env", "GIVEN=2", "--", script, cwd=folder, env={"MINE": "1"})
    assert called.stdout == "deep er\n1 2 unset\n"


def test_run_has_the_exported_functions_of_the_callers_shell(lab: LiveServer) -> None:
    """For example `module`, where software is loaded that way."""
    exported = {"BASH_FUNC_module%%": '() {  echo "loads $2"\n}', "odd.name": "too"}
    called = labwright(lab, "run", "--wait", "--", "module load cuda; printenv odd.name", env=exported)
    assert called.stdout == "loads cuda\ntoo\n"


def test_options_reach_the_run(lab: LiveServer) -> None:
    sweep = answer(lab, "sweep", "new", "rates", "--goal", "Which is best?", "--json")
    first = answer(lab, "run", "--no-start", "--json", "--", "true")
    run = answer(
        lab, "run", "--no-start", "--json", "--sweep", "rates", "--after", first["id"], "--time-limit", "1h30m",
        "--tag", "t", "--param", "lr=0.1", "--param", "opt=adam", "--seed", "7", "--priority", "3", "--snapshot", "--",
        "true",
    )  # fmt: skip
    expected = {
        "status": "ready", "sweep_id": sweep["id"], "after": [first["id"]], "time_limit_seconds": 5400, "tags": ["t"],
        "params": {"lr": 0.1, "opt": "adam"}, "seed": 7, "priority": 3, "use_snapshot": True,
    }  # fmt: skip
    assert {name: run[name] for name in expected} == expected
    assert [found["progress"]["total"] for found in answer(lab, "sweeps", "--json")] == [1]
    assert [found["id"] for found in answer(lab, "ps", "--sweep", "rates", "--json")] == [run["id"]]
    answer(lab, "start", first["id"], "--json")
    answer(lab, "stop", run["id"], "--json")


def test_logs_show_all_a_part_or_new_output(lab: LiveServer) -> None:
    text = "for i in 1 2 3 4 5; do echo line $i; done; while ! test -e more; do sleep 0.05; done; echo line 6; exit 2"
    run = answer(lab, "run", "--json", "--", text)
    wait_until(lambda: "line 5" in labwright(lab, "logs", run["id"]).stdout, "the first lines")
    assert labwright(lab, "logs", run["id"], "--tail", "2").stdout == "line 4\nline 5\n"
    assert labwright(lab, "logs", run["id"], "--grep", "3").stdout == "line 3\n"
    follower = begin(lab, "logs", "-f", run["id"], "--tail", "1")
    assert follower.stdout is not None and follower.stdout.readline() == "line 5\n"
    (lab.project / "more").touch()
    output, said = follower.communicate(timeout=60)
    assert (output, follower.returncode) == ("line 6\n", 0)
    assert "failed, exit 2" in said
    digest = answer(lab, "logs", run["id"], "--digest", "--json")
    assert (digest["exit_code"], digest["last_lines"][-1]) == (2, "line 6")


def test_saved_output_is_identical_to_what_the_run_wrote(lab: LiveServer) -> None:
    written = bytes(range(256)) * 5000 + "é\n".encode() + b"\xff last\nline\xc3"
    (lab.project / "bytes").write_bytes(written)
    run = answer(lab, "run", "--wait", "--json", "--", "cat bytes")["id"]
    command = [*LABWRIGHT, "logs", run]
    read = partial(subprocess.run, capture_output=True, cwd=lab.project, env=lab.environment, timeout=60, check=True)
    assert read(command).stdout == written
    assert read([*command, "--follow"]).stdout == written
    assert read([*command, "--tail", "2"]).stdout == b"\xff last\nline\xc3"


def test_wait_returns_the_exit_code_of_the_first_failure(lab: LiveServer) -> None:
    good = answer(lab, "run", "--json", "--", "exit 0")["id"]
    bad = answer(lab, "run", "--json", "--", "sleep 0.3; exit 9")["id"]
    waited = labwright(lab, "wait", good, bad)
    assert waited.returncode == 9
    assert good in waited.stdout and "failed" in waited.stdout
    assert labwright(lab, "wait", good).returncode == 0


def test_wait_stops_at_its_timeout(lab: LiveServer) -> None:
    run = answer(lab, "run", "--json", "--", "sleep 60")["id"]
    assert labwright(lab, "wait", run, "--timeout", "0.3s").returncode == 124
    labwright(lab, "stop", run)


def test_rerun_is_a_new_run_with_the_same_command(lab: LiveServer) -> None:
    first = answer(lab, "run", "--wait", "--json", "--name", "again", "--", "echo once")
    rerun = labwright(lab, "rerun", first["id"], "--wait")
    assert (rerun.stdout, rerun.returncode) == ("once\n", 0)
    second = answer(lab, "show", "last", "--json")
    assert (second["parent_run_id"], second["name"]) == (first["id"], "again")


def test_rerun_gets_secrets_from_the_current_shell(lab: LiveServer) -> None:
    token = {"HF_TOKEN": "hf_first"}
    first = answer(lab, "run", "--wait", "--json", "--", "printenv", "HF_TOKEN", env=token)
    without = labwright(lab, "rerun", first["id"], "--json", "--wait")
    assert "this run starts without HF_TOKEN" in without.stderr
    second = json.loads(without.stdout)
    assert (second["exit_code"], second["missing_secrets"]) == (1, ["HF_TOKEN"])
    third = answer(lab, "rerun", second["id"], "--json", "--wait", env={"HF_TOKEN": "hf_third", "API_KEY": "x"})
    assert (third["secret_env"], third["missing_secrets"], third["warnings"]) == (["HF_TOKEN"], [], [])
    assert lab.output(third["id"]) == "hf_third\n"


def test_piped_input_is_reported_as_not_reaching_the_run(lab: LiveServer) -> None:
    piped = subprocess.run(
        [*LABWRIGHT, "run", "--wait", "--", "echo", "done"],
        env=lab.environment,
        cwd=lab.project,
        input="words\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert piped.stdout == "done\n"
    assert "piped input is not passed to the run" in piped.stderr


def test_archived_runs_leave_the_list_and_delete_asks_for_confirmation(lab: LiveServer) -> None:
    run = answer(lab, "run", "--wait", "--json", "--tag", "old", "--", "true")["id"]
    answer(lab, "archive", run, "--json")
    assert answer(lab, "ps", "--tag", "old", "--json") == []
    assert [found["id"] for found in answer(lab, "ps", "--tag", "old", "--all", "--json")] == [run]
    refused = labwright(lab, "delete", run)
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert labwright(lab, "delete", "--yes", run).returncode == 0
    assert labwright(lab, "show", run).returncode == 1


def test_piped_output_is_plain_and_complete(lab: LiveServer) -> None:
    name = "a name that is much longer than any terminal would be wide enough to show in one of its lines " * 2
    run = json.loads(labwright(lab, "run", "--wait", "--json", "--name", name.strip(), "--", "exit 4").stdout)["id"]
    shown = labwright(lab, "ps", env={"COLUMNS": "80", "FORCE_COLOR": "1"}).stdout
    line = next(line for line in shown.splitlines() if line.startswith(run))
    assert name.strip() in line and "failed" in line and "Exit code 4" in line
    assert "\x1b" not in shown


def test_errors_have_hints_and_exit_codes(lab: LiveServer, tmp_path: Path) -> None:
    unknown = labwright(lab, "show", "nope")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("error: There is no run nope.\nhint: ")
    as_object = labwright(lab, "stop", "nope", "--json")
    assert json.loads(as_object.stderr)["error"]["code"] == "not_found"
    assert labwright(lab, "run", "--time-limit", "soon", "--", "true").returncode == 1
    assert labwright(lab, "run").returncode == 2
    nobody = labwright(lab, "ps", cwd=tmp_path)
    assert nobody.returncode == 3
    assert "hint: Start it with: labwright up -d" in nobody.stderr


@pytest.mark.parametrize("words", [["ps"], ["run", "--project", "{project}", "--", "true"], ["restore", "file"]])
def test_deleted_working_folder_is_reported(lab: LiveServer, tmp_path: Path, words: list[str]) -> None:
    call = [word.format(project=lab.project) for word in words]
    called = subprocess.run(
        ["bash", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "bash", *LABWRIGHT, *call],
        cwd=tmp_path,
        env=lab.environment,
        capture_output=True,
        text=True,
    )
    assert called.returncode == 1
    assert called.stderr.startswith("error: The current folder was deleted.\nhint: "), called.stderr


def test_alerts_are_listed_and_answered(lab: LiveServer) -> None:
    run = answer(lab, "run", "--json", "--", "sleep 60")["id"]
    alert = lab.post(
        f"/runs/{run}/alerts", {"message": f"Loss is NaN.{' Really.' * 500} End.", "choices": ["ignore", "stop"]}
    )
    listed = labwright(lab, "alerts").stdout
    assert "Loss is NaN" in listed and len(listed) < 1000
    shown = labwright(lab, "alerts", "show", alert["id"][:-2]).stdout
    assert "Loss is NaN" in shown and "End." in shown and run in shown and "ignore, stop" in shown
    refused = labwright(lab, "alerts", "answer", alert["id"], "maybe")
    assert (refused.returncode, "ignore, stop" in refused.stderr) == (1, True)
    assert answer(lab, "alerts", "answer", alert["id"], "stop", "--json")["status"] == "resolved"
    assert labwright(lab, "wait", run).returncode == 130


def test_events_show_who_did_what(lab: LiveServer) -> None:
    run = answer(lab, "run", "--wait", "--json", "--", "true")["id"]
    found = answer(lab, "events", "--run", run, "--json")
    assert (found[0]["type"], found[0]["actor"]) == ("run.created", "person")
    assert found[-1]["data"]["to"] == "finished"
    assert len(answer(lab, "events", "-n", "2", "--json")) == 2


def test_files_missing_from_a_snapshot_are_shown(lab: LiveServer) -> None:
    folder = lab.project / "broken clone"
    folder.mkdir()
    (folder / ".git").write_text("garbage")
    run = lab.wait_for_end(lab.submit("true", workdir=folder.name)["id"])
    assert run["snapshot"]["notes"][0] in labwright(lab, "show", run["id"]).stdout


def test_diff_shows_changes_since_the_run(lab: LiveServer) -> None:
    code = lab.project / "train.py"
    code.write_text("rate = 1\n")
    run = answer(lab, "run", "--wait", "--json", "--", "true")["id"]
    assert "has not changed" in labwright(lab, "diff", run).stdout
    code.write_text("rate = 2\n")
    assert "+rate = 2" in labwright(lab, "diff", run).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ps", "--no-such"], "--no-such"),
        (["events", "-n", "many"], "many"),
        (["stop"], "RUN"),
        (["pss"], "pss"),
        (["compare", "last", "--x", "moon"], "moon"),
    ],
)
def test_usage_errors_are_json_with_the_json_option(lab: LiveServer, arguments: list[str], words: str) -> None:
    called = labwright(lab, *arguments, "--json")
    error = json.loads(called.stderr)["error"]
    assert (called.returncode, called.stdout, error["code"]) == (2, "", "usage")
    assert words in error["message"] and "--help" in error["hint"]
    plain = labwright(lab, *arguments)
    assert plain.returncode == 2 and "Usage:" in plain.stderr


def test_exit_codes_are_the_same_with_json(lab: LiveServer) -> None:
    called = labwright(lab, "run", "--json", "--wait", "--", "bash", "-c", "exit 7")
    assert called.returncode == 7 and json.loads(called.stdout)["exit_code"] == 7
    assert labwright(lab, "ps", "--json").returncode == 0
    assert labwright(lab, "ps", "--json", "--help").returncode == 0
