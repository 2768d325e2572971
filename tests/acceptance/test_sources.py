"""Metrics without the SDK, from a real job to the API: each number once, and on the right run."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labwright.processes import all_pids, children_of, parent_of
from tests.acceptance.test_cli import answer, labwright
from tests.support.event_file import event, simple
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    project = tmp_path_factory.mktemp("sources") / "project"
    project.mkdir()
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="8").start()
    yield server
    for run in server.all_runs():
        server.call("POST", f"/runs/{run['id']}/stop")
    server.stop()


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def series(server: LiveServer, run_id: str, key: str) -> dict[str, Any]:
    found = server.get(f"/runs/{run_id}/metrics?keys={key}&max_points=100000")["series"]
    return found[0] if found else {"steps": [], "values": [], "source": None}


def wait_for_points(server: LiveServer, run_id: str, key: str, count: int) -> dict[str, Any]:
    wait_until(lambda: len(series(server, run_id, key)["steps"]) >= count, f"{count} points of {key}")
    return series(server, run_id, key)


def refusals(server: LiveServer, run_id: str) -> str:
    """Return all refusals in the run's metric files."""
    texts = [path.read_text() for path in (server.state / "runs" / run_id / "metrics").glob("*.jsonl")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return " ".join(f"{line['refused']['key']}: {line['refused']['why']}" for line in lines if "refused" in line)


def finished(server: LiveServer, command: str, **fields: Any) -> str:
    run = server.wait_for_end(server.submit(command, **fields)["id"])
    assert run["status"] == "finished", server.output(run["id"])
    return str(run["id"])


def test_json_lines_of_a_very_short_run_are_read(lab: LiveServer) -> None:
    run = finished(lab, 'echo \'{"step": 3, "loss": 0.2}\'; printf \'{"step": 4, "loss": NaN}\'')
    found = series(lab, run, "loss")
    assert (found["steps"], found["values"], found["source"]) == ([3, 4], [0.2, "NaN"], "output")


def test_a_silent_short_run_starts_no_monitor(lab: LiveServer) -> None:
    run = finished(lab, "echo hello")
    folder = Path(lab.run(run)["run_dir"])
    assert not (folder / "heartbeat").exists() and not (folder / "metrics").exists()


def test_lines_are_read_while_the_run_is_active(lab: LiveServer) -> None:
    run = lab.submit('for i in 1 2 3; do echo "{\\"step\\": $i, \\"loss\\": 0.$i}"; sleep 0.3; done; sleep 1000')
    assert wait_for_points(lab, run["id"], "loss", 3)["steps"] == [1, 2, 3]
    lab.post(f"/runs/{run['id']}/stop")


def monitors(run_id: str) -> list[int]:
    """Return the sidecar's watching processes: children of a supervisor that are not the job."""
    jobs = [pid for pid in all_pids() if f"LABWRIGHT_RUN_ID={run_id}" in environment(pid)]
    supervisors = {parent_of(pid) for pid in jobs} - set(jobs) - {None, 1}
    return [child for boss in supervisors for child in children_of(int(boss or 0)) if child not in jobs]


def environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def test_a_killed_monitor_neither_loses_nor_doubles_a_point(lab: LiveServer) -> None:
    code = (
        "import json, os, time\n"
        "for step in range(20_000):\n"
        "    print(json.dumps({'step': step, 'loss': step / 7}), flush=True)\n"
        "    step % 500 or time.sleep(0.05)\n"
        "    while step == 15_000 and not os.path.exists('killed'): time.sleep(0.02)\n"
    )
    run = lab.submit(python(code))
    lab.wait_for_status(run["id"], "running")
    kills = 0
    while kills < 3:
        for pid in monitors(run["id"]):
            os.kill(pid, signal.SIGKILL)
            kills += 1
        time.sleep(0.2)
    (lab.project / "killed").touch()
    lab.wait_for_end(run["id"])
    text = Path(lab.run(run["id"])["run_dir"], "metrics", "output.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["s"] for line in lines if "m" in line] == list(range(20_000))
    found = series(lab, run["id"], "loss")
    assert found["count"] == 20_000 and found["steps"] == list(range(20_000))


def test_bad_output_does_no_harm_and_is_reported(lab: LiveServer) -> None:
    code = (
        "import sys, os, json\n"
        "out = sys.stdout.buffer\n"
        "out.write(os.urandom(200_000) + b'\\n')\n"
        "out.write(b'{\"step\": 1, \"' + b'k' * 10_000_000 + b'\": 1}\\n')\n"
        "out.write(json.dumps({'step': 2, **{f'k{i}': i for i in range(100_000)}}).encode() + b'\\n')\n"
        "out.write(json.dumps({'step': -1, 'loss': 'high', 'real': 0.5}).encode() + b'\\n')\n"
        'out.write(b\'{"step": 3, "re\')\n'
        "out.flush()\n"
    )
    run = finished(lab, python(code))
    assert series(lab, run, "real")["steps"] == [-1]
    said = refusals(lab, run)
    assert "loss: not a number" in said and "(a line): it is longer" in said
    notices = [event for event in lab.get("/events?limit=1000") if event.get("run_id") == run]
    assert any("Not stored as metrics" in json.dumps(notice) for notice in notices)


def test_refused_values_are_counted_and_reported_once(lab: LiveServer) -> None:
    lines = ['{"step": 1.5, "loss": 0.4}'] * 12 + ['{"step": 7, "loss": 0.3}', '{"loss": 0.2}', '{"loss": 0.1}']
    lines += ['{"step": 20, "loss": 0.05, "who": "me"}', '{"level": "info", "loss": 9.0}']
    run = finished(lab, "; ".join(f"echo {shlex.quote(line)}" for line in lines))
    found = series(lab, run, "loss")
    assert (found["steps"], found["values"]) == ([7, 8, 9, 20], [0.3, 0.2, 0.1, 0.05])
    refused = lab.run(run)["refused"]
    assert refused["count"] == 13
    told = {entry["key"]: (entry["source"], entry["why"], entry["count"]) for entry in refused["first"]}
    assert told["(a line)"] == ("output", "its step is not a whole number", 12)
    assert told["who"] == ("output", "not a number", 1)
    notices = [event for event in lab.get(f"/events?run_id={run}&limit=1000") if event["type"] == "run.notice"]
    assert str(notices).count("its step is not a whole number") == 1
    shown = labwright(lab, "show", run).stdout
    assert "Rejected metric values: 13 (" in shown and "not a whole number" in shown
    assert "values: 13 (" in labwright(lab, "metrics", run).stdout


def test_pairs_and_patterns_follow_the_project_settings(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    (server.project / "labwright.toml").write_text(
        "[metrics]\nkey_value = true\npatterns = ['Epoch (?P<step>\\d+), accuracy (?P<acc>[\\d.]+)']\n"
    )
    server.start()
    run = finished(server, "echo step=7 loss=0.5; echo 'Epoch 9, accuracy 0.75'")
    assert (series(server, run, "loss")["steps"], series(server, run, "acc")["steps"]) == ([7], [9])


def writer(path: str, mode: str, values: list[float], wait: str) -> str:
    """Return a job that holds a file open while it writes, as loggers do."""
    lines = "".join(json.dumps({"step": step, "loss": value}) + "\n" for step, value in enumerate(values))
    code = (
        "import os, time\n"
        f"os.makedirs(os.path.dirname({path!r}) or '.', exist_ok=True)\n"
        f"file = open({path!r}, {mode!r})\n"
        f"file.write({lines!r}); file.flush()\n"
        f"while not os.path.exists({wait!r}): time.sleep(0.02)\n"
    )
    return python(code)


def test_two_runs_with_files_of_the_same_name_get_their_own_numbers(lab: LiveServer) -> None:
    first = lab.submit(writer("a/metrics.jsonl", "a", [1.0, 2.0], "go-1"))
    second = lab.submit(writer("b/metrics.jsonl", "w", [10.0, 20.0], "go-1"))
    assert wait_for_points(lab, first["id"], "loss", 2)["values"] == [1.0, 2.0]
    found = wait_for_points(lab, second["id"], "loss", 2)
    assert (found["values"], found["source"]) == ([10.0, 20.0], "file")
    (lab.project / "go-1").touch()
    for run in (first, second):
        lab.wait_for_end(run["id"])
        assert len(series(lab, run["id"], "loss")["steps"]) == 2
        assert refusals(lab, run["id"]) == ""


def test_two_runs_in_one_file_get_no_numbers_and_a_report(lab: LiveServer) -> None:
    runs = [lab.submit(writer("shared/metrics.jsonl", "a", [1.0], "go-2"))["id"] for _ in range(2)]
    for run in runs:
        wait_until(lambda run=run: "cannot be assigned to one run" in refusals(lab, run), "the refusal")
    (lab.project / "go-2").touch()
    for run in runs:
        lab.wait_for_end(run)
        assert series(lab, run, "loss")["steps"] == []


def test_a_file_opened_by_a_foreign_process_is_not_read(lab: LiveServer) -> None:
    code = (
        "import json, os, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "file = open('kin/metrics.jsonl', 'a')\n"
        "for step in range(10_000):\n"
        "    file.write(json.dumps({'step': step, 'loss': 1}) + '\\n'); file.flush()\n"
        "    child = os.fork()\n"
        "    child or (time.sleep(0.03), os._exit(0))\n"
        "    step % 5 or time.sleep(0.02)\n"
    )
    (lab.project / "kin").mkdir()
    run = lab.submit(python(code))
    wait_for_points(lab, run["id"], "loss", 150)
    assert refusals(lab, run["id"]) == ""
    with (lab.project / "kin/metrics.jsonl").open("a"):
        wait_until(lambda: "another process writes to it too" in refusals(lab, run["id"]), "the refusal")
    lab.post(f"/runs/{run['id']}/stop")


def test_a_file_of_another_process_is_reported_and_not_read(lab: LiveServer) -> None:
    run = lab.submit("mkdir -p else; touch else/ready; while [ ! -e go-3 ]; do sleep 0.05; done")
    wait_until((lab.project / "else/ready").exists, "the run")
    (lab.project / "else/metrics.jsonl").write_text('{"step": 1, "stray": 1}\n')
    time.sleep(0.6)
    (lab.project / "go-3").touch()
    lab.wait_for_end(run["id"])
    assert series(lab, run["id"], "stray")["steps"] == []
    assert "else/metrics.jsonl: changed during the run" in refusals(lab, run["id"])


def test_a_short_run_that_holds_its_file_open_loses_no_point(lab: LiveServer) -> None:
    folder = lab.project / "short"
    folder.mkdir()
    code = (
        "import json, time\n"
        "time.sleep(0.7)\n"
        "with open('metrics.jsonl', 'w', buffering=1) as file:\n"
        "    for step in range(60): print(json.dumps({'step': step, 'loss': 1.0}), file=file); time.sleep(0.02)\n"
    )
    run = finished(lab, python(code), workdir=str(folder))
    assert series(lab, run, "loss")["steps"] == list(range(60))


def test_a_file_is_read_before_the_run_empties_it(lab: LiveServer) -> None:
    folder = lab.project / "emptied"
    folder.mkdir()
    code = (
        "import json, os, time\n"
        "def wait_for(name):\n"
        "    while not os.path.exists(name): time.sleep(0.02)\n"
        "file = open('metrics.jsonl', 'w', buffering=1)\n"
        "time.sleep(1)\n"
        "for step in range(30): print(json.dumps({'step': step, 'loss': float('nan')}), file=file)\n"
        "wait_for('judged')\n"
        "file.truncate(0); file.seek(0)\n"
        "print(json.dumps({'step': 99, 'loss': 0.5}), file=file)\n"
        "wait_for('read')\n"
    )
    run = lab.submit(python(code), workdir=str(folder))["id"]
    wait_until(lambda: lab.get(f"/alerts?run_id={run}"), "the alert, while the run holds the file open")
    (folder / "judged").touch()
    wait_for_points(lab, run, "loss", 31)
    (folder / "read").touch()
    lab.wait_for_end(run)
    assert series(lab, run, "loss")["steps"] == [*range(30), 99]
    assert "cut short" in refusals(lab, run)


def test_only_what_is_added_during_the_run_counts(lab: LiveServer) -> None:
    folder = lab.project / "old"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text('{"step": 1, "old": 1}\n')
    command = 'exec 3>>metrics.jsonl; echo \'{"step": 2, "old": 2}\' >&3; while [ ! -e go ]; do sleep 0.05; done'
    run = lab.submit(command, workdir=str(folder))
    assert wait_for_points(lab, run["id"], "old", 1)["steps"] == [2]
    (folder / "go").touch()
    lab.wait_for_end(run["id"])
    assert series(lab, run["id"], "old")["steps"] == [2]


def test_a_declared_file_is_read_even_if_never_open(lab: LiveServer) -> None:
    write = 'echo \'{"step": 5, "said": 1}\' >> said.jsonl; sleep 0.4; echo \'{"step": 6, "said": 2}\' >> said.jsonl'
    run = finished(lab, write, env={"LABWRIGHT_METRIC_FILES": "said.jsonl"})
    assert series(lab, run, "said")["steps"] == [5, 6]
    inside = (
        f"export LABWRIGHT_METRIC_FILES=inner.jsonl; sleep 0.1; {write.replace('said.jsonl', 'inner.jsonl')}; sleep 1"
    )
    assert series(lab, finished(lab, inside), "said")["steps"] == [5, 6]


def test_the_callers_own_variable_declares_files_for_the_run(lab: LiveServer) -> None:
    (lab.project / "shell.jsonl").write_text('{"step": 1, "shell": 1}\n')
    write = 'echo \'{"step": 2, "shell": 2}\' >> shell.jsonl; sleep 0.3'
    run = answer(lab, "run", "--json", write, env={"LABWRIGHT_METRIC_FILES": "shell.jsonl"})["id"]
    lab.wait_for_end(run)
    assert series(lab, run, "shell")["steps"] == [2]


def test_tensorboard_files_are_read_as_they_grow(lab: LiveServer) -> None:
    now = time.time() + 1
    folders = {"tb": (1.0, 2.0), "tb/eval": (3.0,)}
    blocks = {
        f"{folder}/events.out.tfevents.1.host": (
            event(now, 0) + b"".join(event(now + i, i, simple("loss", value)) for i, value in enumerate(values))
        ).hex()
        for folder, values in folders.items()
    }
    code = (
        "import os, time\nheld = []\n"
        f"for path, data in {blocks!r}.items():\n"
        "    os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        "    file = open(path, 'wb'); held.append(file); data = bytes.fromhex(data)\n"
        "    file.write(data[:70]); file.flush(); time.sleep(0.7); file.write(data[70:]); file.flush()\n"
        "while not os.path.exists('go-4'): time.sleep(0.02)\n"
    )
    run = lab.submit(python(code))
    found = wait_for_points(lab, run["id"], "loss", 2)
    assert (found["values"], found["source"]) == ([1.0, 2.0], "tensorboard")
    assert wait_for_points(lab, run["id"], "eval/loss", 1)["values"] == [3.0]
    (lab.project / "go-4").touch()
    lab.wait_for_end(run["id"])
    assert len(series(lab, run["id"], "loss")["steps"]) == 2


def test_a_declared_trainer_state_is_read(lab: LiveServer) -> None:
    history = [{"step": step, "epoch": step / 4, "loss": 1.0 / step} for step in (1, 2, 3)]
    texts = [json.dumps({"log_history": history[:count]}) for count in (2, 3)]
    command = (
        f"mkdir -p hf/checkpoint-2 hf/checkpoint-3; echo '{texts[0]}' > hf/checkpoint-2/trainer_state.json; sleep 1.3; "
        f"echo '{texts[1]}' > hf/checkpoint-3/trainer_state.json; sleep 1.3"
    )
    run = finished(lab, command, env={"LABWRIGHT_METRIC_FILES": "hf/*/trainer_state.json"})
    found = series(lab, run, "loss")
    assert (found["steps"], found["source"]) == ([1, 2, 3], "trainer_state")
    assert "hf/" not in refusals(lab, run)


def test_a_state_of_an_earlier_run_does_not_hide_new_entries(lab: LiveServer) -> None:
    folder = lab.project / "again"
    folder.mkdir()

    def text(loss: float, steps: int) -> str:
        history = [{"step": step, "loss": loss / step} for step in range(1, steps + 1)]
        return json.dumps({"global_step": steps, "log_history": history})

    def train(loss: float, steps: int) -> list[Any]:
        command = f"sleep 0.5; echo '{text(loss, steps)}' > trainer_state.json"
        env = {"LABWRIGHT_METRIC_FILES": "trainer_state.json"}
        run = finished(lab, command, workdir=str(folder), env=env)
        return [*series(lab, run, "loss")["steps"], *(["older"] if "older entries" in refusals(lab, run) else [])]

    assert train(1.0, 3) == [1, 2, 3]
    assert train(1.0, 3) == [1, 2, 3]  # the same numbers, but written by this run
    assert train(2.0, 4) == [1, 2, 3, 4]
    assert train(2.0, 6) == [5, 6, "older"]  # the run goes on


def test_the_system_is_sampled_for_every_run(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_SYSTEM_METRICS_SECONDS="0.3").start()
    run = server.submit(python("import time; b = bytearray(60_000_000)\nwhile True: pass"))
    wait_for_points(server, run["id"], "system/cpu_percent", 3)
    assert max(series(server, run["id"], "system/memory_mb")["values"]) > 60
    assert max(series(server, run["id"], "system/cpu_percent")["values"]) > 10
    assert all(math.isfinite(value) for value in series(server, run["id"], "system/disk_free_gb")["values"])
    server.call("POST", f"/runs/{run['id']}/stop")
    server.wait_for_end(run["id"])
    shown = server.get(f"/runs/{run['id']}/system?max_points=2")["series"]
    assert {"system/cpu_percent", "system/memory_mb", "system/disk_free_gb"} <= {found["key"] for found in shown}
    assert shown == server.get(f"/runs/{run['id']}/metrics?source=system&x=time&max_points=2")["series"]
    assert server.call("GET", "/runs/run_doesnotexist/system").status == 404
