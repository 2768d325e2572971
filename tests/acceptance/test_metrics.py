"""Every point is stored once after `log()` returns, whatever is killed. Thinned curves keep extremes."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labwright.processes import children_of, processes_of_run
from tests.support.live_server import LiveServer
from tests.support.sidecars import supervisor_of
from tests.support.waiting import wait_until

PROCESSES = 4
LOGGER = """
import os, sys, labwright
rank = int(sys.argv[1])
labwright.init(log_all_ranks=True)
done = os.open(f"done-{rank}", os.O_WRONLY | os.O_CREAT)
for step in range(int(sys.argv[2])):
    labwright.log({f"r{rank}/a": step * 0.5, f"r{rank}/b": -1.0 * step}, step=step)
    os.pwrite(done, b"%10d" % step, 0)
"""


def start_loggers(server: LiveServer, steps: int) -> dict[str, Any]:
    (server.project / "logger.py").write_text(LOGGER)
    command = "".join(f"{sys.executable} logger.py {rank} {steps} & " for rank in range(PROCESSES)) + "wait"
    return server.submit(command)


def logged(server: LiveServer, rank: int) -> int:
    """Return how many `log()` calls of a process returned by its own count, or -1 if unknown."""
    path = server.project / f"done-{rank}"
    return int(path.read_bytes() or b"-1") if path.exists() else -1


def points_of(server: LiveServer, run_id: str, key: str) -> list[int]:
    found = server.get(f"/runs/{run_id}/metrics?keys={key}&max_points=100000")["series"]
    return found[0]["steps"] if found else []


def check_all_there_once(server: LiveServer, run_id: str) -> None:
    for rank in range(PROCESSES):
        last = logged(server, rank)
        for key in (f"r{rank}/a", f"r{rank}/b"):
            series = server.get(f"/runs/{run_id}/metrics?keys={key}&max_points=2")["series"][0]
            assert series["count"] in (last + 1, last + 2), (key, last)  # one call may have been in progress
            assert series["last_step"] == series["count"] - 1  # each step once: no gap, no duplicate


def test_points_survive_repeated_server_kills(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    run = start_loggers(server, 20_000)
    chance = random.Random(5)
    while server.run(run["id"])["status"] not in ("finished", "failed"):
        time.sleep(chance.uniform(0.1, 0.6))  # the moment of the kill is the random part
        server.restart()
    assert server.run(run["id"])["status"] == "finished"
    check_all_there_once(server, run["id"])
    assert sum(logged(server, rank) + 1 for rank in range(PROCESSES)) == PROCESSES * 20_000


def test_points_survive_a_killed_job_and_a_killed_sidecar(server: LiveServer) -> None:
    killed_job = start_loggers(server, 10_000_000)
    wait_until(lambda: all(logged(server, rank) > 500 for rank in range(PROCESSES)), "the loggers to be under way")
    for pid in processes_of_run(killed_job["id"]):
        os.kill(pid, signal.SIGKILL)
    assert server.wait_for_end(killed_job["id"])["status"] == "failed"
    check_all_there_once(server, killed_job["id"])
    for rank in range(PROCESSES):
        (server.project / f"done-{rank}").unlink()
    killed_sidecar = start_loggers(server, 10_000_000)
    wait_until(lambda: all(logged(server, rank) > 500 for rank in range(PROCESSES)), "the loggers to be under way")
    supervisor = supervisor_of(server, killed_sidecar["id"])
    for pid in [*children_of(supervisor), supervisor, *processes_of_run(killed_sidecar["id"])]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it ended with the previous one
    server.wait_for_status(killed_sidecar["id"], "lost")
    wait_until(lambda: server.get(f"/runs/{killed_sidecar['id']}/metrics")["series"], "the points")
    check_all_there_once(server, killed_sidecar["id"])


def test_other_runs_start_and_end_while_many_metrics_are_ingested(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server(LABWRIGHT_MAX_PARALLEL="4").start()
    code = "import labwright; labwright.log({f'k{i}': i for i in range(100_000)}, step=0)"
    many = server.submit(f'{sys.executable} -c "{code}"')["id"]
    wait_until(lambda: Path(server.run(many)["run_dir"] or "", "exit.json").exists(), "the end of the command")
    other = server.wait_for_end(server.submit("true")["id"])
    assert (other["status"], server.run(many)["status"]) == ("finished", "running")
    assert server.wait_for_end(many, timeout=300)["status"] == "finished"
    assert sum(key.startswith("k") for key in server.get(f"/runs/{many}/metrics?keys=k1")["keys"]) == 100_000


def test_thinned_series_keeps_its_extremes(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})
    values = [math.sin(i / 50) for i in range(9000)]
    values[4321], values[7654] = 99.0, -99.0
    for start in range(0, 9000, 3000):
        points = [{"key": "x", "step": i, "value": values[i]} for i in range(start, start + 3000)]
        assert lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points}).status == 202
    wait_until(lambda: lab.run(run["id"])["summary"].get("x", {}).get("step") == 8999, "all points")
    shown = lab.get(f"/runs/{run['id']}/metrics?keys=x&max_points=200")["series"][0]
    assert len(shown["steps"]) <= 200 and shown["steps"] == sorted(shown["steps"])
    assert 99.0 in shown["values"] and -99.0 in shown["values"]
    assert shown["count"] == 9000 and (shown["min"], shown["max"]) == (-99.0, 99.0)


def test_repeated_and_unordered_steps_have_a_defined_result(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})
    for step, value in ((3, 1.0), (1, 2.0), (3, 5.0), (2, 4.0)):
        lab.call("POST", f"/runs/{run['id']}/metrics", {"points": [{"key": "x", "step": step, "value": value}]})
    wait_until(lambda: lab.run(run["id"])["summary"].get("x", {}).get("last") == 4.0, "all points")
    shown = lab.get(f"/runs/{run['id']}/metrics")["series"][0]
    assert (shown["steps"], shown["values"]) == ([1, 2, 3], [2.0, 4.0, 5.0])


def test_nan_is_preserved(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})
    points = [{"key": "x", "step": i, "value": v} for i, v in enumerate([1.0, "NaN", "Infinity", "-Infinity"])]
    lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points})
    wait_until(lambda: lab.get(f"/runs/{run['id']}/metrics")["series"], "the series")
    shown = lab.get(f"/runs/{run['id']}/metrics")["series"][0]
    assert shown["values"] == [1.0, "NaN", "Infinity", "-Infinity"]
    assert lab.run(run["id"])["summary"]["x"] == {
        "last": "-Infinity", "min": 1.0, "max": 1.0, "mean": 1.0, "step": 3, "source": "http",
    }  # fmt: skip


def test_torn_or_invalid_line_is_reported_and_loses_nothing_else(lab: LiveServer) -> None:
    run = lab.submit("sleep 1000")
    lab.wait_for_status(run["id"], "running")
    folder = lab.state / "runs" / run["id"] / "metrics"
    folder.mkdir(exist_ok=True)
    lines = [
        {"s": 1, "t": 1.0, "m": {"good": 1.0, "text": "no number"}},
        {"s": "two", "t": 1.0, "m": {"good": 2.0}},
        {"s": 3, "t": 1.0, "m": {"k" * 2000: 1.0}},
        {"s": 4, "t": 1.0, "m": {"good": 4.0}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "sdk-1-x.jsonl").write_bytes(b"\x00\xff not json\n[1]\n" + text.encode() + b'{"s": 5, "t": 1')
    wait_until(lambda: lab.run(run["id"])["summary"].get("good", {}).get("step") == 4, "the good points")
    assert points_of(lab, run["id"], "good") == [1, 4]
    notices = [e["data"]["text"] for e in lab.get(f"/events?run_id={run['id']}&types=run.notice")]
    assert any("Not stored" in text and "text: not a number" in text for text in notices)


def test_huge_line_is_reported_and_nothing_after_it_is_lost(lab: LiveServer) -> None:
    run = lab.submit("sleep 1000")["id"]
    lab.wait_for_status(run, "running")
    folder = lab.state / "runs" / run
    (folder / "metrics").mkdir(exist_ok=True)
    with open(folder / "metrics" / "sdk-1-x.jsonl", "w") as file:
        for step, pad in ((1, 0), (2, 5_000_000), (3, 20_000_000), (4, 0)):
            point = {"s": step, "t": time.time(), "m": {"loss": float(step)}, "pad": "x" * pad}
            file.write(json.dumps(point) + "\n")
    wait_until(lambda: points_of(lab, run, "loss") == [1, 2, 4], "what stands behind the huge line")
    with open(folder / "events.jsonl", "a") as file:
        file.write("x" * 20_000_000 + "\n")
        file.write(json.dumps({"event": "warning", "time": time.time(), "text": "behind it"}) + "\n")
    wait_until(lambda: "behind it" in lab.run(run)["warnings"], "the event behind the huge line")
    notices = [e["data"]["text"] for e in lab.get(f"/events?run_id={run}") if e["type"] == "run.notice"]
    assert any("Not stored as metrics from sdk: (a long line): it is longer than 16 MB" in text for text in notices)
    assert any(text.startswith("A line of its event log is longer than 16 MB: b'xxx") for text in notices)


def test_points_repeated_in_one_request_count_like_single_requests(lab: LiveServer) -> None:
    values = [1.0, 5.0, 3.0]
    repeated = [{"key": "a", "step": 7, "value": value, "time": 1e9} for value in values]
    together, apart = (lab.post("/runs", {"command": "true"})["id"] for _ in range(2))
    others = [{"key": "b", "step": 7, "value": 0.5, "time": 1e9}]
    assert lab.call("POST", f"/runs/{together}/metrics", {"points": [*repeated, *others]}).json["accepted"] == 4
    for point in [*repeated, *others]:
        lab.call("POST", f"/runs/{apart}/metrics", {"points": [point]})

    def shown(run_id: str) -> Any:
        return lab.get(f"/runs/{run_id}/metrics?keys=a&keys=b")["series"]

    def is_shown() -> bool:
        series = shown(together)
        return len(series) == 2 and series[0]["max"] == 3.0 and series == shown(apart)

    wait_until(is_shown, "the same series, with what came last")
    (first, _) = shown(together)
    assert (first["count"], first["max"], first["last"], first["values"]) == (3, 3.0, 3.0, [3.0])


def test_compare_gives_mean_and_spread_over_seeds(lab: LiveServer) -> None:
    ids = []
    for seed, offset in enumerate((0.0, 2.0)):
        run = lab.post("/runs", {"command": "true", "params": {"lr": 0.1, "seed": seed}, "seed": seed})
        points = [{"key": "loss", "step": i, "value": i + offset} for i in range(10)]
        lab.call("POST", f"/runs/{run['id']}/metrics", {"points": points})
        ids.append(run["id"])
    wait_until(lambda: all(lab.run(i)["summary"].get("loss", {}).get("step") == 9 for i in ids), "all points")
    compared = lab.get(f"/metrics/compare?run_ids={','.join(ids)}&key=loss")
    (group,) = compared["groups"]
    assert group["n"] == 2 and group["mean"] == [i + 1.0 for i in range(10)]
    assert all(abs(std - math.sqrt(2)) < 1e-9 for std in group["std"])


def test_compare_never_averages_two_commands(lab: LiveServer) -> None:
    ids = [lab.post("/runs", {"command": f"true --lr {rate}"})["id"] for rate in (0.1, 0.01)]
    for run_id in ids:
        lab.call("POST", f"/runs/{run_id}/metrics", {"points": [{"key": "loss", "step": 0, "value": 1.0}]})
    wait_until(lambda: all("loss" in lab.run(run_id)["summary"] for run_id in ids), "both points")
    groups = lab.get(f"/metrics/compare?run_ids={','.join(ids)}&key=loss")["groups"]
    assert [(group["run_ids"], group["n"]) for group in groups] == [([run_id], 1) for run_id in ids]


def test_compare_by_time_starts_at_each_run_and_by_epoch_uses_its_metric(lab: LiveServer) -> None:
    ids = []
    for seed, (start, pace) in enumerate(((1e9, 10.0), (2e9, 20.0))):
        run = lab.post("/runs", {"command": "true", "params": {"lr": 0.1, "seed": seed}, "seed": seed})["id"]
        points = [{"key": "loss", "step": i, "value": float(i), "time": start + i * pace} for i in range(1, 9)]
        points += [{"key": "epoch", "step": i, "value": i / 2, "time": start + i * pace} for i in range(2, 9, 2)]
        lab.call("POST", f"/runs/{run}/metrics", {"points": points})
        ids.append(run)
    wait_until(lambda: all(len(lab.run(i)["summary"]) == 2 for i in ids), "all points")
    asked = f"/metrics/compare?run_ids={','.join(ids)}&key=loss"
    by_time = lab.get(f"{asked}&x=time")
    assert [run["times"][:3] for run in by_time["runs"]] == [[0, 10, 20], [0, 20, 40]]
    (group,) = by_time["groups"]
    assert (group["times"][:3], group["mean"][:3]) == ([0, 10, 20], [1.0, 1.5, 2.5])
    by_epoch = lab.get(f"{asked}&x=epoch")
    assert by_epoch["runs"][0]["epochs"] == [1, 1, 2, 2, 3, 3, 4]
    assert by_epoch["runs"][0]["steps"][0] == 2, "before the first epoch there is no place for a point"
    assert by_epoch["groups"][0]["std"] == [0.0] * 7
    shown = lab.get(f"/runs/{ids[0]}/metrics?keys=loss&x=epoch")["series"][0]
    assert shown["epochs"] == ["NaN", 1, 1, 2, 2, 3, 3, 4]


def test_compare_by_epoch_without_epochs_says_what_is_missing(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})["id"]
    lab.call("POST", f"/runs/{run}/metrics", {"points": [{"key": "loss", "step": 1, "value": 1.0}]})
    wait_until(lambda: lab.run(run)["summary"], "the point")
    answer = lab.call("GET", f"/metrics/compare?run_ids={run}&key=loss&x=epoch")
    assert answer.status == 404 and "epoch" in answer.json["error"]["hint"]


def test_deleted_database_gets_its_metrics_back_from_the_folders(server: LiveServer) -> None:
    run = server.submit(f"{sys.executable} -c \"import labwright; [labwright.log({{'x': i}}) for i in range(50)]\"")
    server.wait_for_end(run["id"])
    server.kill()
    for path in Path(server.state).glob("labwright.db*"):
        path.unlink()
    server.start()
    assert len(points_of(server, run["id"], "x")) == 50


def test_artifact_is_an_attachment_and_stays_in_its_folder(lab: LiveServer) -> None:
    run = lab.wait_for_end(
        lab.submit("mkdir -p $LABWRIGHT_RUN_DIR/artifacts; echo '<script>' > $LABWRIGHT_RUN_DIR/artifacts/a.html")["id"]
    )
    answer = lab.call("GET", f"/runs/{run['id']}/artifacts/a.html")
    assert answer.status == 200
    assert "attachment" in answer.headers["content-disposition"]
    assert "sandbox" in answer.headers["content-security-policy"]
    for path in ("../spec.json", "%2e%2e/spec.json", "..%2f..%2f..%2ftoken", "/etc/passwd"):
        assert lab.call("GET", f"/runs/{run['id']}/artifacts/{path}").status in (404, 401, 422)


def test_points_sent_to_an_ended_run_survive_a_server_kill(make_server: Callable[..., LiveServer]) -> None:
    """The 202 response is a promise. The server is suspended before it can read the points, then killed."""
    server = make_server().start()
    run = server.wait_for_end(server.submit("true")["id"])
    (server.project / ".labwright" / "runs" / run["id"] / "metrics").mkdir(exist_ok=True)
    hold = sqlite3.connect(server.project / ".labwright" / "labwright.db", isolation_level=None)
    hold.execute("BEGIN IMMEDIATE")  # nothing is ingested while another process writes
    body = {"points": [{"key": "late", "step": step, "value": 1.0} for step in range(10)]}
    assert server.call("POST", f"/runs/{run['id']}/metrics", body).status == 202
    for _ in range(120):  # so that it is not among the newest
        hold.execute("INSERT INTO runs (id, record) SELECT 'run-' || hex(randomblob(6)), record FROM runs LIMIT 1")
    server.kill()
    hold.execute("COMMIT")
    hold.close()
    server.start()
    found = wait_until(lambda: server.get(f"/runs/{run['id']}/metrics")["series"], "the late points")
    assert found[0]["count"] == 10
    wait_until(lambda: not list((server.project / ".labwright" / "unread-metrics").iterdir()), "the note to go")


def test_file_rewritten_beyond_the_read_position_is_noticed(lab: LiveServer) -> None:
    run = lab.submit("sleep 1000")
    folder = Path(lab.wait_for_status(run["id"], "running")["run_dir"], "metrics")
    folder.mkdir(exist_ok=True)
    file = folder / "sdk-1-x.jsonl"

    def lines(key: str, count: int) -> str:
        return "".join(f'{{"s": {step}, "t": 1.0, "m": {{"{key}": 1.0}}}}\n' for step in range(count))

    file.write_text(lines("first", 50))
    wait_until(lambda: "first" in lab.run(run["id"])["summary"], "the first points")
    with file.open("r+") as same:  # the same file, longer than before
        same.truncate(0)
        same.write(lines("later", 80))
    wait_until(lambda: lab.run(run["id"])["summary"].get("later", {}).get("step") == 79, "the later points")
    assert lab.get(f"/runs/{run['id']}/metrics?keys=later")["series"][0]["count"] == 80
    assert "rewritten" in str(lab.get(f"/events?run_id={run['id']}&limit=1000"))


def test_numbers_whose_sum_overflows_are_kept_and_do_no_harm(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    lines = "\n".join(json.dumps({"step": step, "q": 1.7e308, "r": (-1) ** step * 1e200}) for step in range(20))
    run = server.wait_for_end(server.submit(f"cat <<'E'\n{lines}\nE")["id"])
    assert run["status"] == "finished" and run["summary"]["q"]["last"] == 1.7e308
    server.restart()
    assert server.run(run["id"])["summary"]["r"]["max"] == 1e200
    assert server.get(f"/metrics/compare?run_ids={run['id']}&key=q")
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"
