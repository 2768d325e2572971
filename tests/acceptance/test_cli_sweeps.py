"""`labwright sweep` as people use it: files, errors with line numbers, and results."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_cli import answer, labwright
from tests.support.live_server import LiveServer
from tests.support.sweeping import sweep_when

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("cli-sweeps") / "project"
    shutil.copytree(EXAMPLE, project)
    server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="4").start()
    yield server
    server.stop()


def test_example_runs_to_its_end_and_shows_results(lab: LiveServer) -> None:
    done = labwright(lab, "sweep", "grid.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    for words in ("completed", "27 finished", "Best by mean loss", "± STD", "Parameter importance", "Verdict", "noise"):
        assert words in done.stdout, done.stdout
    assert "\x1b" not in done.stdout
    table = labwright(lab, "sweep", "show", "optimizers", "--export", "csv").stdout.splitlines()
    assert table[0] == "trial,lr,optimizer,momentum,mean,std,n,config_hash,run_ids"
    assert len(table) == 10
    assert "optimizers" in labwright(lab, "sweep", "list").stdout


def test_too_many_seeds_are_refused_and_the_option_is_named(lab: LiveServer) -> None:
    space = "method: random\nmax_runs: 2\nseeds: 1\nparameters: {a: {min: 0, max: 1}}\n"
    (lab.project / "few.yaml").write_text(f"name: few\nbase_command: echo {{a}}\n{space}")
    labwright(lab, "sweep", "few.yaml", "--wait")
    assert "hint: Raise it with --max-runs 4" in labwright(lab, "sweep", "extend", "few", "--seeds", "2").stderr
    assert "2 runs added" in labwright(lab, "sweep", "extend", "few", "--seeds", "2", "--max-runs", "4").stdout


def test_adaptive_example_keeps_its_best_and_draws_a_picture(lab: LiveServer) -> None:
    found = answer(lab, "sweep", "run", "adaptive.yaml", "--wait", "--json")
    assert (found["status"], found["progress"]["total"]) == ("completed", 40)
    shown = labwright(lab, "sweep", "show", found["id"])
    assert "so far, by finished configurations" in shown.stdout
    assert "┤" in shown.stdout
    assert answer(lab, "sweep", "show", found["id"], "--json")["results"]["total"] == 40


def test_sweep_can_be_paused_resumed_and_stopped(lab: LiveServer) -> None:
    (lab.project / "verbs.yaml").write_text("base_command: 'test {a} = 1 -o -e mended'\nparameters:\n  a: [1, 2]\n")
    made = answer(lab, "sweep", "verbs.yaml", "--no-start", "--name", "verbs", "--json")
    assert made["status"] == "draft"
    assert answer(lab, "sweep", "start", "verbs", "--json")["status"] == "running"
    assert sweep_when(lab, made["id"], "completed")["progress"]["failed"] == 1
    (lab.project / "mended").touch()
    assert "1 run added" in labwright(lab, "sweep", "retry-failed", "verbs").stdout
    sweep_when(lab, made["id"], "completed")
    extended = labwright(lab, "sweep", "extend", "verbs", "--add", "a=2,3").stdout
    assert "1 run added, 2 already exist" in extended
    sweep_when(lab, made["id"], "completed")
    refused = labwright(lab, "sweep", "pause", "verbs")
    assert refused.returncode == 1
    assert "completed" in refused.stderr


GOOD = "base_command: train\nparameters:\n  lr: [1, 2]\n"
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("- a\n- b\n", 1, "no fields"),
        ("base_command: x\nparameters: &a\n  lr: *a\n", 3, "alias"),
        ("base_command: x\nmethod: magic\nparameters: {lr: [1]}\n", 2, "'grid', 'random' or 'adaptive'"),
        ("base_command: x\nparameters:\n  a: [1]\n  lr: []\n", 4, "empty list"),
        ("base_command: x\nparameters:\n  lr:\n    max: 1\n    min: 2\n", 5, "min must be less than max"),
        (f"base_command: x\nparameters:\n{''.join(f'  p{n}: {TEN}{chr(10)}' for n in range(7))}", 2, "10,000,000 runs"),
        ("name: n\nparameters: {lr: [1]}\nbase_command: train {lrr}\n", 3, "does not match a parameter"),
        (f"{GOOD}learning: 3\n", 4, "learning is not known"),
        (f"{GOOD}paralel: 3\n", 4, "Did you mean parallel?"),
        ("base_comand: x\nparameters: {lr: [1]}\n", 1, "base_comand is not known.\nhint: Did you mean base_command?"),
        (f"{GOOD}early_stop:\n  metod: median\n", 5, "Did you mean method?"),
        (f"{GOOD}parallel: many\n", 4, "parallel must be a whole number"),
        (f"{GOOD}seeds: three\n", 4, "seeds must be a whole number or a list"),
        ("base_command: x\nparameters: 3\n", 2, "parameters must be an object with fields"),
        (f"{GOOD}metric: loss\n", 4, "metric must be an object with fields.\nhint: Fields of metric: key, goal"),
        (f"{GOOD}budget:\n  runs: -1\n", 5, "budget.runs must be 1 or more"),
        ("base_command: x\nparameters:\n\tlr: [1]\n", 3, "spaces to indent"),
        ("base_command: x\nparameters:\n  lr: [1\n", 4, "brackets"),
        (f"{GOOD}  lr: [3]\n", 4, "twice"),
        ("base_command: x\nparameters:\n  lr: {min: 0, max: 1}\n", 3, "step or count"),
        ("parameters:\n  lr: [1]\n", 1, "base_command"),
        (
            f"{GOOD}paralel: 3\nbudget:\n  runs: -1\nmetod: grid\n",
            4,
            "paralel is not known; line 7: metod is not known; line 6: budget.runs must be 1 or more.",
        ),
        ("base_command: x\nparameters:\n  lr:\n    max: 1\n    min: .nan\n", 5, "hint: Use a finite number"),
        (f"{GOOD}workdir: nowhere\n", 4, "does not exist"),
        (f"{GOOD}slurm:\n  extra: [--array=1-3]\n", 5, "as Labwright sets --array"),
    ],
)
def test_bad_file_is_refused_with_line_and_hint(lab: LiveServer, text: str, line: int, words: str) -> None:
    (lab.project / "bad.yaml").write_text(text)
    before = len(lab.get("/sweeps?limit=1000"))
    refused = labwright(lab, "sweep", "bad.yaml")
    assert refused.returncode == 1, refused.stdout
    assert f"bad.yaml, line {line}:" in refused.stderr
    assert words in refused.stderr
    assert "hint:" in refused.stderr
    assert len(lab.get("/sweeps?limit=1000")) == before


def test_file_that_is_not_utf_8_is_refused_with_the_line(lab: LiveServer) -> None:
    (lab.project / "latin.yaml").write_bytes(GOOD.encode() + "goal: café\n".encode("latin-1"))
    refused = labwright(lab, "sweep", "latin.yaml")
    assert "latin.yaml, line 4:" in refused.stderr
    assert "UTF-8" in refused.stderr


def test_missing_file_is_reported(lab: LiveServer) -> None:
    refused = labwright(lab, "sweep", "nowhere.yaml")
    assert refused.returncode == 1
    assert "cannot be read" in refused.stderr


def test_numbers_and_words_mean_what_they_look_like(lab: LiveServer) -> None:
    (lab.project / "values.yaml").write_text(
        "base_command: 'true'\nparameters:\n  lr: [1e-4, 0.1, .5]\n  word: ['1', on, 2024-01-01, true, null]\n"
    )
    made = answer(lab, "sweep", "values.yaml", "--no-start", "--json")
    assert made["parameters"] == {"lr": [0.0001, 0.1, 0.5], "word": ["1", "on", "2024-01-01", True, None]}
