"""`labwright plan` from a goal to a report, as people and scripts see it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_cli import answer, labwright
from tests.acceptance.test_cli_terminal import COLOUR, YES_OR_NO, at_terminal
from tests.support.live_server import LiveServer
from tests.support.planning import QUICK, planning_server

CODE = "src/experiment/tasks/choose_best.py"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = planning_server(tmp_path_factory.mktemp("cli")).start()
    yield server
    server.stop()


def saved(shown: str) -> str:
    """Return the plan id from the last line but one."""
    (line,) = [line for line in shown.splitlines() if "✅ Plan saved — ID: @" in line]
    return line.split("@")[1].strip()


def test_goal_at_a_terminal_shows_each_node_and_the_next_step(lab: LiveServer) -> None:
    shown = COLOUR.sub("", at_terminal(lab, "plan", QUICK, "--no-rehearsal"))
    lines = [line for line in shown.splitlines() if line.strip()]
    assert [line for line in lines if "DraftImplementationPlan" in line and "done" in line]
    assert "off: it was switched off" in shown and "validated" in shown
    plan_id = saved(shown)
    assert lines[-1] == f"Next: labwright plan review {plan_id}"
    own = [line for line in lines if not line.startswith("\x1b")]
    assert max(len(line) for line in own) <= 80
    reviewed = COLOUR.sub("", at_terminal(lab, "plan", "review", plan_id, typed="y\n", question=YES_OR_NO))
    assert "Approve this plan?" in reviewed and "plan/implementation_plan.md" in reviewed
    assert f"Run it: labwright plan execute {plan_id}" in reviewed
    assert answer(lab, "plan", "show", plan_id, "--json")["planning"]["approval"]["by"] == "person"


def test_script_can_go_from_goal_to_report(lab: LiveServer) -> None:
    made = labwright(lab, "plan", "new", QUICK, "--no-rehearsal")
    assert made.returncode == 0, made.stderr
    plan_id = saved(made.stdout)
    early = labwright(lab, "plan", "execute", plan_id)
    assert early.returncode == 1 and f"labwright plan review {plan_id}" in early.stderr
    seen = labwright(lab, "plan", "review", plan_id)
    assert "digest" in seen.stdout and "validated" in seen.stdout and "Approve" not in seen.stdout
    wrong = labwright(lab, "plan", "review", plan_id, "--approve", "--digest", "0000")
    assert wrong.returncode == 1 and "not 0000" in wrong.stderr
    approved = labwright(lab, "plan", "review", plan_id, "--approve")
    assert approved.returncode == 0, approved.stderr
    done = labwright(lab, "plan", "execute", plan_id, "--wait")
    assert (done.returncode, "completed" in done.stdout) == (0, True), done.stdout
    assert labwright(lab, "plan", "report", plan_id).stdout.startswith("# Effect of degree")
    shown = COLOUR.sub("", at_terminal(lab, "plan", "report", plan_id))
    assert "results/train-by-degree" in shown and "report.md" in shown
    events = labwright(lab, "events", "-n", "500").stdout
    assert f"plan.node       {plan_id}  ValidateWorkspace · finished  (person)\n" in events
    assert f"plan.step       {plan_id}  train · finished  (person)\n" in events
    again = labwright(lab, "plan", "new", "--from-plan", plan_id, "degree 2 and 4", "--no-rehearsal")
    assert "a new plan from its text" in again.stderr and saved(again.stdout) != plan_id
    assert "varies        degree 2, 4" in again.stdout, again.stdout


def test_questions_are_asked_at_a_terminal_and_printed_elsewhere(lab: LiveServer) -> None:
    shown = COLOUR.sub("", at_terminal(lab, "plan", "find the best degree", "--no-rehearsal", typed="1, 3\ntest_mse\n"))
    assert "Which values of degree" in shown and "Next: labwright plan review" in shown
    asked = labwright(lab, "plan", "find the best degree, lowest test_mse", "--no-rehearsal")
    assert asked.returncode == 1
    plan_id = saved(asked.stdout)
    assert f'labwright plan answer {plan_id} "…"' in asked.stdout
    answered = labwright(lab, "plan", "answer", plan_id, "1, 3")
    assert answered.returncode == 0, answered.stdout
    refused = labwright(lab, "plan", "answer", plan_id, "1, 3")
    assert refused.returncode == 1 and "has no open questions" in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "goal is empty"),
        (("degree 1 and 3 in fitt.py, lowest test_mse",), "Did you mean fit.py"),
        (("shwo", "plan-1"), "labwright plan show"),
        (("degree",), "one word is not a goal"),
        (("--report", "nowhere.md"), "cannot be read"),
        (("--report", "/bin/true"), "pdftotext"),
        (("--from-node", "IngestReport", "a goal"), "--from-plan"),
    ],
)
def test_goal_that_cannot_be_planned_is_reported_and_leaves_no_plan(
    lab: LiveServer, words: tuple[str, ...], said: str
) -> None:
    before = answer(lab, "plan", "list", "--json")
    refused = labwright(lab, "plan", *words)
    assert refused.returncode == 1 and said in refused.stderr, refused.stderr
    assert answer(lab, "plan", "--json", "list") == before


def test_report_of_five_megabytes_is_refused(lab: LiveServer) -> None:
    (lab.project / "long.md").write_text("words " * 900_000)
    refused = labwright(lab, "plan", "--report", "long.md")
    os.unlink(lab.project / "long.md")
    assert refused.returncode == 1 and "1,000,000" in refused.stderr


def test_file_can_be_edited_and_validated_and_a_plan_rejected(lab: LiveServer, tmp_path: Path) -> None:
    plan_id = saved(labwright(lab, "plan", QUICK, "--no-rehearsal").stdout)
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\necho "import subprocess" >> "$1"\n')
    script.chmod(0o755)
    editor = {"EDITOR": str(script), "VISUAL": ""}
    edited = labwright(lab, "plan", "edit", plan_id, "--file", CODE, env=editor)
    assert f"{CODE} saved" in edited.stdout
    assert labwright(lab, "plan", "show", plan_id, "--file", CODE).stdout.endswith("import subprocess\n")
    checked = labwright(lab, "plan", "validate", plan_id)
    assert checked.returncode == 1 and "forbidden_import" in checked.stdout
    kept = labwright(lab, "plan", "review", plan_id, "--approve")
    assert kept.returncode == 1 and "failed" in kept.stdout
    reject = ("plan", "review", plan_id, "--reject", "--reason", "again", "--node", "GenerateTaskImplementations")
    mended = labwright(lab, *reject)
    assert mended.returncode == 0 and plan_id in mended.stdout
    assert "follows fixed rules and ignores the reason" in mended.stdout
    assert "subprocess" not in labwright(lab, "plan", "show", plan_id, "--file", CODE).stdout
    typed = "n\nuse 2 seeds\nDraftPlan\nDraftImplementationPlan\n"
    shown = COLOUR.sub("", at_terminal(lab, "plan", "review", plan_id, typed=typed, question=YES_OR_NO))
    assert "DraftPlan is not one of" in shown and "× 2 seeds" in shown, "a slip does not cost the reason"
    assert "switched off" in labwright(lab, "plan", "validate", plan_id).stdout
    assert "switched off" not in labwright(lab, "plan", "validate", plan_id, "--rehearsal").stdout


def test_without_a_server_there_is_a_hint_to_start_one(tmp_path: Path) -> None:
    (tmp_path / ".labwright").mkdir()
    refused = labwright(LiveServer(tmp_path), "plan", QUICK)
    assert refused.returncode == 3 and "labwright up -d" in refused.stderr


def test_goal_in_plan_mode_leads_to_questions_and_a_compiled_plan(lab: LiveServer) -> None:
    asked = [
        json.loads(line) for line in labwright(lab, "chat", "--mode", "plan", "--json", "try it").stdout.splitlines()
    ]
    assert asked[-1]["data"]["why"] == "questions" and 1 <= len(asked[-1]["data"]["questions"]) <= 3
    made = labwright(lab, "chat", "--session", asked[0]["session_id"], QUICK)
    assert made.returncode == 0, made.stderr
    assert "· ValidateWorkspace finished" in made.stdout
    said = [line for line in made.stdout.splitlines() if line]
    plan_id = saved(made.stdout)
    assert said[-1] == f"✅ Plan saved — ID: @{plan_id}"
    plan = answer(lab, "plan", "show", plan_id, "--json")
    assert (plan["session_id"], plan["planning"]["status"]) == (asked[0]["session_id"], "waiting_for_review")
