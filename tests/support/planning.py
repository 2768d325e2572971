"""A live server in a copy of an example project, and the steps of a plan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.support.environments import make_environment
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = "degree 1 and 3, max_steps 20, lowest test_mse"  # the bare script: two runs and the baseline
FRAGILE = """
import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
if os.path.exists("no_space") and options.seed == 1:
    raise SystemExit("no space left on device")
if os.path.exists("no_baseline") and options.lr == 0.1:
    raise SystemExit("no node left")
while os.path.exists("hold"):
    time.sleep(0.05)
print(f"loss={options.lr + options.seed / 1000}")
"""
Json = dict[str, Any]


def planning_server(folder: Path, name: str = "bare-script") -> LiveServer:
    """Return a server that is not started yet.

    The bare script needs only Python; the others get their own environment.
    """
    project = folder / "project"
    shutil.copytree(EXAMPLES / name, project, ignore=shutil.ignore_patterns(".labwright", "__pycache__"))
    if name != "bare-script":
        make_environment(project)
    return LiveServer(project, LABWRIGHT_MAX_PARALLEL="2")


def request_plan(server: LiveServer, goal: str = QUICK, **wanted: Any) -> str:
    body = {"title": "t", "goal": goal, "compile": {"rehearsal": False, **wanted}}
    return str(server.post("/plans", body)["id"])


def when_idle(server: LiveServer, plan_id: str) -> Json:
    """Wait until no work is in progress on the plan, and return it."""

    def look() -> Json | None:
        plan: Json = server.get(f"/plans/{plan_id}")
        return None if plan["compiling_by"] else plan

    return wait_until(look, f"{plan_id} to be compiled", 60)


def compiled(server: LiveServer, goal: str = QUICK, **wanted: Any) -> Json:
    plan = when_idle(server, request_plan(server, goal, **wanted))
    assert plan["planning"]["status"] == "waiting_for_review", plan["planning"]
    return plan


def validated(server: LiveServer, plan_id: str) -> Json:
    answer = server.call("POST", f"/plans/{plan_id}/validate", {"rehearsal": False})
    assert answer.status == 202, answer.body
    return when_idle(server, plan_id)


def approved(server: LiveServer, plan_id: str) -> Json:
    digest = server.get(f"/plans/{plan_id}/workspace")["digest"]
    plan: Json = server.post(f"/plans/{plan_id}/approve", {"digest": digest})
    return plan


def execute(server: LiveServer, plan_id: str) -> Json:
    answer = server.call("POST", f"/plans/{plan_id}/execute")
    assert answer.status == 202, answer.body
    plan: Json = answer.json
    return plan


def executed(server: LiveServer, plan_id: str) -> Json:
    def look() -> Json | None:
        plan: Json = server.get(f"/plans/{plan_id}")
        return None if plan["status"] == "executing" else plan

    return wait_until(look, f"{plan_id} to end", 120)


def completed_with_failed_runs(server: LiveServer) -> str:
    """Return a plan with four runs: two of them failed, and would succeed now."""
    (server.project / "fragile.py").write_text(FRAGILE)
    (server.project / "no_space").touch()
    plan_id = str(compiled(server, "lr 0.1 and 0.3 for fragile.py, 2 seeds, lowest loss")["id"])
    approved(server, plan_id)
    execute(server, plan_id)
    assert executed(server, plan_id)["status"] == "completed"
    (server.project / "no_space").unlink()
    return plan_id


def event_data(server: LiveServer, plan_id: str, kind: str) -> list[Json]:
    """Return the data of the plan's events of this kind, oldest first."""
    found = server.get(f"/events?types={kind}&limit=5000")
    return [event["data"] for event in found if event["data"]["plan_id"] == plan_id]


def started(server: LiveServer, plan_id: str) -> list[str]:
    return [fact["node"] for fact in event_data(server, plan_id, "plan.node") if fact["status"] == "started"]
