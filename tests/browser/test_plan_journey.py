"""goal → plan → review → run → report, as a person does it in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import FAILED_REQUEST, Visitor
from tests.browser.test_accessibility import serious_faults
from tests.support.live_server import LiveServer
from tests.support.planning import QUICK, approved, compiled, completed_with_failed_runs, execute, planning_server

SLOW = 60_000  # planning runs the generated tests in a sandbox


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[LiveServer]:
    server = planning_server(tmp_path).start()
    yield server
    server.stop()


def test_from_a_goal_to_a_report(planner: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    visitor = make_visitor(planner)
    page = visitor.sign_in("#/")
    page.get_by_label("Goal").fill(QUICK)
    page.get_by_role("button", name="Make a plan").click()
    expect(page.get_by_role("tab", name="Review")).to_be_visible()
    approve = page.get_by_role("button", name="Approve this plan")
    expect(approve).to_be_visible(timeout=SLOW)
    expect(page.get_by_label("Validation", exact=True)).to_contain_text("All checks passed")
    expect(page.locator(".light-on")).to_have_text(re.compile("validated"))
    expect(page.get_by_label("Rehearsal", exact=True)).to_contain_text("in parallel")
    visitor.picture("plan-review")

    page.get_by_role("tab", name="Workflow").click()
    expect(page.locator(".graph-box").first).to_be_visible()
    assert serious_faults(page) == []
    visitor.picture("plan-workflow")
    page.get_by_role("tab", name="Code and tests").click()
    page.get_by_role("button", name="test_workflow_structure.py").click()
    expect(page.locator(".code .hl-keyword").first).to_be_visible()
    assert serious_faults(page) == []
    page.get_by_role("tab", name="Review").click()
    assert serious_faults(page) == []

    (plan,) = planner.get("/plans")
    digest = planner.get(f"/plans/{plan['id']}/workspace")["digest"]
    expect(page.get_by_label("Decision")).to_contain_text(digest[:8])
    approve.click()
    expect(page.locator(".light-on")).to_have_count(3, timeout=SLOW)
    page.get_by_role("button", name="Execute plan").click()
    page.get_by_role("dialog").get_by_role("button", name="Execute plan").click()
    its_runs = page.get_by_label("Runs of this plan")
    expect(its_runs.get_by_role("link").filter(has_text="train")).to_be_visible(timeout=SLOW)
    expect(page.locator(".run-head .status").first).to_have_text("completed", timeout=2 * SLOW)
    (sweep,) = [one for one in planner.get("/sweeps") if one["plan_id"] == plan["id"]]
    expect(its_runs).to_contain_text(f"{sweep['progress']['total']} of {sweep['progress']['total']}")
    made = {run["id"] for run in planner.all_runs() if run["plan_id"] == plan["id"]}
    assert {run["id"] for run in planner.get(f"/runs?plan_id={plan['id']}&limit=1000")} == made
    assert planner.get("/runs?plan_id=plan-zzzzzzzzzz") == []
    page.get_by_role("tab", name="Report").click()
    expect(page.get_by_role("article")).to_contain_text("Best:")
    expect(page.get_by_role("article").get_by_role("link", name=sweep["id"]).first).to_be_visible()
    expect(page.locator(".report-picture").first).to_be_visible()
    visitor.picture("plan-report")

    (planner.project / "written_later.py").write_text("CHANGED = True\n")
    page.reload()
    expect(page.locator(".light-stale")).to_have_text(["validated (outdated)", "approved (outdated)"])
    expect(page.locator(".light-on")).to_have_count(0)


def test_questions_are_answered_and_a_change_is_requested(
    planner: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    visitor = make_visitor(planner)
    page = visitor.sign_in("#/plans")
    page.get_by_label("Goal").fill("make it better")
    page.get_by_role("button", name="Make a plan").click()
    asked = page.get_by_label("Questions")
    expect(asked).to_be_visible(timeout=SLOW)
    visitor.open("#/")
    needs = page.get_by_label("Needs attention")
    expect(page.locator(".tally")).to_contain_text("1 item needs attention")
    needs.get_by_role("link", name="Answer").click()
    asked.get_by_role("textbox").first.fill("degree 1 and 3, max_steps 20")
    page.reload()
    expect(asked.get_by_role("textbox").first).to_have_value("degree 1 and 3, max_steps 20")
    for field in asked.get_by_role("textbox").all()[1:]:
        field.fill("lowest test_mse")
    asked.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("button", name="Reject or request changes")).to_be_visible(timeout=SLOW)
    visitor.open("#/")
    needs.get_by_role("link", name="Review plan").click()
    changes = page.get_by_label("Changes", exact=True)
    expect(changes).to_contain_text("This is the first compilation")
    (plan,) = planner.get("/plans")
    file = f"/plans/{plan['id']}/workspace/files/tests/test_workflow_structure.py"
    hostile = "# <img src=x onerror=alert(1)>"
    planner.call("PUT", file, {"content": f"{planner.get(file)['content']}\n{hostile}\n"})
    expect(changes.locator("details")).to_contain_text("tests/test_workflow_structure.py")
    expect(changes.locator(".hl-addition").filter(has_text=hostile)).to_be_visible()
    assert serious_faults(page) == []
    visitor.picture("plan-changes")
    page.get_by_role("button", name="Reject or request changes").click()
    page.get_by_label("Requested change").fill("The baseline is missing.")
    page.get_by_role("button", name="Reject plan").click()
    expect(page.locator(".toasts")).to_contain_text("Plan rejected")
    visitor.open("#/")
    expect(page.get_by_label("Plans", exact=True)).to_contain_text("draft")
    expect(needs).to_have_count(0)


def test_an_approval_is_withdrawn_and_findings_show_at_the_decision(
    planner: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    plan_id = approved(planner, compiled(planner)["id"])["id"]
    page = make_visitor(planner).sign_in(f"#/plans/{plan_id}")
    expect(page.get_by_role("button", name="Approve this plan")).to_have_count(0)
    page.get_by_role("button", name="Reject or request changes").click()
    page.get_by_label("Requested change").fill("too few degrees")
    page.get_by_role("button", name="Reject plan").click()
    expect(page.get_by_text("Rejected: too few degrees")).to_be_visible()
    expect(page.locator(".light-on")).to_have_text(re.compile("validated"))
    file = f"/plans/{plan_id}/workspace/files/src/experiment/tasks/summarise.py"
    planner.call("PUT", file, {"content": f"{planner.get(file)['content']}\nimport subprocess\n"})
    page.get_by_role("button", name="Validate").click()
    decision, found = page.get_by_label("Decision"), page.get_by_label("Validation", exact=True)
    expect(decision).to_contain_text(re.compile(r"Validation has \d+ findings?, below"), timeout=SLOW)
    expect(page.get_by_label("Planning").locator(".status-failed")).to_contain_text(["Validate Workspace: failed"])
    changes = page.get_by_label("Changes", exact=True)
    expect(changes).to_contain_text("summarise.py")
    tops = [one.evaluate("card => card.getBoundingClientRect().top") for one in (decision, found, changes)]
    assert tops == sorted(tops), "what changed may be long: what was found stands before it"
    page.set_viewport_size({"width": 390, "height": 844})
    said = found.locator(".faults li > :last-child").first
    assert said.evaluate("words => words.getBoundingClientRect().width") > 200, "squeezed by a long path"


def test_a_waiting_rehearsal_shows_its_reason(planner: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    planner.environment["LABWRIGHT_MAX_PARALLEL"] = "1"
    planner.restart()
    in_front = planner.submit("sleep 300", name="in front")["id"]
    planner.wait_for_status(in_front, "running")
    page = make_visitor(planner).sign_in("#/plans")
    page.get_by_label("Goal").fill(QUICK)
    page.get_by_role("button", name="Make a plan").click()
    waiting = page.get_by_label("Runs of this plan").get_by_role("listitem").first
    expect(waiting).to_contain_text("rehearsal", timeout=SLOW)
    expect(waiting.locator(".run-line-why")).to_contain_text("in use")
    planner.call("POST", f"/runs/{in_front}/stop")
    expect(page.get_by_role("button", name="Approve this plan")).to_be_visible(timeout=SLOW)


def test_a_stopped_plan_is_executed_again_and_a_completed_one_only_for_failed_runs(
    planner: LiveServer, make_visitor: Callable[..., Visitor]
) -> None:
    planner.environment["LABWRIGHT_MAX_PARALLEL"] = "1"
    planner.restart()
    plan_id = compiled(planner)["id"]
    approved(planner, plan_id)
    in_front = planner.submit("sleep 300", name="in front")["id"]
    planner.wait_for_status(in_front, "running")
    execute(planner, plan_id)
    planner.post(f"/plans/{plan_id}/stop", {})
    visitor = make_visitor(planner)
    page = visitor.sign_in(f"#/plans/{plan_id}")
    page.get_by_role("button", name="Execute again").click()
    expect(page.get_by_role("dialog")).to_contain_text("Finished runs are kept")
    page.get_by_role("dialog").get_by_role("button", name="Execute plan").click()
    status = page.locator(".run-head .status").first
    expect(status).to_have_text("executing")
    planner.call("POST", f"/runs/{in_front}/stop")
    expect(status).to_have_text("completed", timeout=2 * SLOW)
    page.locator("main").get_by_role("button", name="More").click()
    page.get_by_role("button", name="Retry failed runs…").click()
    visitor.allow(FAILED_REQUEST)
    page.get_by_role("dialog").get_by_role("button", name="Execute plan").click()
    expect(page.locator(".toasts")).to_contain_text("none of its runs failed")


def test_an_open_report_shows_later_changes(planner: LiveServer, make_visitor: Callable[..., Visitor]) -> None:
    plan_id = completed_with_failed_runs(planner)
    page = make_visitor(planner).sign_in(f"#/plans/{plan_id}?tab=report")
    report, notice = page.get_by_role("article"), page.locator("main .notice-line")
    expect(report).to_contain_text("Failed runs")
    expect(notice).to_have_count(0)
    (sweep,) = [one for one in planner.get("/sweeps") if one["plan_id"] == plan_id]
    planner.post(f"/sweeps/{sweep['id']}/retry-failed")
    expect(notice).to_contain_text("2 runs that had failed have finished")
    (planner.project / "hold").touch()
    execute(planner, plan_id)
    expect(notice).to_contain_text("Another execution goes on")
    expect(report).to_contain_text("Failed runs")
    (planner.project / "hold").unlink()
    expect(notice).to_have_count(0, timeout=SLOW)
    expect(report).not_to_contain_text("Failed runs")
