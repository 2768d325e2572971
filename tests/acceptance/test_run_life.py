"""Any order of verbs on runs, made up by Hypothesis, against a live server that is killed in between.

What must hold: a run only moves along the table of moves, what has ended stays as it ended, no command runs twice, and
a verb is refused with 409 or carried out, never anything else.
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
    consumes,
    invariant,
    precondition,
    rule,
)

from labwright.domain.run import MOVES, RunStatus
from tests.support.live_server import ENDED, LiveServer
from tests.support.state_machine import run_machine
from tests.support.waiting import wait_until

ENDLESS = "sleep 7200"  # only a stop ends it
COMMANDS = {"exit 0": ("finished", 0), "exit 3": ("failed", 3), "sleep 0.2": ("finished", 0), ENDLESS: (None, None)}

MOST_KILLS = 2  # a start takes longer than all else


class Lives(RuleBasedStateMachine):
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="labwright-lives-"))
        self.ran = self.folder / "ran"
        self.ran.mkdir()
        project = self.folder / "project"
        project.mkdir()
        self.server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="2", LABWRIGHT_GRACE_SECONDS="0.5").start()
        self.wanted: dict[str, str] = {}  # the command by run
        self.ended: dict[str, tuple[Any, ...]] = {}
        self.deleted: set[str] = set()
        self.kills = 0

    def _made(self, run: dict[str, Any], command: str) -> str:
        self.wanted[run["id"]] = command
        return str(run["id"])

    @rule(target=runs, command=st.sampled_from(sorted(COMMANDS)), start=st.booleans())
    def submit(self, command: str, start: bool) -> str:
        traced = f'printf x >> "{self.ran}/$LABWRIGHT_RUN_ID"; {command}'
        return self._made(self.server.post("/runs", {"command": traced, "auto_start": start}), command)

    @rule(run_id=runs, verb=st.sampled_from(["start", "stop", "archive", "unarchive"]))
    def ask(self, run_id: str, verb: str) -> None:
        answer = self.server.call("POST", f"/runs/{run_id}/{verb}")
        assert answer.status in ((404,) if run_id in self.deleted else (200, 409)), answer.body

    @rule(target=runs, run_id=runs)
    def rerun(self, run_id: str) -> str:
        answer = self.server.call("POST", f"/runs/{run_id}/rerun", {"auto_start": True})
        if run_id in self.deleted:
            assert answer.status == 404
            return run_id
        assert answer.status == 201, answer.body
        return self._made(answer.json, self.wanted[run_id])

    @rule(run_id=consumes(runs))
    def delete(self, run_id: str) -> None:
        answer = self.server.call("DELETE", f"/runs/{run_id}")
        if run_id in self.deleted:
            assert answer.status == 404
        elif answer.status in (200, 204):
            self.deleted.add(run_id)
        else:
            assert answer.status == 409, answer.body

    @precondition(lambda self: self.kills < MOST_KILLS and self.wanted)
    @rule()
    def kill_the_server(self) -> None:
        self.kills += 1
        self.server.restart()

    @rule(run_id=runs)
    def wait(self, run_id: str) -> None:
        if run_id not in self.deleted and self.wanted[run_id] != ENDLESS:
            self._make_room()
            wait_until(lambda: self.server.run(run_id)["status"] in (*ENDED, "ready"), f"{run_id} to end")

    def _make_room(self) -> None:
        """What never ends may be all that there is room for."""
        for run in self.server.all_runs():
            if self.wanted[run["id"]] == ENDLESS and run["status"] not in (*ENDED, "ready"):
                self.server.call("POST", f"/runs/{run['id']}/stop")

    @invariant()
    def what_is_there_is_what_was_asked_for(self) -> None:
        found = {run["id"]: run for run in self.server.all_runs()}
        assert set(found) == set(self.wanted) - self.deleted
        for run_id, run in found.items():
            if run["status"] in ENDED:
                facts = (run["status"], run["exit_code"], run["ended_at"])
                assert self.ended.setdefault(run_id, facts) == facts
                self._ended_truly(run)

    def _ended_truly(self, run: dict[str, Any]) -> None:
        status, code = COMMANDS[self.wanted[run["id"]]]
        assert run["status"] == "stopped" or (run["status"], run["exit_code"]) == (status, code), run
        traces = self.ran / run["id"]
        assert not traces.exists() or traces.read_text() == "x", "it ran more than once"

    def teardown(self) -> None:
        moves = self.server.get("/events?types=run.status&limit=5000")
        for run in self.server.all_runs():
            if run["status"] not in ENDED:
                self.server.call("POST", f"/runs/{run['id']}/stop")
        wait_until(lambda: all(run["status"] in ENDED for run in self.server.all_runs()), "all to end")
        self.server.stop()
        shutil.rmtree(self.folder)
        for event in moves:
            before, after = (RunStatus(event["data"][name]) for name in ("from", "to"))
            assert after in MOVES[before], event


def test_any_order_of_verbs_leaves_true_runs() -> None:
    run_machine(Lives, examples=1, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_orders_of_verbs_leave_true_runs() -> None:
    run_machine(Lives, examples=30, steps=40)
