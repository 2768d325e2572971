"""Any order of verbs on plans, made up by Hypothesis, against a live server that is killed in between.

What must hold: a plan only moves along the table of moves; nothing runs that a person did not approve as it is; what
was approved is these bytes, so that any change takes it back; a verb is refused with 409 or carried out.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from labwright.domain.plan import MOVES, PlanStatus
from tests.support.live_server import LiveServer
from tests.support.planning import planning_server, request_plan, when_idle
from tests.support.state_machine import run_machine
from tests.support.waiting import wait_until

GOALS = ("degree 1, max_steps 20, lowest test_mse", "degree 1 and 3, max_steps 20, lowest test_mse")
CODE = "src/experiment/workflow.py"
MOST_KILLS = 2
MOST_PLANS = 2  # each is compiled and checked for real


class Plans(RuleBasedStateMachine):
    plans = Bundle("plans")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="labwright-plans-"))
        self.server: LiveServer = planning_server(self.folder).start()
        self.made: set[str] = set()
        self.deleted: set[str] = set()
        self.approved: dict[str, str] = {}  # the digest that a person approved last
        self.kills = 0

    def _try(self, plan_id: str, verb: str, body: Any = None, method: str = "POST") -> Any:
        """What was answered where it was carried out; None where it was refused."""
        path = f"/plans/{plan_id}/{verb}" if verb else f"/plans/{plan_id}"
        answer = self.server.call(method, path, body)
        if plan_id in self.deleted:
            assert answer.status == 404, answer.body
        else:
            assert answer.status in (200, 202, 204, 409), (verb, answer.body)
        return None if answer.status >= 400 else (answer.json if answer.body else {})

    @precondition(lambda self: len(self.made) < MOST_PLANS)
    @rule(target=plans, goal=st.sampled_from(GOALS))
    def plan(self, goal: str) -> str:
        plan_id = request_plan(self.server, goal)
        self.made.add(plan_id)
        return plan_id

    @rule(plan_id=plans)
    def wait(self, plan_id: str) -> None:
        if plan_id not in self.deleted:
            when_idle(self.server, plan_id)

    @rule(plan_id=plans, right=st.booleans())
    def approve(self, plan_id: str, right: bool) -> None:
        seen = self.server.call("GET", f"/plans/{plan_id}/workspace")
        digest = seen.json["digest"] if seen.status == 200 and right else "0" * 64
        done = self._try(plan_id, "approve", {"digest": digest})
        if done is not None:
            assert right, "bytes that nobody saw were approved"
            self.approved[plan_id] = digest

    @rule(plan_id=plans)
    def reject(self, plan_id: str) -> None:
        if self._try(plan_id, "review", {"approved": False, "reason": "not like this"}) is not None:
            self.approved.pop(plan_id, None)

    @rule(plan_id=plans)
    def edit_code(self, plan_id: str) -> None:
        seen = self.server.call("GET", f"/plans/{plan_id}/workspace/files/{CODE}")
        if seen.status == 200:
            body = {"content": seen.json["content"] + "\n# looked at\n"}
            if self._try(plan_id, f"workspace/files/{CODE}", body, "PUT") is not None:
                self.approved.pop(plan_id, None)

    @rule(plan_id=plans)
    def validate(self, plan_id: str) -> None:
        self._try(plan_id, "validate", {"rehearsal": False})

    @rule(plan_id=plans, verb=st.sampled_from(["execute", "execute", "stop"]))
    def run(self, plan_id: str, verb: str) -> None:
        done = self._try(plan_id, verb)
        assert done is None or verb == "stop" or plan_id in self.approved, "it runs, and nobody approved it"

    @rule(plan_id=plans)
    def archive(self, plan_id: str) -> None:
        self._try(plan_id, "archive")

    @rule(plan_id=plans)
    def delete(self, plan_id: str) -> None:
        if self._try(plan_id, "", method="DELETE") is not None:
            self.deleted.add(plan_id)

    @precondition(lambda self: self.kills < MOST_KILLS and self.made)
    @rule()
    def kill_the_server(self) -> None:
        self.kills += 1
        self.server.restart()

    @invariant()
    def what_is_there_is_what_was_made_and_ready_is_approved(self) -> None:
        found = {plan["id"]: plan for plan in self.server.get("/plans?archived=all")}
        assert set(found) <= self.made and not set(found) & self.deleted
        for plan_id, plan in found.items():
            planning = self.server.get(f"/plans/{plan_id}")["planning"]
            if planning and planning["ready_for_run"]:
                assert planning["approval"]["digest"] == self.approved.get(plan_id), plan

    def teardown(self) -> None:
        for plan_id in self.made - self.deleted:
            self.server.call("POST", f"/plans/{plan_id}/stop")
            wait_until(lambda p=plan_id: self.server.get(f"/plans/{p}")["status"] != "executing", "it to end", 120)
        moves = self.server.get("/events?types=plan.status&limit=5000")
        for run in self.server.all_runs():
            self.server.call("POST", f"/runs/{run['id']}/stop")
        self.server.stop()
        shutil.rmtree(self.folder)
        for event in moves:
            before, after = (PlanStatus(event["data"][name]) for name in ("from", "to"))
            assert after in MOVES[before], event


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_any_order_of_verbs_runs_only_what_was_approved() -> None:
    run_machine(Plans, examples=6, steps=25)
