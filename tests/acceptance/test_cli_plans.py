"""`labwright plan …` as people use it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_cli import LABWRIGHT, answer, labwright
from tests.support.children import end_with_test
from tests.support.live_server import LiveServer
from tests.unit.plan_texts import GOOD


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("plan cli") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


@pytest.fixture
def plan_id(lab: LiveServer) -> str:
    (lab.project / "plan.md").write_text(GOOD)
    return str(answer(lab, "plan", "save", "plan.md", "--json")["id"])


def editor(lab: LiveServer, script: str) -> dict[str, str]:
    path = lab.project / "an editor"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o700)
    return {"EDITOR": f"'{path}' --wait", "VISUAL": ""}


def on_a_terminal(lab: LiveServer, *arguments: str) -> str:
    leader, follower = pty.openpty()
    environment = {**lab.environment, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = end_with_test(
        subprocess.Popen([*LABWRIGHT, *arguments], cwd=lab.project, env=environment, stdout=follower, stdin=follower)
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        shown += block
    os.close(leader)
    assert process.wait(30) == 0
    return shown.decode()


def test_empty_list_says_what_to_do(tmp_path: Path) -> None:
    server = LiveServer(tmp_path).start()
    assert 'labwright plan "' in labwright(server, "plan", "list").stdout
    assert answer(server, "plan", "list", "--json") == []
    server.stop()


def test_file_is_saved_with_its_own_title_and_goal(lab: LiveServer, plan_id: str) -> None:
    plan = json.loads(labwright(lab, "plan", "show", f"@{plan_id}", "--json").stdout)
    assert plan["title"] == "Learning rate of the small transformer"
    assert plan["goal"].startswith("Find the learning rate")
    assert labwright(lab, "plan", "show", plan_id[5:9]).stdout == GOOD
    listed = labwright(lab, "plan", "list").stdout
    assert plan_id in listed and "valid" in listed and "invalid" not in listed


def test_mistakes_are_shown_with_their_line(lab: LiveServer) -> None:
    (lab.project / "bad.md").write_text(GOOD.replace("GPU count: 2", "GPU count: two"))
    said = labwright(lab, "plan", "save", "bad.md", "--title", "bad", "--goal", "g")
    assert said.returncode == 0
    assert "1 format error" in said.stdout
    assert "line 8: GPU count is not a number" in said.stdout
    untitled = subprocess.run(
        [*LABWRIGHT, "plan", "save", "-"], input=b"no title", cwd=lab.project, env=lab.environment, capture_output=True
    )
    assert untitled.returncode == 1
    assert b"--title" in untitled.stderr
    (lab.project / "long.md").write_text(GOOD + "x" * 200_000)
    assert "the limit is 200,000" in labwright(lab, "plan", "save", "long.md").stderr
    (lab.project / "latin.md").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in labwright(lab, "plan", "save", "latin.md").stderr
    assert "cannot be read" in labwright(lab, "plan", "save", "nowhere.md").stderr


def test_edit_is_saved_as_a_new_version(lab: LiveServer, plan_id: str) -> None:
    said = labwright(lab, "plan", "edit", plan_id, env=editor(lab, "sed -i 's/Objective/Goal/' \"$2\""))
    assert said.returncode == 0, said.stderr
    assert "version 2" in said.stdout
    assert "is not a header of a plan" in said.stdout
    assert [version["version"] for version in answer(lab, "plan", "versions", plan_id, "--json")] == [2, 1]
    assert labwright(lab, "plan", "show", plan_id, "--version", "1").stdout == GOOD
    assert "no version 9" in labwright(lab, "plan", "show", plan_id, "--version", "9").stderr
    assert "person" in labwright(lab, "plan", "versions", plan_id).stdout


def test_edit_without_a_change_saves_nothing(lab: LiveServer, plan_id: str) -> None:
    assert "No changes." in labwright(lab, "plan", "edit", plan_id, env=editor(lab, "true")).stderr
    failed = labwright(lab, "plan", "edit", plan_id, env=editor(lab, "exit 3"))
    assert (failed.returncode, "exited with 3" in failed.stderr) == (1, True)
    assert (
        "Set EDITOR" in labwright(lab, "plan", "edit", plan_id, env={"EDITOR": "no-such-editor", "VISUAL": ""}).stderr
    )
    assert len(answer(lab, "plan", "versions", plan_id, "--json")) == 1


def test_typed_text_is_kept_when_somebody_else_saved_first(lab: LiveServer, plan_id: str) -> None:
    call = f"curl -s -X PATCH {lab.url}/plans/{plan_id} -H 'X-Auth-Token: {lab.token}' --json '{{\"goal\": \"g\"}}'"
    said = labwright(lab, "plan", "edit", plan_id, env=editor(lab, f'{call} > /dev/null; echo mine >> "$2"'))
    assert said.returncode == 1
    assert "already at version 2" in said.stderr
    kept = Path(said.stderr.split("Your text is in ")[1].strip().rstrip("."))
    assert kept.read_text() == GOOD + "mine\n"
    assert kept.parent.stat().st_mode & 0o077 == 0


def test_archive_and_delete(lab: LiveServer, plan_id: str) -> None:
    assert "archived" in labwright(lab, "plan", "archive", plan_id).stdout
    assert plan_id not in labwright(lab, "plan", "list").stdout
    assert plan_id in labwright(lab, "plan", "list", "--all").stdout
    assert plan_id in labwright(lab, "plan", "list", "--status", "archived").stdout
    assert "Confirm with --yes." in labwright(lab, "plan", "delete", plan_id).stderr
    assert answer(lab, "plan", "delete", plan_id, "--yes", "--json") == [plan_id]
    assert labwright(lab, "plan", "show", plan_id).returncode == 1
    events = labwright(lab, "events").stdout
    assert "plan.deleted" in events and "draft → archived" in events


def test_terminal_shows_the_document_without_control_sequences(lab: LiveServer) -> None:
    text = GOOD.replace("2 GPUs", "2 GPUs \x1b]0;title\x07\u202eevil <b>bold</b> <!-- hidden -->")
    (lab.project / "hostile.md").write_text(text)
    plan = answer(lab, "plan", "save", "hostile.md", "--json")["id"]
    shown = on_a_terminal(lab, "plan", "show", plan)
    assert "\x1b]0;" not in shown and "\u202e" not in shown and "\x07" not in shown
    assert "hidden" in shown and "<b>bold" in shown
    assert "Risks & Mitigations" in shown and "Compile it: labwright plan new --from-plan" in shown
    assert "U+202E" in shown
