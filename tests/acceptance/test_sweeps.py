"""Sweeps on a real server: from one request to ended runs and their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_server import LiveServer
from tests.support.sweeping import METRIC, gate, logs, make_sweep, runs_of, sweep_server, sweep_when
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with sweep_server(tmp_path_factory.mktemp("sweeps")) as server:
        yield server


def test_grid_with_seeds_ends_by_itself_with_mean_and_spread(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=logs("{a} + 0.1 * {seed}"), parameters={"a": [3, 1, 2], "b": ["x y"]}, seeds=3)
    assert made["progress"]["total"] == 9
    done = sweep_when(lab, made["id"], "completed")
    assert done["progress"] == {**dict.fromkeys(done["progress"], 0), "total": 9, "finished": 9}
    assert done["best"]["params"] == {"a": 1, "b": "x y"}
    assert (done["best"]["mean"], done["best"]["std"]) == (pytest.approx(1.1), pytest.approx(0.1))
    assert done["best"]["n"] == 3
    table = lab.get(f"/sweeps/{made['id']}/results")
    assert [(row["params"]["a"], row["n"]) for row in table["configurations"]] == [(1, 3), (2, 3), (3, 3)]
    assert table["verdict"]["kind"] == "clear"
    assert [best for _, best in table["best_so_far"]][-1] == pytest.approx(1.1)
    best = lab.run(done["best"]["run_id"])
    assert best["config_hash"] == done["best"]["config_hash"]
    assert best["command"].endswith("--b 'x y'")
    assert {run["seed"] for run in runs_of(lab, made["id"])} == {0, 1, 2}


def test_seeds_can_be_a_parameter_even_the_only_one(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=logs("{a} + 0.1 * {seed}"), parameters={"a": [1, 2], "seed": [4, 5, 6]})
    assert (made["parameters"], made["seeds"], made["progress"]["total"]) == ({"a": [1, 2]}, [4, 5, 6], 6)
    alone = make_sweep(lab, base_command=logs("{seed}"), parameters={"seed": {"min": 1, "max": 3, "int": True}})
    assert alone["seeds"] == [1, 2, 3]
    best, only = (sweep_when(lab, one["id"], "completed")["best"] for one in (made, alone))
    assert (best["params"], best["n"], best["mean"]) == ({"a": 1}, 3, pytest.approx(1.5))
    assert (only["params"], only["n"], only["mean"]) == ({}, 3, pytest.approx(2))
    assert lab.post(f"/sweeps/{alone['id']}/extend", {"seeds": [3, 4]})["added"] == 1


def test_difference_within_seed_noise_is_reported_as_such(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=logs("{a} * 0.01 + {seed}"), parameters={"a": [1, 2]}, seeds=3)
    sweep_when(lab, made["id"], "completed")
    found = lab.get(f"/sweeps/{made['id']}/results")["verdict"]
    assert found["kind"] == "within_noise"
    assert "within the noise between seeds" in found["text"]


def test_draft_waits_for_start_and_its_events_are_complete(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command="true", parameters={"a": [1, 2]}, auto_start=False)
    assert (made["status"], made["progress"]["ready"]) == ("draft", 2)
    assert lab.post(f"/sweeps/{made['id']}/start")["status"] == "running"
    sweep_when(lab, made["id"], "completed")
    told = [e for e in lab.get("/events?limit=5000") if e["sweep_id"] == made["id"] and e["type"].startswith("sweep.")]
    assert [e["data"].get("to", "created") for e in told if e["type"] != "sweep.updated"] == [
        "created",
        "running",
        "completed",
    ]
    assert lab.call("POST", f"/sweeps/{made['id']}/start").status == 409


def test_same_key_makes_one_sweep(lab: LiveServer) -> None:
    body = {"name": "once", "base_command": "true --once", "parameters": {"a": [1, 2]}}
    first, second = (lab.call("POST", "/sweeps", body, headers={"Idempotency-Key": "k1"}).json for _ in range(2))
    assert first["id"] == second["id"]
    assert second["progress"]["total"] == 2


def test_parameter_text_never_becomes_a_command(lab: LiveServer) -> None:
    nasty = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "it's"]
    made = make_sweep(lab, base_command='printf "%s" "{text}" {text}', parameters={"text": nasty}, metric=None)
    sweep_when(lab, made["id"], "completed")
    assert sorted(lab.output(run["id"]) for run in runs_of(lab, made["id"])) == sorted(text * 2 for text in nasty)
    assert not (lab.project / "pwned").exists()


def test_random_search_repeats_for_the_same_seed_without_duplicates(lab: LiveServer) -> None:
    space = {"lr": {"min": 1e-5, "max": 0.1, "log": True}, "units": {"min": 1, "max": 64, "int": True}}
    wanted = {"method": "random", "max_runs": 12, "sampling_seed": 5, "auto_start": False}
    sets = []
    for _ in range(2):
        made = make_sweep(lab, base_command="true", parameters=space, again=True, **wanted)
        sets.append([json.dumps(run["params"]) for run in runs_of(lab, made["id"])])
    assert sets[0] == sets[1]
    assert len(set(sets[0])) == 12


def test_pause_holds_runs_that_have_not_started_and_resume_releases_them(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=f"{gate(lab, 'pause')}; true", parameters={"a": [1, 2, 3]}, parallel=1)
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["running"] == 1, "the first to run")
    assert lab.post(f"/sweeps/{made['id']}/pause")["status"] == "paused"
    (lab.project / "pause").touch()
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["finished"] == 1, "the first to end")
    lab.wait_for_end(lab.submit("true")["id"])  # the scheduler had its chance
    assert lab.get(f"/sweeps/{made['id']}")["progress"]["queued"] == 2
    lab.post(f"/sweeps/{made['id']}/resume")
    assert sweep_when(lab, made["id"], "completed")["progress"]["finished"] == 3


def test_stop_ends_every_run_and_nothing_joins_later(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=": {a}; sleep 100", parameters={"a": list(range(20))}, parallel=2)
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["running"] == 2, "two to run")
    assert lab.post(f"/sweeps/{made['id']}/stop")["status"] == "stopped"
    wait_until(lambda: lab.get(f"/sweeps/{made['id']}")["progress"]["stopped"] == 20, "all to end")
    assert {run["status_reason"] for run in runs_of(lab, made["id"])} == {"its sweep was stopped"}
    assert lab.call("POST", "/runs", {"command": "true", "sweep_id": made["id"]}).status == 409
    refused = lab.call("POST", f"/runs/{runs_of(lab, made['id'])[0]['id']}/rerun")
    assert (refused.status, refused.json["error"]["hint"].split(" without ")[0]) == (409, "Submit the run")
    more = {"parameters": {"a": [99]}}
    for verb, body in (("stop", None), ("start", None), ("resume", None), ("retry-failed", None), ("extend", more)):
        assert lab.call("POST", f"/sweeps/{made['id']}/{verb}", body).status == 409, verb
    assert lab.get(f"/sweeps/{made['id']}")["status"] == "stopped"


def test_retry_failed_repeats_only_failed_runs(lab: LiveServer) -> None:
    command = f"test {{a}} != 2 -o -e '{lab.project}/mended' && {logs('{a}')}"
    made = make_sweep(lab, base_command=command, parameters={"a": [1, 2, 3]}, seeds=2)
    done = sweep_when(lab, made["id"], "completed")
    assert (done["progress"]["finished"], done["progress"]["failed"]) == (4, 2)
    assert (done["status_reason"], done["to_retry"]) == ("2 failed", 2)
    (lab.project / "mended").touch()
    retried = lab.post(f"/sweeps/{made['id']}/retry-failed")
    assert (retried["added"], retried["status"], retried["to_retry"]) == (2, "running", 0)
    done = sweep_when(lab, made["id"], "completed")
    assert (done["progress"]["total"], done["progress"]["finished"], done["status_reason"]) == (8, 6, "")
    rows = lab.get(f"/sweeps/{made['id']}/results")["configurations"]
    assert [(row["params"]["a"], row["n"]) for row in rows] == [(1, 2), (2, 2), (3, 2)]
    again = [run for run in runs_of(lab, made["id"]) if run["parent_run_id"]]
    assert {lab.run(run["parent_run_id"])["status"] for run in again} == {"failed"}
    assert lab.call("POST", f"/sweeps/{made['id']}/retry-failed").status == 409


def test_extend_adds_values_and_seeds_without_repeating_done_runs(lab: LiveServer) -> None:
    made = make_sweep(lab, base_command=logs("{a} + 0.1 * {seed}"), parameters={"a": [1, 2]}, seeds=1)
    sweep_when(lab, made["id"], "completed")
    before = {run["id"] for run in runs_of(lab, made["id"])}
    grown = lab.post(f"/sweeps/{made['id']}/extend", {"parameters": {"a": [2, 3]}, "seeds": 2})
    assert (grown["added"], grown["already"], grown["status"]) == (4, 2, "running")
    done = sweep_when(lab, made["id"], "completed")
    assert done["progress"]["finished"] == 6
    assert before < {run["id"] for run in runs_of(lab, made["id"])}
    pairs = [(run["params"]["a"], run["seed"]) for run in runs_of(lab, made["id"])]
    assert sorted(pairs) == [(a, seed) for a in (1, 2, 3) for seed in (0, 1)]
    refused = lab.call("POST", f"/sweeps/{made['id']}/extend", {"parameters": {"a": [1]}})
    assert refused.status == 422
    assert "adds nothing" in refused.json["error"]["message"]
    refused = lab.call("POST", f"/sweeps/{made['id']}/extend", {"parameters": {"a": [4, "five"]}})
    assert (refused.status, refused.json["error"]["message"]) == (422, 'a has numbers, but "five" is not a number.')


def test_adaptive_search_comes_close_to_a_known_optimum(lab: LiveServer) -> None:
    made = make_sweep(
        lab,
        base_command=logs("1 + ({x} - 2) ^ 2 + ({y} + 1) ^ 2"),
        parameters={"x": {"min": -5, "max": 5}, "y": {"min": -5, "max": 5}},
        method="adaptive",
        max_runs=40,
        parallel=2,
        sampling_seed=3,
    )
    done = sweep_when(lab, made["id"], "completed", timeout=120)
    assert done["progress"]["finished"] == 40
    assert len({run["config_hash"] for run in runs_of(lab, made["id"])}) == 40
    assert 1 <= done["best"]["mean"] < 1.3
    shares = lab.get(f"/sweeps/{made['id']}/results")["importance"]["parameters"]
    assert set(shares) == {"x", "y"}


def test_adaptive_sweep_ends_when_its_whole_space_was_tried(lab: LiveServer) -> None:
    made = make_sweep(
        lab, base_command=logs("{a}"), parameters={"a": [1, 2, 3]}, method="adaptive", max_runs=30, parallel=1
    )
    assert sweep_when(lab, made["id"], "completed")["progress"]["total"] == 3


def test_range_refuses_single_values_with_a_hint(lab: LiveServer) -> None:
    stepped = {"n": {"min": 1, "max": 3, "step": 2, "int": True}}
    wanted = {"name": "steps", "base_command": "true", "parameters": stepped, "metric": METRIC}
    made = lab.post("/sweeps", wanted)["id"]
    error = lab.call("POST", f"/sweeps/{made}/extend", {"parameters": {"n": [9]}}).json["error"]
    assert "n is a range" in error["message"] and "Single values" in error["message"]
    assert '{"parameters": {"n": {"max": …}}}' in error["hint"] and "new sweep" in error["hint"]
    assert lab.post(f"/sweeps/{made}/extend", {"parameters": {"n": {"max": 5}}})["added"] == 1


def test_parameter_named_like_a_column_keeps_its_name(lab: LiveServer) -> None:
    sweep = lab.post("/sweeps/wild", {"name": "names", "metric": METRIC})["id"]
    command = logs("1").replace("{{", "{").replace("}}", "}")
    lab.wait_for_end(lab.submit(command, sweep_id=sweep, params={"n": 7})["id"])
    header, row = lab.call("GET", f"/sweeps/{sweep}/results/export").body.decode().splitlines()
    assert header == "trial,n,mean,std,sweep.n,config_hash,run_ids"
    assert row.split(",")[1] == "7" and row.split(",")[4] == "1"


def test_wild_sweep_has_the_same_views(lab: LiveServer) -> None:
    sweep = lab.post("/sweeps/wild", {"name": "wild", "goal": "g", "metric": METRIC})
    for lr, seed in ((1, 0), (1, 1), (2, 0), (2, 1)):
        command = logs(f"{lr} + 0.01 * {seed}").replace("{{", "{").replace("}}", "}")
        run = lab.submit(command, sweep_id=sweep["id"], params={"lr": lr, "seed": seed}, seed=seed)
        lab.wait_for_end(run["id"])
    table = lab.get(f"/sweeps/{sweep['id']}/results")
    assert [(row["params"], row["n"]) for row in table["configurations"]] == [({"lr": 1}, 2), ({"lr": 2}, 2)]
    assert lab.get(f"/sweeps/{sweep['id']}")["best"]["params"] == {"lr": 1}
    other = lab.get(f"/sweeps/{sweep['id']}/results?goal=max")
    assert other["best"]["params"] == {"lr": 2}
    lines = lab.call("GET", f"/sweeps/{sweep['id']}/results/export").body.decode().splitlines()
    assert lines[0] == "trial,lr,mean,std,n,config_hash,run_ids"
    assert len(lines) == 3
    plain = lab.post("/sweeps/wild", {"name": "plain", "goal": ""})
    refused = lab.call("GET", f"/sweeps/{plain['id']}/results")
    assert refused.status == 422
    assert "key=" in refused.json["error"]["hint"]


def test_secrets_of_a_sweep_reach_its_runs_and_are_removed_at_its_end(lab: LiveServer) -> None:
    made = make_sweep(
        lab, base_command=": {a}; echo $HF_TOKEN", parameters={"a": [1, 2]}, env={"HF_TOKEN": "s3cret"}, metric=None
    )
    assert (lab.state / "secrets" / f"{made['id']}.json").exists() or made["status"] == "completed"
    sweep_when(lab, made["id"], "completed")
    assert all(lab.output(run["id"]) == "s3cret\n" for run in runs_of(lab, made["id"]))
    wait_until(lambda: not (lab.state / "secrets" / f"{made['id']}.json").exists(), "the secrets to be gone")
    assert b"s3cret" not in (lab.state / "sweeps" / f"{made['id']}.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"method": "magic"}, ["method"]),
        ({"parameters": {"lr": []}}, ["parameters", "lr"]),
        ({"parameters": {"lr": {"min": 2, "max": 1}}}, ["parameters", "lr", "min"]),
        ({"parameters": {f"p{n}": list(range(10)) for n in range(7)}}, ["parameters"]),
        ({"parameters": {"lr": [1, 2, 3]}, "max_runs": 2}, ["max_runs"]),
        ({"base_command": "train {lrr}"}, ["base_command"]),
        ({"base_command": " "}, ["base_command"]),
        ({"method": "random"}, ["max_runs"]),
        ({"method": "adaptive", "max_runs": 3, "metric": None}, ["method"]),
        ({"early_stop": {"method": "median"}, "metric": None}, ["early_stop"]),
        ({"budget": {"runs": 0}}, ["budget", "runs"]),
        ({"seeds": 3, "parameters": {"seed": [1]}}, ["parameters", "seed"]),
        ({"parameters": {"seed": [1, "two"]}}, ["parameters", "seed"]),
        ({"parameters": {"a": [1, 2], "seed": {"values": [1, 2], "when": {"a": 1}}}}, ["parameters", "seed"]),
        ({"method": "adaptive", "max_runs": 3, "parameters": {"seed": [1, 2]}}, ["parameters"]),
        ({"unknown": 1}, ["unknown"]),
        ({"workdir": "/nowhere"}, ["workdir"]),
        ({"slurm": {"extra": ["--array=1-3"]}}, ["slurm", "extra"]),
    ],
)
def test_invalid_sweep_is_refused_with_its_location_and_creates_nothing(
    lab: LiveServer, change: dict[str, Any], field: list[str]
) -> None:
    before = len(lab.get("/sweeps?limit=1000"))
    body = {"name": "bad", "base_command": "train", "parameters": {"lr": [1]}, "metric": METRIC, **change}
    refused = lab.call("POST", "/sweeps", body)
    assert refused.status == 422, refused.body
    assert refused.json["error"]["field"] == field
    assert refused.json["error"]["hint"]
    assert len(lab.get("/sweeps?limit=1000")) == before


def test_work_done_by_another_sweep_is_repeated_only_on_request(lab: LiveServer) -> None:
    wanted = {"base_command": "true --again", "parameters": {"a": [1, 2]}, "auto_start": False}
    first = make_sweep(lab, **wanted)
    assert first["warnings"] == []
    refused = lab.call("POST", "/sweeps", {"name": "the same", **wanted})
    assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
    assert first["id"] in refused.json["error"]["message"] and "--again" in refused.json["error"]["hint"]
    assert [sweep["id"] for sweep in lab.get("/sweeps") if sweep["base_command"] == "true --again"] == [first["id"]]
    in_part = make_sweep(lab, **{**wanted, "parameters": {"a": [2, 3]}})
    assert f"1 of its 2 runs are already in {first['id']}" in in_part["warnings"][-1]
    assert make_sweep(lab, **wanted, env={"DATA": "other"})["warnings"] == []
    assert len(runs_of(lab, make_sweep(lab, **wanted, again=True)["id"])) == 2


def test_failed_work_or_other_code_can_be_tried_again(lab: LiveServer) -> None:
    wanted = {"base_command": "false --again", "parameters": {"a": [1, 2]}}
    sweep_when(lab, make_sweep(lab, **wanted)["id"], "completed")
    assert make_sweep(lab, **wanted, auto_start=False)["warnings"] == []
    (lab.project / "code.py").write_text("changed")
    assert "2 of its 2 runs are already in" in make_sweep(lab, **wanted, auto_start=False)["warnings"][-1]


def test_existing_equal_run_of_a_wild_sweep_is_named(lab: LiveServer) -> None:
    wild = lab.post("/sweeps/wild", {"name": "w", "goal": ""})["id"]
    run = {"command": "true", "sweep_id": wild, "params": {"a": 1}, "seed": 0}
    once = lab.post("/runs", run)
    assert once["warnings"] == []
    assert once["id"] in lab.post("/runs", run)["warnings"][-1]
    assert lab.post("/runs", {**run, "seed": 1})["warnings"] == []


@pytest.mark.parametrize("asked", ["", "?key=", "?goal=min"])
@pytest.mark.parametrize("what", ["results", "results/export"])
def test_results_without_a_metric_are_refused_with_a_hint(lab: LiveServer, what: str, asked: str) -> None:
    sweep = lab.post(
        "/sweeps", {"name": "unmeasured", "base_command": "true", "parameters": {"lr": [1, 2]}, "again": True}
    )
    answer = lab.call("GET", f"/sweeps/{sweep['id']}/{what}{asked}")
    assert answer.status == 422 and "Choose one with key=" in answer.json["error"]["hint"]
