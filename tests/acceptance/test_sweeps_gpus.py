"""Sweeps on a machine with four simulated cards: parallel runs, costs and order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.domain.clock import epoch_seconds
from labwright.sim.gpus import SimulatedGpus
from tests.support.live_server import ENDED, LiveServer
from tests.support.sweeping import alerts_of, gate, make_sweep, runs_of, sweep_when
from tests.support.waiting import wait_until

COUNT = (
    "exec 9>lock; flock 9; n=$(($(cat n 2>/dev/null || echo 0)+1)); echo $n > n; echo $n {a} >> seen; flock -u 9;"
    " sleep 0.1; flock 9; echo $(($(cat n)-1)) > n"
)


@pytest.fixture
def four_cards(make_server: Callable[..., LiveServer], tmp_path: Path) -> LiveServer:
    cards = SimulatedGpus.create(tmp_path / "sim", 4)
    return make_server(**cards.environment(os.environ)).start()


def test_three_runs_at_once_on_four_cards_without_idle_slots(four_cards: LiveServer) -> None:
    """The runs count themselves in a locked file; the server's events are checked too."""
    made = make_sweep(
        four_cards, base_command=COUNT, parameters={"a": list(range(50))}, parallel=3, metric=None, gpus=1
    )
    assert sweep_when(four_cards, made["id"], "completed", timeout=120)["progress"]["finished"] == 50
    seen = [int(line.split()[0]) for line in (four_cards.project / "seen").read_text().splitlines()]
    assert max(seen) <= 3
    assert {len(run["gpu_uuids"]) for run in runs_of(four_cards, made["id"])} == {1}
    active, full = busy_share(four_cards, made["id"], 3)
    assert active == 3
    assert full > 0.8


def busy_share(server: LiveServer, sweep_id: str, wanted: int) -> tuple[int, float]:
    """Return the highest number of active runs, and the share of time with that number while others waited."""
    moves = [
        (epoch_seconds(event["time"]), event["data"]["to"])
        for event in server.get("/events?limit=5000&types=run.status")
        if event["sweep_id"] == sweep_id
    ]
    active, most, launched, full, at = 0, 0, 0, 0.0, 0.0
    begin = moves[0][0]
    for time, to in moves:
        full += time - at if active == wanted else 0.0
        at = time
        launched += to == "launching"
        active += (to == "launching") - (to in ENDED)
        most = max(most, active)
        if launched == 50:
            break
    return most, full / (at - begin)


def test_budget_in_gpu_hours_counts_cards_and_reserved_time(four_cards: LiveServer) -> None:
    made = make_sweep(
        four_cards,
        base_command=": {a}; sleep 0.5",
        parameters={"a": list(range(40))},
        gpus=2,
        budget={"gpu_hours": 6 / 3600},
        time_limit_seconds=1.5,
        metric=None,
    )
    held = sweep_when(four_cards, made["id"], "paused")
    assert "GPU-hours" in held["status_reason"]
    wait_until(lambda: four_cards.get(f"/sweeps/{made['id']}")["progress"]["running"] == 0, "the last to end")
    runs = [run for run in runs_of(four_cards, made["id"]) if run["started_at"]]
    used = sum(2 * (epoch_seconds(run["ended_at"]) - epoch_seconds(run["started_at"])) for run in runs)
    assert 1 <= len(runs) < 40
    assert used <= 6
    assert alerts_of(four_cards, made["id"])[0]["rule"] == "sweep_budget:gpu_hours"


def test_two_sweeps_share_the_cards_fairly(four_cards: LiveServer) -> None:
    wait = gate(four_cards, "fair")
    holders = [four_cards.submit(wait, gpus=1)["id"] for _ in range(4)]
    for holder in holders:
        four_cards.wait_for_status(holder, "running")
    early, late = (
        make_sweep(four_cards, base_command=COUNT, parameters={"a": [name + str(n) for n in range(12)]}, metric=None)
        for name in ("early", "late")
    )
    (four_cards.project / "fair").touch()
    for sweep in (early, late):
        sweep_when(four_cards, sweep["id"], "completed")
    began = [line.split()[1][0] for line in (four_cards.project / "seen").read_text().splitlines()]
    assert abs(began[:12].count("e") - 6) <= 2, began
