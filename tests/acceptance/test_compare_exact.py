"""Statistics over many points use all points, not only the drawn ones."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

POINTS = 20_000
SEEDS = 3


def noisy(seed: int) -> list[float]:
    chance = random.Random(seed)
    return [math.exp(-step / 5000) + chance.gauss(0, 0.1) for step in range(POINTS)]


@pytest.fixture(scope="module")
def runs(lab: LiveServer) -> list[str]:
    made = [lab.post("/runs", {"command": "true", "params": {"lr": 0.1}, "seed": seed})["id"] for seed in range(SEEDS)]
    for seed, run_id in enumerate(made):
        send(lab, run_id, noisy(seed))
    return made


def send(lab: LiveServer, run_id: str, values: list[float], every: int = 1) -> None:
    points = [{"key": "loss", "step": i * every, "value": value} for i, value in enumerate(values)]
    for first in range(0, len(points), 5000):
        assert lab.call("POST", f"/runs/{run_id}/metrics", {"points": points[first : first + 5000]}).status == 202

    def all_in() -> bool:
        found = lab.get(f"/runs/{run_id}/metrics?max_points=2")["series"]
        return bool(found) and found[0]["count"] == len(values)

    wait_until(all_in, "all points to be in")


@pytest.mark.parametrize("max_points", [2, 10, 100, 1000, 30_000])
def test_mean_and_deviation_over_seeds_use_all_points(lab: LiveServer, runs: list[str], max_points: int) -> None:
    true = [noisy(seed) for seed in range(SEEDS)]
    found = lab.get(f"/metrics/compare?run_ids={','.join(runs)}&key=loss&max_points={max_points}")["groups"][0]
    assert len(found["steps"]) == min(max_points, POINTS)
    assert (found["steps"][0], found["steps"][-1]) == (0, POINTS - 1)
    for step, mean, std in zip(found["steps"], found["mean"], found["std"], strict=True):
        column = [values[step] for values in true]
        assert mean == pytest.approx(statistics.fmean(column))
        assert std == pytest.approx(statistics.stdev(column))


@pytest.mark.parametrize("max_points", [2, 10, 100, 1000, 6000])
def test_thinned_curve_keeps_its_first_and_last_point(lab: LiveServer, runs: list[str], max_points: int) -> None:
    values = noisy(0)
    found = lab.get(f"/runs/{runs[0]}/metrics?max_points={max_points}")["series"][0]
    assert (found["steps"][0], found["values"][0]) == (0, pytest.approx(values[0]))
    assert (found["steps"][-1], found["values"][-1]) == (POINTS - 1, pytest.approx(values[-1]))
    assert [min(found["values"]), max(found["values"])] == pytest.approx([min(values), max(values)])
    assert len(found["steps"]) <= max_points + 2


def test_run_that_ended_early_does_not_count_beyond_its_end(lab: LiveServer) -> None:
    long, short = (lab.post("/runs", {"command": "true", "params": {"lr": 0.2}, "seed": s})["id"] for s in (1, 2))
    send(lab, long, [1.0] * 100)
    send(lab, short, [3.0] * 10, every=2)  # its last step is 18; the next would be 20
    group = lab.get(f"/metrics/compare?run_ids={long},{short}&key=loss")["groups"][0]
    assert [group["mean"][step] for step in (0, 19, 20, 99)] == [2.0, 2.0, 1.0, 1.0]
    assert [group["counts"][step] for step in (0, 19, 20)] == [2, 2, 1]
    assert [group["std"][step] for step in (0, 20)] == [pytest.approx(2**0.5), None], "one value has no deviation"
