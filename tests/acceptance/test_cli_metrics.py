"""`metrics`, `compare` and `export` as people and programs use them."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import sys
from typing import Any

import pytest

from tests.acceptance.test_cli import answer, begin, labwright
from tests.acceptance.test_cli_terminal import COLOUR, at_terminal
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

POINTS = 3000


def made(server: LiveServer, name: str, seed: int, lr: float) -> str:
    run: str = server.post(
        "/runs", {"command": "true", "name": name, "seed": seed, "params": {"lr": lr, "seed": seed}}
    )["id"]
    points = [
        {"key": "train/loss", "step": s, "value": _loss(s, lr) + seed / 100, "time": 1e9 + s} for s in range(POINTS)
    ]
    points += [
        {"key": 'odd, "key"\nhere', "step": 7, "value": word, "time": 1e9 + at}
        for at, word in enumerate(("NaN", "Infinity", -0.1))
    ]
    send(server, run, points)
    return run


def _loss(step: int, lr: float) -> float:
    return 2 * math.exp(-lr * step / 100)


def send(server: LiveServer, run: str, points: list[dict[str, Any]]) -> None:
    assert server.call("POST", f"/runs/{run}/metrics", {"points": points}).status == 202


@pytest.fixture(scope="module")
def runs(lab: LiveServer) -> list[str]:
    found = [made(lab, f"lr {lr} seed {seed}", seed, lr) for lr in (0.1, 0.5) for seed in (1, 2)]
    for run in found:
        wait_until(lambda run=run: len(lab.run(run)["summary"]) == 2, "the metrics to be read")
    return found


def test_pipe_gets_the_table_and_json_gets_the_series(lab: LiveServer, runs: list[str]) -> None:
    table = labwright(lab, "metrics", runs[0]).stdout
    row = next(line.split() for line in table.splitlines() if line.startswith("train/loss"))
    assert row == ["train/loss", "0.1097", "0.1097", "2.01", "0.6438", "2,999", "http"]
    found = answer(lab, "metrics", runs[0], "--json", "--key", "train/*", "--max-points", "50")["series"]
    assert [series["key"] for series in found] == ["train/loss"] and len(found[0]["steps"]) <= 50


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_curves_and_tables_fit_the_terminal(lab: LiveServer, runs: list[str], columns: int) -> None:
    for command in (["metrics", runs[0]], ["metrics", runs[0], "--x", "time", "--log", "--key", "train/loss"]):
        shown = COLOUR.sub("", at_terminal(lab, *command, columns=columns))
        assert "┤" in shown and "⠀" not in shown
        assert max(len(line) for line in shown.splitlines() if not line.startswith("Compare runs")) <= columns


def test_unknown_metric_error_names_the_known_ones(lab: LiveServer, runs: list[str]) -> None:
    for command in (["metrics", runs[0], "--key", "nope"], ["export", runs[0], "--key", "nope"]):
        called = labwright(lab, *command)
        assert called.returncode == 1 and "'nope'" in called.stderr and "train/loss" in called.stderr
        assert "key\"\\nhere'" in called.stderr, "a key with a line break is quoted"


def test_follow_shows_new_points_and_ends_with_the_run(lab: LiveServer) -> None:
    run = lab.submit("while ! test -e go; do sleep 0.05; done", name="follow me")["id"]
    lab.wait_for_status(run, "running")
    follower = begin(lab, "metrics", run, "-f", "--key", "live")
    send(lab, run, [{"key": "live", "step": 1, "value": 0.5}])
    follower.terminate()
    follower.communicate(timeout=60)
    wait_until(lambda: "live" in lab.run(run)["summary"], "the first point")
    follower = begin(lab, "metrics", run, "-f", "--key", "live")
    assert follower.stdout is not None
    assert follower.stdout.readline() == "step 1  live 0.5\n"
    send(lab, run, [{"key": "live", "step": 2, "value": "NaN"}])
    assert follower.stdout.readline() == "step 2  live NaN\n"
    (lab.project / "go").touch()
    follower.communicate(timeout=60)
    assert follower.returncode == 0


def test_compare_shows_each_run_with_a_mark_and_its_differences(lab: LiveServer, runs: list[str]) -> None:
    shown = COLOUR.sub("", at_terminal(lab, "compare", runs[0], runs[2], "--key", "train/loss", columns=100))
    assert "●" in shown and "▲" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith("All")) <= 100
    row = next(line for line in shown.splitlines() if runs[2] in line)
    assert "lr=0.5" in row


def test_runs_made_by_hand_are_distinguished_by_their_options(lab: LiveServer) -> None:
    rates = {lab.post("/runs", {"command": f"true train.py --lr {lr} --quick"})["id"]: lr for lr in (0.1, 0.01)}
    for run in rates:
        send(lab, run, [{"key": "loss", "step": 0, "value": 1.0}])
        wait_until(lambda run=run: lab.run(run)["summary"], "the metric to be read")
    shown = labwright(lab, "compare", *rates, "--key", "loss").stdout
    for run, rate in rates.items():
        assert next(line for line in shown.splitlines() if run in line).endswith(f"  lr={rate}")


def test_runs_that_differ_only_in_seed_become_mean_and_deviation(lab: LiveServer, runs: list[str]) -> None:
    shown = labwright(lab, "compare", *runs, "--key", "train/loss").stdout
    assert "mean ± std over seeds" in shown
    assert "2 runs" in shown and "0.1147 ± 0.007071" in shown


def test_mean_says_how_many_seeds_count_and_one_seed_has_no_deviation(lab: LiveServer) -> None:
    ids = []
    for seed, ends in enumerate((40, 40, 41)):
        run = lab.post("/runs", {"command": "true", "seed": seed, "params": {"width": 8, "seed": seed}})["id"]
        send(lab, run, [{"key": "acc", "step": step, "value": step / 100 + seed} for step in range(ends)])
        wait_until(lambda run=run, last=ends - 1: lab.run(run)["summary"].get("acc", {}).get("step") == last, "it")
        ids.append(run)
    row = compared_in_one_row(lab, ids)
    assert "2.4 (1 of 3)" in row and "±" not in row
    row = compared_in_one_row(lab, ids[:2])
    assert "0.89 ± 0.7071 " in row and " of 2" not in row


def test_comparison_says_which_values_are_in_no_curve(lab: LiveServer) -> None:
    code = "import json; [print(json.dumps({'step': s, 'wide': 10**400 if s > 1 else s})) for s in range(4)]"
    narrow = lab.wait_for_end(lab.submit(f'{shlex.quote(sys.executable)} -c "{code}"')["id"])["id"]
    strange = lab.post("/runs", {"command": "true", "params": {"width": 9}})["id"]
    send(lab, strange, [{"key": "wide", "step": s, "value": value} for s, value in enumerate((1, "NaN", 2))])
    wait_until(lambda: "wide" in lab.run(strange)["summary"], "its points to be read")
    shown = labwright(lab, "compare", narrow, strange, "--key", "wide").stdout
    assert f"NaN and infinite values are left out: {strange}\n" in shown
    assert f"rejected: 2 values of {narrow} (" in shown


def compared_in_one_row(lab: LiveServer, ids: list[str]) -> str:
    (row,) = (line for line in labwright(lab, "compare", *ids, "--key", "acc").stdout.splitlines() if ids[0] in line)
    return row


def test_without_a_key_all_last_values_are_shown_side_by_side(lab: LiveServer, runs: list[str]) -> None:
    shown = labwright(lab, "compare", *runs[:2]).stdout
    assert next(line.split() for line in shown.splitlines() if line.startswith("train")) == [
        "train/loss",
        "0.1097",
        "0.1197",
    ]


def test_without_a_key_the_table_says_what_it_omits(lab: LiveServer) -> None:
    many = "import json; print(json.dumps({'step': 1, 'bad': 'text', **{f'k{i:03}': i for i in range(230)}}))"
    few = "import json; print(json.dumps({'step': 1, 'k000': 1}))"
    ids = [lab.submit(f'{shlex.quote(sys.executable)} -c "{code}"')["id"] for code in (many, few)]
    own = [lab.wait_for_end(run) for run in ids]
    left_out = own[0]["summary_left_out"]
    shown = labwright(lab, "compare", *ids).stdout
    assert f"not shown: {left_out} more metrics of {ids[0]}: labwright metrics {ids[0]}\n" in shown and left_out >= 30
    assert f"rejected metric values of {ids[0]}: 1 (bad: not a number)\n" in shown
    assert f"of {ids[1]}" not in shown
    in_json = labwright(lab, "compare", *ids, "--json")
    assert json.loads(in_json.stdout) and f"{left_out} more metrics of {ids[0]}" in in_json.stderr


def test_only_drawn_curves_have_a_mark(lab: LiveServer) -> None:
    ids = [lab.post("/runs", {"command": "true", "params": {"width": width}})["id"] for width in range(11)]
    for run in ids[1:]:
        send(lab, run, [{"key": "many", "step": step, "value": 1 / (step + 1)} for step in range(5)])
        wait_until(lambda run=run: "many" in lab.run(run)["summary"], "its points to be read")
    shown = labwright(lab, "compare", *ids, "--key", "many").stdout.splitlines()
    assert "".join(line[0] for line in shown if "run-" in line) == " ●▲■◆○△□◇  "
    assert "8 of 10 are drawn: those with a mark." in shown


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_export_has_every_point_once_in_order(lab: LiveServer, runs: list[str]) -> None:
    rows = rows_of(labwright(lab, "export", runs[0]).stdout)
    assert list(rows[0]) == ["key", "step", "time", "value", "source", "attempt"]
    loss = [row for row in rows if row["key"] == "train/loss"]
    assert [int(row["step"]) for row in loss] == list(range(POINTS))
    assert [float(row["value"]) for row in loss] == [_loss(s, 0.1) + 0.01 for s in range(POINTS)]
    assert {(row["source"], row["attempt"]) for row in rows} == {("http", "1")}
    odd = [row["value"] for row in rows if row["key"] == 'odd, "key"\nhere']
    assert odd == ["NaN", "Infinity", "-0.1"]  # all points, though they share a step


def test_several_runs_go_into_one_file_that_names_them(lab: LiveServer, runs: list[str]) -> None:
    called = labwright(lab, "export", runs[0], runs[1], "--key", "train/loss", "-o", "all.csv")
    rows = rows_of((lab.project / "all.csv").read_text())
    assert called.stdout == "" and f"{2 * POINTS} lines" in called.stderr
    assert [row["run_id"] for row in rows] == [runs[0]] * POINTS + [runs[1]] * POINTS
    assert [path.name for path in lab.project.glob("*.new")] == []


def test_export_writes_through_links_and_pipes_without_replacing_them(lab: LiveServer, runs: list[str]) -> None:
    target, link, pipe = lab.project / "kept.csv", lab.project / "link.csv", lab.project / "pipe"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target.name)
    assert labwright(lab, "export", runs[0], "-o", "link.csv").returncode == 0
    assert link.is_symlink() and len(rows_of(target.read_text())) == POINTS + 3
    assert target.stat().st_mode & 0o777 == 0o600
    (lab.project / "circle").symlink_to("circle")
    circle = labwright(lab, "export", runs[0], "-o", "circle")
    assert circle.returncode == 1 and "symbolic links" in circle.stderr and (lab.project / "circle").is_symlink()
    os.mkfifo(pipe)
    writer = begin(lab, "export", runs[0], "-o", "pipe")
    assert len(rows_of(pipe.read_text())) == POINTS + 3
    writer.communicate(timeout=20)
    assert writer.returncode == 0 and pipe.is_fifo()
    assert len(rows_of(labwright(lab, "export", runs[0], "-o", "/dev/stdout").stdout)) == POINTS + 3


def test_run_without_the_metric_is_named_and_others_are_exported(lab: LiveServer, runs: list[str]) -> None:
    bare = lab.post("/runs", {"command": "true"})["id"]
    called = labwright(lab, "export", bare, runs[0], "--key", "train/loss", "-o", "some.csv")
    assert called.returncode == 1 and f"Run {bare} has no metric 'train/loss'" in called.stderr
    rows = rows_of((lab.project / "some.csv").read_text())
    assert [row["run_id"] for row in rows] == [runs[0]] * POINTS
    assert labwright(lab, "export", bare, "--key", "train/loss", "-o", "none.csv").returncode == 1
    assert not (lab.project / "none.csv").exists()


def test_json_lines_are_valid_json_even_for_nan(lab: LiveServer, runs: list[str]) -> None:
    lines = labwright(lab, "export", runs[0], "--format", "jsonl").stdout.splitlines()
    found = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert len(found) == POINTS + 3
    assert [point["value"] for point in found if point["key"] != "train/loss"] == ["NaN", "Infinity", -0.1]


def test_run_without_metrics_gets_a_hint_about_sources(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})["id"]
    assert "labwright.log()" in labwright(lab, "metrics", run).stdout
    assert labwright(lab, "export", run).stdout == "key,step,time,value,source,attempt\n"


def test_runs_are_compared_by_time_since_their_start(lab: LiveServer, runs: list[str]) -> None:
    shown = labwright(lab, "compare", *runs, "--key", "train/loss", "--x", "time").stdout
    assert "by time, mean ± std over seeds" in shown
    assert "49m 59s" in shown
    by_epoch = labwright(lab, "compare", *runs, "--key", "train/loss", "--x", "epoch")
    assert by_epoch.returncode == 1 and "x=step" in by_epoch.stderr


def test_curve_by_time_follows_the_clock_not_the_step_order(lab: LiveServer) -> None:
    run = lab.post("/runs", {"command": "true"})["id"]
    moments = [f"2026-01-02T03:{minute:02}:05.5Z" for minute in range(20)]
    given = [("forth", 1, moments), ("back", -1, moments), ("seconds", 1, [1e9 + 60 * at for at in range(20)])]
    for key, sign, times in given:
        points = [{"key": key, "step": sign * at, "value": at % 7, "time": time} for at, time in enumerate(times)]
        send(lab, run, points)
    wait_until(lambda: len(lab.run(run)["summary"]) == 3, "the points")
    shown = [labwright(lab, "metrics", run, "--key", key, "--x", "time").stdout for key, _, _ in given]
    curves = ["\n".join(line for line in text.splitlines() if set("┤│└") & set(line)) for text in shown]
    assert curves[0] and curves[0] == curves[1] == curves[2]
