"""The pipeline around its nodes: bounded repair, rejections, review policies, model choice and costs."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from labwright.domain.errors import Conflict, Invalid
from labwright.llm import ModelAnswer, Request, ScriptedModel, Tier, Usage
from labwright.llm.model import Value
from labwright.planning.ir.drafts import Repair
from labwright.planning.nodes.pipeline import MOST_REJECTIONS
from labwright.planning.nodes.repair import MOST_ROUNDS
from labwright.planning.record.earlier import EarlierPlan, EarlierRun, EarlierSweep, History
from labwright.planning.rules import offline_model
from labwright.workspace import PlanWorkspaceHandle
from tests.support.plan_workspaces import Planned, planned

GOAL = "degree 1 and 3, lowest test_mse"
BODY, TEST = "src/experiment/tasks/choose_best.py", "tests/test_choose_best.py"
WRONG_TEST = """
from experiment.tasks.choose_best import choose_best


def test_it():
    row = {"params": {"lr": 1}, "mean": 1.0, "std": 0.0, "finished": 1, "failed": 0}
    assert choose_best([row], "maximize")["mean"] == 2.0
"""
RIGHT_TEST = WRONG_TEST.replace("2.0", "1.0")


def scripted(answers: dict[str, list[Any]]) -> ScriptedModel:
    return ScriptedModel(answers, fallback=offline_model())


def report(plan: Planned) -> dict[str, Any]:
    return dict(yaml.safe_load((plan.folder / "validation/report.yaml").read_text()))


def test_wrong_test_is_fixed_after_a_diagnosis_and_the_body_stays(tmp_path: Path) -> None:
    answer = Repair(diagnosis="The test expects 2.0 of a row with 1.0.", fault="test", test=RIGHT_TEST, body="broken (")
    model = scripted({"GenerateTaskTests:choose_best": [WRONG_TEST], "ValidateWorkspace:choose_best": [answer]})
    plan = planned(tmp_path, "bare-script", GOAL, provider=model)
    state = plan.run()
    assert state["validated"], report(plan)
    assert (plan.folder / TEST).read_text() == RIGHT_TEST and "broken" not in (plan.folder / BODY).read_text()
    (done,) = report(plan)["repairs"]
    assert (done["task"], done["changed"], done["findings"]) == ("choose_best", [TEST], ["test_failed"])
    assert answer.diagnosis in (plan.folder / "validation/report.md").read_text()
    (asked,) = [request for request in model.asked if request.node == "ValidateWorkspace"]
    assert asked.given["findings"][0]["code"] == "test_failed" and asked.given["test"] == WRONG_TEST


def test_interrupted_repair_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed at the worst moment: the new files are recorded, but not written."""
    answer = Repair(diagnosis="The test expects 2.0 of a row with 1.0.", fault="test", test=RIGHT_TEST)
    model = scripted({"GenerateTaskTests:choose_best": [WRONG_TEST], "ValidateWorkspace": [answer, answer]})
    plan = planned(tmp_path, "bare-script", GOAL, provider=model)
    write = PlanWorkspaceHandle.write

    def killed(handle: PlanWorkspaceHandle, path: str, content: bytes) -> None:
        if content == RIGHT_TEST.encode():
            raise KeyboardInterrupt
        write(handle, path, content)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PlanWorkspaceHandle, "write", killed)
        plan.run()
    assert (plan.folder / TEST).read_text() == WRONG_TEST
    assert plan.run()["validated"], report(plan)


def test_wrong_body_is_fixed_and_the_test_stays(tmp_path: Path) -> None:
    plan = planned(tmp_path / "once", "bare-script", GOAL)
    plan.run()
    right, test = (plan.folder / BODY).read_text(), (plan.folder / TEST).read_text()
    answer = Repair(diagnosis="min and max are swapped.", fault="body", body=right, test="assert True")
    wrong = right.replace("max if", "min if")
    model = scripted({"GenerateTaskImplementations:choose_best": [wrong], "ValidateWorkspace": [answer]})
    again = planned(tmp_path / "again", "bare-script", GOAL, provider=model)
    assert again.run()["validated"], report(again)
    assert (again.folder / BODY).read_text() == right and (again.folder / TEST).read_text() == test


def test_repair_ends_and_a_broken_plan_is_not_validated(tmp_path: Path) -> None:
    useless = Repair(diagnosis="No idea.", fault="test", test=WRONG_TEST + "\n# again\n")
    answers = {"GenerateTaskTests:choose_best": [WRONG_TEST], "ValidateWorkspace": [useless] * 50}
    plan = planned(tmp_path, "bare-script", GOAL, provider=scripted(answers))
    state = plan.run()
    assert not state["validated"] and state["status"] == "waiting_for_review"
    assert [done["round"] for done in state["repairs"]] == list(range(1, MOST_ROUNDS + 1))
    assert not plan.run()["validated"] and len(plan.mode.state.repairs) == MOST_ROUNDS  # no more repairs


def test_repair_cannot_change_the_checks_and_a_lie_is_refused(tmp_path: Path) -> None:
    cheat = Repair(
        diagnosis="The check is in the way.", fault="both", test="def test_it():\n    assert True\n", body=""
    )
    answers = {"GenerateTaskTests:choose_best": [WRONG_TEST], "ValidateWorkspace": [cheat] * 9}
    plan = planned(tmp_path, "bare-script", GOAL, provider=scripted(answers))
    assert not plan.run()["validated"]
    assert {"asserts_nothing", "not_tested"} <= {found["code"] for found in report(plan)["findings"]}


def test_edits_of_a_person_are_not_overwritten(tmp_path: Path) -> None:
    repair = Repair(diagnosis="Mended.", fault="body", body="x = 1\n")
    plan = planned(tmp_path, "bare-script", GOAL, provider=scripted({"ValidateWorkspace": [repair] * 9}))
    assert plan.run()["validated"]
    edited = (plan.folder / BODY).read_text().replace("max if", "min if")
    (plan.folder / BODY).write_text(edited)
    assert not plan.run()["validated"]
    assert (plan.folder / BODY).read_text() == edited and not plan.mode.state.repairs


def test_reviewer_who_repairs_broken_code_gets_a_validated_workspace(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", GOAL, provider=scripted({"GenerateTaskTests:choose_best": [WRONG_TEST]}))
    assert not plan.run()["validated"]
    (plan.folder / TEST).write_text(RIGHT_TEST)
    state = plan.run()
    assert state["validated"]
    plan.mode.approve(state["validated_digest"], "ada")
    assert plan.run()["ready_for_run"]


def test_number_of_rejections_is_limited_with_a_message(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", GOAL)
    for number in range(MOST_REJECTIONS):
        plan.mode.reject(f"no, not {number}", "DraftImplementationPlan")
    with pytest.raises(Conflict, match=f"sent back {MOST_REJECTIONS} times"):
        plan.mode.reject("once more", "DraftImplementationPlan")
    assert plan.mode.state.rejections[0].reason == "no, not 0"
    with pytest.raises(Invalid, match="says why"):
        plan.mode.reject("  ", "DraftImplementationPlan")


class SlowModel:
    """Answer a task only while another request is active."""

    name = "slow"

    def __init__(self) -> None:
        self._together = threading.Barrier(2, timeout=30)
        self._rules = offline_model()

    def answer(self, request: Request[Value]) -> ModelAnswer[Value]:
        if "task_id" in request.given and request.node.startswith("Generate"):
            self._together.wait()
        found = self._rules.answer(request)
        return ModelAnswer(value=found.value, model=self.name, usage=Usage(tokens_in=10, tokens_out=2, cost_usd=0.01))


def test_tasks_are_generated_in_parallel_and_every_token_is_counted(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", GOAL, provider=SlowModel())
    events: list[Any] = []
    state = plan.run(events)
    assert state["validated"]
    spent = state["usage"]["GenerateTaskTests"]
    assert (spent["calls"], spent["tokens_in"], spent["tokens_out"], spent["models"]) == (4, 40, 8, ["slow"])
    assert spent["cost_usd"] == pytest.approx(0.04)
    ended = {event["task"]: event for event in events if event["fact"] in ("finished", "suspended")}
    assert (ended["GenerateTaskTests"]["tokens"], ended["GenerateTaskTests"]["cost"]) == (48, 0.04)
    assert (ended["CompileTaskIR"]["tokens"], ended["CompileTaskIR"]["cost"]) == (0, 0)
    assert list(state["generated"])[:2] == ["tests/test_train.py", "tests/test_summarise.py"]


def test_answer_is_counted_even_if_another_task_fails(tmp_path: Path) -> None:
    model = scripted({"GenerateTaskTests:write_table": [RuntimeError("overloaded")]})
    state = planned(tmp_path, "bare-script", GOAL, provider=model).run()
    assert (state["status"], state["node"]) == ("failed", "GenerateTaskTests") and "overloaded" in state["error"]
    assert state["usage"]["GenerateTaskTests"]["calls"] == 3


def test_each_node_uses_the_model_named_by_the_policy(tmp_path: Path) -> None:
    usual, other = scripted({}), scripted({})
    policy = {"DraftReportDigest": Tier.CHEAP, "GenerateTaskTests": "cheap", "GenerateTaskImplementations": other}
    assert planned(tmp_path, "bare-script", GOAL, provider=usual, model_policy=policy).run()["validated"]
    tiers = {request.node: request.tier for request in usual.asked}
    assert tiers["DraftReportDigest"] is Tier.CHEAP and tiers["GenerateTaskTests"] is Tier.CHEAP
    assert tiers["DraftImplementationPlan"] is Tier.DEFAULT
    assert {request.node for request in other.asked} == {"GenerateTaskImplementations"}


@pytest.mark.parametrize("policy", [{"NoSuchNode": "cheap"}, {"DraftReportDigest": "huge"}])
def test_invalid_policy_is_refused(tmp_path: Path, policy: Any) -> None:
    plan = planned(tmp_path, "bare-script", GOAL, model_policy=policy)
    with pytest.raises(Invalid):
        plan.run()
    assert not list(plan.folder.iterdir())


def test_person_reviews_by_default_and_a_gate_policy_is_recorded(tmp_path: Path) -> None:
    state = planned(tmp_path / "person", "bare-script", GOAL).run()
    assert (state["status"], state["approval"], state["ready_for_run"]) == ("waiting_for_review", None, False)
    state = planned(tmp_path / "gate", "bare-script", GOAL, gate_policy=lambda state: state.validated).run()
    assert state["ready_for_run"] and state["approval"]["automatic"] and state["approval"]["by"] == "gate policy"
    model = scripted({"GenerateTaskTests:choose_best": [WRONG_TEST]})
    wild = planned(tmp_path / "wild", "bare-script", GOAL, provider=model, gate_policy=lambda _state: True)
    state = wild.run()
    assert (state["status"], state["ready_for_run"], state["handoff"]) == ("failed", False, None)


def test_earlier_work_is_cited_and_overlapping_plans_are_named(tmp_path: Path) -> None:
    history = History(
        plans=(
            EarlierPlan(id="plan-1", title="Degrees", script="fit.py", parameters=("degree",), status="completed"),
            EarlierPlan(id="plan-2", title="Rates", script="fit.py", parameters=("lr",)),
            EarlierPlan(id="plan-3", title="Old", script="fit.py", parameters=("degree",), status="archived"),
        ),
        runs=(
            EarlierRun(id="run-1", command="DEGREE=3 python3 fit.py", metrics={"test_mse": 0.25}),
            EarlierRun(id="run-2", command="python3 other.py", metrics={"test_mse": 0.1}),
        ),
        sweeps=(EarlierSweep(id="sw-1", command="DEGREE={degree} python3 fit.py", parameters=("degree",), runs=9),),
    )
    model = scripted({})
    plan = planned(tmp_path, "bare-script", GOAL, provider=model, history=history)
    assert plan.run()["validated"]
    text = plan.mode.handle.paths.text.read_text()
    assert "sweep @sw-1 (degree; 9 finished runs); run @run-1 (test_mse 0.25)" in text
    assert "plan @plan-1 (Degrees; completed) varies degree too" in text
    assert not any(word in text for word in ("plan-2", "plan-3", "run-2"))
    assert all(request.given["history"] is history for request in model.asked)
    again = planned(tmp_path / "again", "bare-script", "", plan=text)
    again.goal = ""
    assert again.run()["validated"]


def test_saved_plan_can_be_a_source(tmp_path: Path) -> None:
    first = planned(tmp_path / "first", "bare-script", "degree 1, 3 and 7, 2 seeds, lowest test_mse")
    first.run()
    saved = first.mode.handle.paths.text.read_text()
    second = planned(tmp_path / "second", "bare-script", plan=saved)
    second.goal = ""
    assert second.run()["validated"]
    assert second.mode.handle.paths.text.read_text() == saved
    assert saved in (second.folder / "report/original.md").read_text()
    second.goal = "lowest test_mse"  # unchanged
    assert second.run()["validated"]
    assert second.mode.handle.paths.text.read_text() == saved
    second.goal = "degree 2 and 4"
    assert second.run()["validated"], report(second)
    text = second.mode.handle.paths.text.read_text()
    assert "| degree | 2, 4 |" in text and "- **Runs**: 6 (2 degree × 2 seeds, and the baseline)" in text


@pytest.mark.parametrize(
    ("rows", "runs", "grid"),
    [
        ("| degree | 1, 3 | a |\n| seed | 5, 6, 7 | noise |", 9, {"degree": [1, 3]}),  # with the baseline
        ("| seed | 5, 6, 7 | noise |", 3, {"seed": [5, 6, 7]}),
    ],
)
def test_seeds_can_be_in_the_table_of_a_saved_plan(tmp_path: Path, rows: str, runs: int, grid: dict[str, Any]) -> None:
    first = planned(tmp_path / "first", "bare-script", "degree 1 and 3, 3 seeds, lowest test_mse")
    first.run()
    text = re.sub(r"\| degree \|.*", rows, first.mode.handle.paths.text.read_text())
    again = planned(tmp_path / "again", "bare-script", "", plan=re.sub(r"Runs\*\*: .*", f"Runs**: {runs}", text))
    again.goal = ""
    assert again.run()["validated"], report(again)
    found = yaml.safe_load((again.folder / "ir/workflow.yaml").read_text())["grid"]
    assert {row["flag"]: row["values"] for row in found["parameters"]} == grid
    assert found["seeds"] == ([] if "seed" in grid else [5, 6, 7])


def test_values_of_a_saved_plan_can_have_other_notations(tmp_path: Path) -> None:
    first = planned(tmp_path / "first", "bare-script", "lr 0.0001 and 0.5, 2 seeds, lowest test_mse")
    first.run()
    text = first.mode.handle.paths.text.read_text().replace("| 0.0001, 0.5 |", "| 1e-4, .50 |")
    again = planned(tmp_path / "again", "bare-script", plan=text)
    again.goal = ""
    assert again.run()["validated"], report(again)
    assert again.mode.handle.paths.text.read_text() == text and "1e-4, .50" in text


def test_seeds_alone_make_a_plan_with_one_configuration(tmp_path: Path) -> None:
    plan = planned(tmp_path, "bare-script", "run fit.py 3 times with different seeds, max_steps 20, lowest test_mse")
    state = plan.run()
    assert state["validated"], report(plan)
    grid = yaml.safe_load((plan.folder / "ir/workflow.yaml").read_text())["grid"]
    assert (grid["parameters"][0]["values"], grid["seeds"], grid["baseline"]) == ([0.1], [0, 1, 2], None)
    assert "- **Runs**: 3 (1 lr × 3 seeds)" in (plan.folder / "plan/implementation_plan.md").read_text()
