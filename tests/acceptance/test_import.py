"""A folder logged without a server becomes a run: once and complete, whatever it contains and whatever is killed."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labwright.processes import identity
from tests.acceptance.test_cli import answer, labwright
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

MakeServer = Callable[..., LiveServer]
POINTS = 50


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("import") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    yield server
    server.stop()


def folder(at: Path, *, exit_facts: dict[str, Any] | None = None, **facts: Any) -> Path:
    """Make a folder as the SDK leaves it."""
    (at / "metrics").mkdir(parents=True)
    about = {
        "name": "offline",
        "project": "mnist",
        "config": {"lr": 0.1, "bad": float("nan")},
        "command": "python t.py",
    }
    (at / "run.json").write_text(json.dumps({**about, "workdir": "/gone", "started_at": 1_700_000_000.5, **facts}))
    lines = [json.dumps({"attempt": 1, "rank": 0})]
    lines += [json.dumps({"s": s, "t": 1_700_000_001.0 + s, "m": {"loss": s / 10}}) for s in range(POINTS)]
    lines += [json.dumps({"t": 1_700_000_050.0, "alert": {"title": "Diverged", "text": "", "level": "ERROR"}})]
    (at / "metrics" / "sdk-77.jsonl").write_text("\n".join(lines) + "\n")
    if exit_facts is not None:
        (at / "exit.json").write_text(json.dumps(exit_facts))
    return at


def imported(server: LiveServer, path: Path, **more: Any) -> dict[str, Any]:
    answered = server.call("POST", "/runs/import", {"path": str(path), **more})
    assert answered.status == 201, answered.body
    run: dict[str, Any] = server.wait_for_end(answered.json["id"])
    return run


def values(server: LiveServer, run_id: str) -> list[float]:
    found = server.get(f"/runs/{run_id}/metrics?keys=loss")["series"]
    return found[0]["values"] if found else []


def test_command_imports_everything_and_shows_it(server: LiveServer) -> None:
    place = server.project / ".labwright-offline"
    folder(place / "one", exit_facts={"status": "finished", "exit_code": 0, "ended_at": 1_700_000_060.0})
    folder(place / "two", exit_facts={"status": "failed", "exit_code": 3, "ended_at": 1_700_000_060.0}, name="second")
    folder(place / "three", name="third")
    found = {run["name"]: run for run in answer(server, "import", "--json")}
    assert {name: (run["status"], run["exit_code"]) for name, run in found.items()} == {
        "offline": ("finished", 0),
        "second": ("failed", 3),
        "third": ("lost", None),
    }
    run = found["offline"]
    assert (run["started_at"], run["ended_at"]) == ("2023-11-14T22:13:20.500Z", "2023-11-14T22:14:20.000Z")
    assert run["params"] == {"lr": 0.1, "bad": "NaN"} and run["tags"] == ["project:mnist", "imported"]
    for run in found.values():
        wait_until(lambda run=run: len(values(server, run["id"])) == POINTS, "its points")
    again = labwright(server, "import", str(place))
    assert again.stderr.count("is already imported") == 3
    assert len(server.all_runs()) == 3


def test_folder_outside_the_project_must_be_confirmed(lab: LiveServer, tmp_path: Path) -> None:
    outside = folder(tmp_path / "elsewhere" / "run")
    refused = lab.call("POST", "/runs/import", {"path": str(outside)})
    assert refused.status == 422 and "outside" in refused.json["error"]["message"]
    (lab.project / "link").symlink_to(outside)
    assert lab.call("POST", "/runs/import", {"path": "link"}).status == 422
    assert imported(lab, outside, outside=True)["status"] == "lost"


def test_links_and_pipes_are_left_out_and_reported(lab: LiveServer) -> None:
    place = folder(lab.project / "x", exit_facts={"exit_code": 0})
    (place / "metrics" / "sdk-1.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(place / "metrics" / "sdk-2.jsonl")
    (place / "metrics" / "notes.txt").write_text("x")
    (place / "artifacts" / "images").mkdir(parents=True)
    (place / "artifacts" / "images" / "a.png").write_bytes(b"png")
    (place / "artifacts" / "passwd").symlink_to("/etc/passwd")
    run = imported(lab, place)
    assert len(run["warnings"]) == 4
    copied = lab.state / "runs" / run["id"]
    assert sorted(path.name for path in (copied / "metrics").iterdir()) == ["sdk-77.jsonl"]
    assert [path.name for path in (copied / "artifacts").rglob("*")] == ["images", "a.png"]
    assert (copied / "artifacts" / "images" / "a.png").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "facts",
    [
        {"exit_code": "zero", "status": "running", "ended_at": "soon", "usage": 5, "signal": -1, "error": ["x"]},
        {"ended_at": 1e300, "exit_code": 10**30},
        {},
    ],
)
def test_invalid_end_record_does_no_harm(lab: LiveServer, tmp_path: Path, facts: dict[str, Any]) -> None:
    strange = {
        "name": 5,
        "command": None,
        "config": ["x"],
        "tags": "x",
        "started_at": "yesterday",
        "workdir": "\ud800\0",
    }
    run = imported(lab, folder(tmp_path / tmp_path.name, exit_facts=facts, **strange), outside=True)
    assert (run["status"], run["name"], run["params"]) == ("finished", tmp_path.name, {})
    assert lab.wait_for_end(lab.submit("true")["id"])["status"] == "finished"  # the engine keeps working


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"a":' * 100_000])
def test_invalid_run_json_is_refused_and_creates_nothing(lab: LiveServer, tmp_path: Path, content: bytes) -> None:
    before = sorted(path.name for path in (lab.state / "runs").iterdir())
    place = folder(tmp_path / "broken")
    (place / "run.json").write_bytes(content)
    assert lab.call("POST", "/runs/import", {"path": str(place), "outside": True}).status == 422
    assert (
        sorted(path.name for path in (lab.state / "runs").iterdir())
        == before
        == sorted(run["id"] for run in lab.all_runs())
    )


def test_folder_that_is_still_written_to_is_refused(lab: LiveServer) -> None:
    folder(lab.project / "alive", **identity(os.getpid()).to_dict())
    refused = lab.call("POST", "/runs/import", {"path": "alive"})
    assert refused.status == 409 and "still logs" in refused.json["error"]["message"]


def test_second_import_completes_what_a_kill_left(make_server: MakeServer) -> None:
    server = make_server().start()
    place = folder(server.project / "x", exit_facts={"exit_code": 0})
    run = imported(server, place)["id"]
    server.call("DELETE", f"/runs/{run}")
    again = imported(server, place)["id"]
    assert again != run  # a deleted run stays deleted
    server.stop()
    for file in server.state.glob("labwright.db*"):
        file.unlink()
    (server.state / "journal.jsonl").unlink()
    (server.state / "runs" / f".{run}.import").mkdir()  # killed during the copy
    server.start()  # rebuilt from the folders
    restored = server.wait_for_end(again)
    assert (restored["status"], restored["exit_code"], restored["ended_at"]) == ("finished", 0, restored["ended_at"])
    wait_until(lambda: len(values(server, again)) == POINTS, "its points, once more")
    assert server.call("POST", "/runs/import", {"path": "x"}).status in (200, 201)
    assert {one["name"] for one in server.all_runs()} == {"offline"}


def test_folder_renamed_but_not_recorded_is_imported_at_the_next_start(server: LiveServer) -> None:
    place = folder(server.project / "x", exit_facts={"exit_code": 0})
    run = imported(server, place)["id"]
    server.stop()
    (server.state / "journal.jsonl").unlink(missing_ok=True)
    database = sqlite3.connect(server.state / "labwright.db")
    for table in ("runs", "series", "chunks", "metric_files", "alerts"):
        database.execute(f"DELETE FROM {table}")
    database.commit()
    database.close()
    server.start()
    assert server.wait_for_end(run)["status"] == "finished"
    assert len(values(server, run)) == POINTS
    assert server.call("POST", "/runs/import", {"path": str(place)}).status == 200
