"""A live server in a copy of an example project, and the way of a plan through it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.support.environments import make_environment
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = "degree 1 and 3, max_steps 20, lowest test_mse"  # of the bare script: two runs, and the baseline
Json = dict[str, Any]


def planning_server(folder: Path, name: str = "bare-script") -> LiveServer:
    """Not started yet. The bare script needs nothing but Python; the others have an environment of their own."""
    project = folder / "project"
    shutil.copytree(EXAMPLES / name, project, ignore=shutil.ignore_patterns(".labwright", "__pycache__"))
    if name != "bare-script":
        make_environment(project)
    return LiveServer(project, LABWRIGHT_MAX_PARALLEL="2")


def ask(server: LiveServer, goal: str = QUICK, **wanted: Any) -> str:
    body = {"title": "t", "goal": goal, "compile": {"rehearsal": False, **wanted}}
    return str(server.post("/plans", body)["id"])


def at_rest(server: LiveServer, plan_id: str) -> Json:
    """The plan once nobody is at work on it."""

    def look() -> Json | None:
        plan: Json = server.get(f"/plans/{plan_id}")
        return None if plan["compiling_by"] else plan

    return wait_until(look, f"{plan_id} to be compiled", 60)


def compiled(server: LiveServer, goal: str = QUICK, **wanted: Any) -> Json:
    plan = at_rest(server, ask(server, goal, **wanted))
    assert plan["planning"]["status"] == "waiting_for_review", plan["planning"]
    return plan


def validated(server: LiveServer, plan_id: str) -> Json:
    answer = server.call("POST", f"/plans/{plan_id}/validate", {"rehearsal": False})
    assert answer.status == 202, answer.body
    return at_rest(server, plan_id)


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


def told(server: LiveServer, plan_id: str, kind: str) -> list[Json]:
    """What events say of it, oldest first."""
    found = server.get(f"/events?types={kind}&limit=5000")
    return [event["data"] for event in found if event["data"]["plan_id"] == plan_id]


def started(server: LiveServer, plan_id: str) -> list[str]:
    return [fact["node"] for fact in told(server, plan_id, "plan.node") if fact["status"] == "started"]
