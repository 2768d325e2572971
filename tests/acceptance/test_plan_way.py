"""A plan on a live server from goal to report: workspace, review, execution; and kills in between."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.llm.answering import TOOL
from labwright.planning.nodes import NODES
from labwright.sim.slurm import SimulatedSlurm
from tests.acceptance.test_cli import labwright
from tests.conftest import stop_all
from tests.support.live_server import ENDED, LiveServer
from tests.support.model_server import Turn, model_server
from tests.support.planning import (
    EXAMPLES,
    FRAGILE,
    approved,
    compiled,
    completed_with_failed_runs,
    event_data,
    execute,
    executed,
    planning_server,
    request_plan,
    started,
    validated,
    when_idle,
)
from tests.support.waiting import wait_until

MakeServer = Callable[..., LiveServer]
# by example: its README's goal, made small, and how many runs it requests, with the baseline if that is separate
GOALS = {
    "argparse-digits": ("lr 0.03 and 0.3 for train.py, max_steps 20, metric val_acc", 3),
    "bare-script": ("degree 1 and 5, max_steps 20, 2 seeds, lowest test_mse", 4),
    "click-ngrams": ("constant vs linear schedule, steps 20, lowest val_ppl", 2),
    "dataclass-moons": ("features 20 and 40, max_steps 20, lowest val_error", 2),
    "typer-walk": ("with and without double, max_steps 100, highest mean_return", 2),
    "yaml-config": ("compare hidden 4 and 8 by accuracy, max_steps 20", 3),
}

# A script that reports its whole configuration, as the SDK guide shows.
TALKATIVE = """
import argparse

import labwright

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
labwright.init(config={**vars(options), "out": f"runs/{options.lr}-{options.seed}"})
labwright.log({"loss": options.lr + options.seed / 1000}, step=0)
labwright.finish()
"""

_KILLED_IN = ("DraftReportDigest", "GenerateTaskTests", "ValidateWorkspace")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., LiveServer]]:
    """Make servers in copies of examples. They end with all their runs when the test ends."""
    made: list[LiveServer] = []

    def make(name: str = "bare-script") -> LiveServer:
        made.append(planning_server(tmp_path, name))
        return made[-1]

    yield make
    for server in made:
        stop_all(server)
        server.stop()


@pytest.fixture
def server(make: Callable[..., LiveServer]) -> LiveServer:
    return make().start()


@pytest.mark.parametrize("name", GOALS)
def test_example_is_planned_rehearsed_approved_executed_and_reported(
    make: Callable[..., LiveServer], name: str
) -> None:
    goal, runs = GOALS[name]
    server = make(name).start()
    plan = when_idle(server, request_plan(server, goal, rehearsal=True))
    workspace = server.get(f"/plans/{plan['id']}/workspace")
    assert plan["planning"]["validated"], workspace["validation"]
    assert plan["format"]["valid"] and plan["version"] == 2 and plan["raw_markdown"].startswith("## 📋 Plan:")
    plan = approved(server, plan["id"])
    assert (plan["status"], plan["planning"]["ready_for_run"]) == ("approved", True)
    assert plan["planning"]["approval"]["by"] == "person" and not plan["planning"]["approval"]["automatic"]
    execute(server, plan["id"])
    plan = executed(server, plan["id"])
    assert (plan["status"], plan["executed_by"]) == ("completed", "person"), plan["status_reason"]
    assert {step["status"] for step in plan["planning"]["steps"]} == {"finished"}
    (sweep,) = [found for found in server.get("/sweeps") if found["plan_id"] == plan["id"]]
    assert sweep["progress"]["finished"] == sweep["progress"]["total"] == runs
    report = server.get(f"/plans/{plan['id']}/report")
    assert sweep["id"] in report["markdown"] and "**Best:**" in report["markdown"]
    assert any(file["path"].endswith(".svg") for file in report["files"])


def test_reported_configuration_does_not_split_seeds_or_hide_the_baseline(
    make: Callable[..., LiveServer],
) -> None:
    server = make()
    (server.project / "talkative.py").write_text(TALKATIVE)
    plan = compiled(server.start(), "lr 0.1 and 0.3 for talkative.py, 2 seeds, lowest loss")
    approved(server, plan["id"])
    execute(server, plan["id"])
    plan = executed(server, plan["id"])
    assert plan["status"] == "completed", plan["status_reason"]
    report = server.get(f"/plans/{plan['id']}/report")["markdown"]
    assert "**Best:** `lr 0.1` with 0.1005" in report, report
    assert "The baseline itself is the best" in report


def test_executing_a_completed_plan_again_repeats_only_failed_runs(make: MakeServer) -> None:
    server = make().start()
    plan_id = completed_with_failed_runs(server)
    execute(server, plan_id)
    assert executed(server, plan_id)["status"] == "completed"
    sweeps = [found for found in server.get("/sweeps") if found["plan_id"] == plan_id]
    assert sorted(found["progress"]["total"] for found in sweeps) == [2, 4]
    report = server.get(f"/plans/{plan_id}/report")["markdown"]
    assert "- [x] Every run ends" in report and "Failed runs" not in report, report
    refused = server.call("POST", f"/plans/{plan_id}/execute")
    assert refused.status == 409 and b"completed, and none of its runs failed" in refused.body, refused.body


def test_outdated_report_says_so(make: MakeServer) -> None:
    server = make().start()
    plan_id = completed_with_failed_runs(server)
    assert server.get(f"/plans/{plan_id}/report")["since"] == ""
    (sweep,) = [found for found in server.get("/sweeps") if found["plan_id"] == plan_id]
    server.post(f"/sweeps/{sweep['id']}/retry-failed")
    wait_until(lambda: server.get(f"/sweeps/{sweep['id']}")["progress"].get("finished") == 4, "the retries to finish")
    assert "2 runs that had failed have finished" in server.get(f"/plans/{plan_id}/report")["since"]
    said = labwright(server, "plan", "report", plan_id)
    assert said.stderr.startswith("warning: Since it was written") and "Since it" not in said.stdout
    execute(server, plan_id)
    assert executed(server, plan_id)["status"] == "completed"
    report = server.get(f"/plans/{plan_id}/report")
    assert report["since"] == "" and "- [x] Every run ends" in report["markdown"]


def test_report_says_while_another_execution_is_active(make: MakeServer) -> None:
    server = make().start()
    plan_id = completed_with_failed_runs(server)
    (server.project / "hold").touch()
    execute(server, plan_id)
    assert "Another execution goes on" in server.get(f"/plans/{plan_id}/report")["since"]
    (server.project / "hold").unlink()
    executed(server, plan_id)
    assert server.get(f"/plans/{plan_id}/report")["since"] == ""


def test_failed_plan_checked_again_repeats_only_its_failed_runs(make: MakeServer) -> None:
    server = make()
    (server.project / "fragile.py").write_text(FRAGILE)
    plan_id = compiled(server.start(), "lr 0.1 and 0.3 for fragile.py, lowest loss")["id"]
    approved(server, plan_id)
    (server.project / "no_baseline").touch()
    execute(server, plan_id)
    assert executed(server, plan_id)["status"] == "failed"
    (server.project / "no_baseline").unlink()
    assert validated(server, plan_id)["status"] == "approved"
    execute(server, plan_id)
    assert executed(server, plan_id)["status"] == "completed"


def test_stop_and_kills_on_the_way_repeat_and_duplicate_nothing(server: LiveServer) -> None:
    """One plan from goal to end: the server is stopped first, then killed at each step."""
    plan_id = request_plan(server)
    server.stop()
    server.start()
    for node in _KILLED_IN:
        wait_until(lambda node=node: node in started(server, plan_id), f"{node} to be under way")  # type: ignore[misc]
        server.restart()
    plan = when_idle(server, plan_id)
    assert plan["planning"]["validated"], server.get(f"/plans/{plan_id}/workspace")["validation"]
    assert (plan["planning"]["status"], plan["version"]) == ("waiting_for_review", 2)
    begun = Counter(started(server, plan_id))
    assert set(begun) == set(NODES) - {"FinalHandoffCheck"}
    assert sum(begun.values()) <= len(begun) + len(_KILLED_IN) + 1  # those that were active and had not finished
    digest = server.get(f"/plans/{plan_id}/workspace")["digest"]
    assert approved(server, plan_id)["planning"]["approval"]["digest"] == digest
    execute(server, plan_id)
    wait_until(lambda: [run for run in server.all_runs() if run["status"] == "finished"], "the first run to finish")
    server.restart()
    wait_until(
        lambda: "summarise" in {fact["step"] for fact in event_data(server, plan_id, "plan.step")}, "the next step"
    )
    server.restart()
    _check_ran_once(server, executed(server, plan_id))


def _check_ran_once(server: LiveServer, plan: dict[str, Any]) -> None:
    assert plan["status"] == "completed", plan["status_reason"]
    (sweep,) = server.get("/sweeps")
    assert sweep["progress"]["total"] == 3
    runs = server.all_runs()
    assert Counter(run["status"] for run in runs) == {"finished": len(runs)}
    names = Counter(run["name"] for run in runs if run["sweep_id"] is None)
    assert names == {"summarise": 1, "choose_best": 1, "compare_with_baseline": 1, "write_table": 1}


def test_stopped_plan_ends_all_it_started_and_can_be_executed_again(make: Callable[..., LiveServer]) -> None:
    server = make()
    script = server.project / "fit.py"
    script.write_text(f"import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n{script.read_text()}")
    server.start()
    plan_id = approved(server, compiled(server)["id"])["id"]
    assert server.call("POST", f"/plans/{plan_id}/stop").status == 409
    execute(server, plan_id)
    wait_until(lambda: [run for run in server.all_runs() if run["status"] == "running"], "a run")
    _check_a_pause_is_told(server, plan_id)
    plan = server.post(f"/plans/{plan_id}/stop")
    assert (plan["status"], plan["status_reason"]) == ("failed", "stopped by person")
    wait_until(lambda: {run["status"] for run in server.all_runs()} == {"stopped"}, "the runs to end")
    (server.project / "go").touch()
    wait_until(lambda: server.call("POST", f"/plans/{plan_id}/execute").status == 202, "it to be free")
    plan = executed(server, plan_id)
    assert plan["status"] == "completed", plan["status_reason"]


def _check_a_pause_is_told(server: LiveServer, plan_id: str) -> None:
    """Check that the plan itself reports the pause while it waits."""

    def why() -> str:
        return str(server.get(f"/plans/{plan_id}")["status_reason"])

    (sweep,) = server.get("/sweeps")
    server.post(f"/sweeps/{sweep['id']}/pause")
    wait_until(lambda: f"train waits, as {sweep['id']} is paused" in why(), "the pause to be told")
    server.post(f"/sweeps/{sweep['id']}/resume")
    wait_until(lambda: why() == "", "the end of it to be told")


def test_plan_that_fails_during_a_sweep_pause_leaves_no_queued_run(
    make: Callable[..., LiveServer],
) -> None:
    server = make()
    script = server.project / "fit.py"
    code = f"import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n{script.read_text()}"
    script.write_text(code)
    server.start()
    plan_id = approved(server, compiled(server)["id"])["id"]
    execute(server, plan_id)
    wait_until(lambda: [run for run in server.all_runs() if run["status"] == "running"], "a run")
    (sweep,) = server.get("/sweeps")
    server.post(f"/sweeps/{sweep['id']}/pause")
    script.write_text(f"{code}#")
    server.restart()
    plan = executed(server, plan_id)
    assert plan["status"] == "failed" and "fit.py changed" in plan["status_reason"]
    wait_until(lambda: all(run["status"] in ENDED for run in server.all_runs()), "the runs to end")
    script.write_text(code)
    (server.project / "go").touch()
    execute(server, plan_id)
    plan = executed(server, plan_id)
    assert plan["status"] == "completed", plan["status_reason"]


def test_chosen_model_plans_and_its_wrong_answers_are_reported(make: Callable[..., LiveServer]) -> None:
    server = make()
    with model_server("openai", Turn(calls=((TOOL, '{"summary": 1}'),))) as provider:
        chosen = {"LABWRIGHT_MODEL": "openai:m", "OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k"}
        server.environment.update(chosen)
        plan = when_idle(server.start(), request_plan(server))
    assert len(provider.asked) == 2, "asked once more with what is wrong"
    assert (plan["planning"]["status"], plan["planning"]["node"]) == ("failed", "DraftReportDigest")
    assert "summary" in plan["planning"]["error"]


def test_plan_can_be_stopped_while_its_model_is_answering(make: Callable[..., LiveServer]) -> None:
    server = make()
    with model_server("openai", Turn(text=("so ", "slow"), drip_seconds=30)) as provider:
        chosen = {"LABWRIGHT_MODEL": "openai:m", "OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k"}
        server.environment.update(chosen)
        plan_id = request_plan(server.start())
        wait_until(lambda: provider.asked, "the model to be asked")
        server.post(f"/plans/{plan_id}/stop")
        plan = when_idle(server, plan_id)
        assert plan["planning"]["error"] == "stopped by person"
        assert len(provider.asked) == 1


@pytest.mark.slow  # a dozen jobs in sequence, each through Slurm's queue
def test_plan_is_rehearsed_and_executed_on_slurm(slurm: SimulatedSlurm, make_slurm_server: MakeServer) -> None:
    server = make_slurm_server(slurm)
    shutil.copy(EXAMPLES / "bare-script" / "fit.py", server.project)
    server.start()
    plan = when_idle(server, request_plan(server, rehearsal=True))
    workspace = server.get(f"/plans/{plan['id']}/workspace")
    assert workspace["rehearsal"]["outcome"] == "passed", workspace["rehearsal"]
    execute(server, approved(server, plan["id"])["id"])
    plan = executed(server, plan["id"])
    assert plan["status"] == "completed", plan["status_reason"]
    assert {run["launcher"] for run in server.all_runs()} == {"slurm"}
    assert "**Best:**" in server.get(f"/plans/{plan['id']}/report")["markdown"]
