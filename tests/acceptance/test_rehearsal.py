"""A plan is rehearsed before review: failures are caught with the script's own message, and leave no trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from labwright.domain.cluster import Cluster, ClusterType
from labwright.domain.event import EventType
from labwright.domain.run import Run, RunStatus
from labwright.planning.news import tell_of_wait
from labwright.planning.nodes import Planning
from labwright.planning.nodes.pipeline import again_from, approve, run_pipeline
from labwright.planning.rehearsal import Rehearsal, Rehearse, on_lab, rehearse_on, trials
from labwright.planning.rules import offline_model
from labwright.planning.scan import scan_project
from labwright.server.opening import prepare_state
from labwright.services.runs import verbs as runs
from labwright.services.runs.new_run import NewRun
from labwright.store import alerts, events
from labwright.workspace import PlanWorkspaceHandle, Workspace
from tests.support.planned_project import PERSON, plan_of, runs_of_plan, working_lab
from tests.support.waiting import wait_until

SCRIPT = '''
"""Trains a little."""
import argparse
import json
import os
import time
@IMPORT@
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
@FLAG@
options = parser.parse_args()
@BODY@
for step in range(getattr(options, "max_steps", 3)):
    val_acc = options.lr + step
    record = {"step": step, "val_acc": val_acc}
    print(json.dumps(record), flush=True)
'''
MAX_STEPS = 'parser.add_argument("--max-steps", type=int, default=50)'
GOAL = "lr 0.1 and 0.2, optimizer sgd and adam, highest val_acc"


def write_script(project: Path, body: str = "", *, flag: str = MAX_STEPS, imports: str = "") -> Path:
    text = SCRIPT.replace("@IMPORT@", imports).replace("@FLAG@", flag).replace("@BODY@", body)
    (project / "train.py").write_text(text)
    return project


def planning_of(project: Path, handle: PlanWorkspaceHandle, rehearse: Rehearse | None) -> Planning:
    return Planning(
        handle=handle,
        scan=scan_project(project),
        cluster=Cluster(type=ClusterType.CPU_ONLY, cpu_count=2),
        model=offline_model(),
        goal=GOAL,
        rehearse=rehearse,
    )


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a plan that was not rehearsed, to be copied."""
    project = tmp_path_factory.mktemp("planned") / "project"
    project.mkdir()
    write_script(project)
    handle = PlanWorkspaceHandle.materialize(Workspace(prepare_state(project).state))
    assert run_pipeline(planning_of(project, handle, None)).validated
    return project


@pytest.fixture
def project(planned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(planned, tmp_path / "project", symlinks=True))


def rehearse(project: Path, **options: Any) -> tuple[Rehearsal, list[Run]]:
    """Return the result of the rehearsal, and its runs."""
    handle = plan_of(project)
    with working_lab(project) as lab:
        found = rehearse_on(lab, PERSON, **options)(handle, scan_project(project))
        assert not alerts.page(lab.db.reader(), None, None, None, 10, None)[0]
        return found, runs_of_plan(lab, handle)


def test_every_variant_is_tried_briefly_and_leaves_nothing_behind(project: Path) -> None:
    write_script(project, 'open("written.txt", "w").write("x")\nos.makedirs("out", exist_ok=True)')
    (project / "data.bin").write_bytes(b"d" * (2 << 20))
    before = sorted(path.name for path in project.iterdir())
    rehearsal, found = rehearse(project)
    assert rehearsal.outcome == "passed", rehearsal.reason
    assert {run.params["optimizer"] for run in rehearsal.runs} == {"sgd", "adam"}
    assert {run.shortened_by for run in rehearsal.runs[:2]} == {"--max-steps 2"}
    assert all(run.reported for run in rehearsal.runs) and rehearsal.reason == ""
    assert all(run.tags == ("rehearsal",) and run.sweep_id is None for run in found)
    prediction = rehearsal.prediction
    assert prediction is not None and prediction.total_seconds is not None and prediction.runs == 4
    assert prediction.total_seconds[0] <= prediction.total_seconds[1]
    assert sorted(path.name for path in project.iterdir()) == before
    assert not list((project / ".labwright" / "rehearsals").iterdir())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('open("data/train.csv")', "No such file or directory: 'data/train.csv'"),
        ('__import__("no_such_package")', "No module named 'no_such_package'"),
        ("if options.optimizer == 'adam':\n    raise SystemExit('adam is not written yet')", "not written yet"),
        ("open('train.bin', 'r+').write('x')", "Read-only file system"),
    ],
)
def test_failure_is_reported_with_the_scripts_own_message(project: Path, body: str, words: str) -> None:
    write_script(project, body)
    (project / "train.bin").write_bytes(b"d" * (2 << 20))  # data: behind a link, read-only
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "failed"
    assert words in rehearsal.reason


def test_unknown_flag_is_caught(project: Path) -> None:
    write_script(project)
    text = (project / "train.py").read_text()
    (project / "train.py").write_text(text.replace('"--lr"', '"--rate"').replace("options.lr", "options.rate"))
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "failed" and "unrecognized arguments: --lr" in rehearsal.reason


@pytest.mark.parametrize(
    ("full", "outcome", "words"),
    [("50", "failed", "without reporting val_acc"), ("-1", "passed", "no run of it came so far as to report val_acc")],
)
def test_runs_without_the_metric_do_not_pass_silently(project: Path, full: str, outcome: str, words: str) -> None:
    """The metric goes to a place that nobody reads. The second script does not say how long a whole run is."""
    write_script(project, "print = lambda *_, **__: None", flag=MAX_STEPS.replace("50", full))
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == outcome and words in rehearsal.reason
    assert not any(run.reported for run in rehearsal.runs)


def test_plan_that_fails_rehearsal_is_not_validated(project: Path) -> None:
    write_script(project, "raise SystemExit('no data')")
    handle = plan_of(project)
    with working_lab(project) as lab:
        state = run_pipeline(planning_of(project, handle, rehearse_on(lab, PERSON)))
    assert (state.status, state.validated) == ("waiting_for_review", False)
    (finding,) = yaml.safe_load(handle.read("validation/report.yaml"))["findings"]
    assert finding["code"] == "rehearsal_failed" and "no data" in finding["message"]
    written = Rehearsal(**yaml.safe_load(handle.read("validation/rehearsal.yaml")))
    assert (written.outcome, written.digest) == ("failed", state.validated_digest)


def test_plan_that_failed_rehearsal_can_be_approved_but_not_run(project: Path) -> None:
    """It can run once it passes, or if somebody skips the rehearsal. The record in the workspace decides nothing."""
    write_script(project, "raise SystemExit('no data')")
    handle, scan = plan_of(project), scan_project(project)
    with working_lab(project) as lab:
        planning = planning_of(project, handle, rehearse_on(lab, PERSON))
        state = run_pipeline(planning)
        (handle.paths.dir / "validation/rehearsal.yaml").unlink()
        approve(handle, scan, state.validated_digest, "person")
        state = run_pipeline(planning)
    assert (state.status, state.validated, state.ready_for_run) == ("failed", False, False)
    assert "no data" in state.error and handle.manifest()["planning"]["handoff"] is None
    off = planning_of(project, handle, lambda _handle, _scan: Rehearsal(outcome="off"))
    again_from(handle, "ValidateWorkspace")
    state = run_pipeline(off)
    approve(handle, scan, state.validated_digest, "person")
    assert run_pipeline(off).ready_for_run


@pytest.mark.skipif(not Path(tempfile.gettempdir()).is_relative_to("/tmp"), reason="the sandbox empties /tmp alone")
def test_environment_in_the_hidden_folder_is_visible_with_its_links(project: Path, tmp_path: Path) -> None:
    """It is behind a link, as several projects share one, and one of its packages is installed in place."""
    venv.create(tmp_path / "shared", symlinks=True)
    (project / ".venv").symlink_to(tmp_path / "shared")
    (packages,) = (tmp_path / "shared").glob("lib/python3*/site-packages")
    (tmp_path / "worked_on").mkdir()
    (tmp_path / "worked_on" / "ours.py").touch()
    (packages / "ours.pth").write_text(f"import sys{' ' * 300}\n{tmp_path / 'worked_on'}\n")
    write_script(project, imports="import ours")
    handle = plan_of(project)
    with working_lab(project) as lab:
        again_from(handle, "IngestReport")
        run_pipeline(planning_of(project, handle, rehearse_on(lab, PERSON)))
    written = Rehearsal(**yaml.safe_load(handle.read("validation/rehearsal.yaml")))
    assert written.outcome == "passed", written.reason
    assert "source .venv/bin/activate" in handle.read("ir/tasks/train.yaml").decode()


def test_without_a_server_the_record_says_so(planned: Path) -> None:
    written = Rehearsal(**yaml.safe_load(plan_of(planned).read("validation/rehearsal.yaml")))
    assert written.outcome == "not_possible" and "no server" in written.reason


def test_script_that_needs_the_network_is_not_called_broken(project: Path) -> None:
    write_script(project, "import urllib.request\nurllib.request.urlopen('http://example.org', timeout=5)")
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "not_possible" and "needs the network" in rehearsal.reason


@pytest.mark.skipif(not Path(tempfile.gettempdir()).is_relative_to("/tmp"), reason="the sandbox empties /tmp alone")
def test_script_with_data_in_the_hidden_folder_is_not_called_broken(project: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    write_script(project, f"open({str(data)!r})")
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "failed" and "No such file" in rehearsal.reason  # it exists nowhere
    data.touch()
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "not_possible" and f"needs {data}, and" in rehearsal.reason


def test_gpu_code_is_not_tried_on_a_machine_without_gpus(project: Path) -> None:
    write_script(project, "if False:\n    torch.zeros(1).cuda()")
    rehearsal, started = rehearse(project)
    assert (rehearsal.outcome, started) == ("not_possible", [])
    assert "this machine has no GPU" in rehearsal.reason


@pytest.mark.parametrize(
    "line", ["if False:\n    torch.zeros(1).cuda()", "raise RuntimeError('Found no NVIDIA driver on your system.')"]
)
def test_plan_that_needs_a_gpu_is_not_validated_on_a_machine_without_gpus(project: Path, line: str) -> None:
    write_script(project, line)
    handle = plan_of(project)
    with working_lab(project) as lab:
        again_from(handle, "IngestReport")
        state = run_pipeline(planning_of(project, handle, rehearse_on(lab, PERSON)))
    report = yaml.safe_load(handle.read("validation/report.yaml"))
    assert not state.validated and not report["passed"]
    assert [finding["code"] for finding in report["findings"]] == ["cannot_run_here"]


def test_rehearsal_can_be_switched_off_and_says_so(project: Path) -> None:
    rehearsal, found = rehearse(project, enabled=False)
    assert (rehearsal.outcome, found) == ("off", [])


def test_script_without_a_shortening_flag_gets_a_time_limit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_lab, "_RUN_SECONDS", 1.5)
    write_script(project, "time.sleep(60)", flag="")
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "passed", rehearsal
    assert all(run.over_time for run in rehearsal.runs)
    assert "no flag of train.py makes a run short" in " ".join(rehearsal.notes)
    assert rehearsal.prediction is not None and rehearsal.prediction.total_seconds is None
    assert "longer than" in rehearsal.prediction.basis


def test_waiting_rehearsal_says_which_runs_it_waits_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_UNTOLD_SECONDS", 0.0)
    monkeypatch.setattr(trials, "_PATIENCE_SECONDS", 3.0)
    with working_lab(project, max_parallel=1) as lab:
        other = runs.create(lab, NewRun(name="other", command="sleep 600", auto_start=True), PERSON)
        wait_until(lambda: runs.get(lab, other.id).status is RunStatus.RUNNING, "the other run")
        handle = plan_of(project)
        tell = partial(tell_of_wait, lab, handle.id, PERSON)
        found = rehearse_on(lab, PERSON, on_wait=tell)(handle, scan_project(project))
        told = [event.data for event in events.after(lab.db.reader(), 0, 100, types=(EventType.PLAN_NODE,))]
        runs.stop(lab, other.id, PERSON, "")
        wait_until(lambda: runs.get(lab, other.id).is_terminal, "its end")
    assert [(one["node"], one["status"]) for one in told] == [("ValidateWorkspace", "waiting")]
    assert f"1 of 1 slots in use by {other.id}" in told[0]["message"]
    assert found.outcome == "not_possible" and other.id in found.reason


def test_rehearsal_sees_no_secrets_and_cannot_write_outside(project: Path) -> None:
    """The secret is the server's token, and the outside is a folder beside the project."""
    outside = project.parent / "outside"
    outside.mkdir()
    write_script(project, f"""
seen = [path for path in (".labwright/token", "/tmp/labwright-project/.labwright/token") if os.path.exists(path)]
seen += [name for name in os.environ if name == "LABWRIGHT_RUN_TOKEN"]
try:
    open({str(outside / "x")!r}, "w")
    seen.append("outside")
except OSError:
    pass
if seen:
    raise SystemExit(f"it reaches {{seen}}")
""")  # fmt: skip
    rehearsal, _found = rehearse(project)
    assert rehearsal.outcome == "passed", rehearsal.reason
    assert not list(outside.iterdir())


KILLED = """
import sys
import tempfile
import venv
from pathlib import Path
from tests.acceptance.test_rehearsal import rehearse
rehearse(Path(sys.argv[1]))
"""


def test_copies_left_by_a_kill_are_removed_at_the_next_start(project: Path) -> None:
    write_script(project, "while os.path.exists('/tmp/labwright-project/hold.txt'):\n    time.sleep(0.02)")
    (project / "hold.txt").touch()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(project)], env=environment, stderr=subprocess.DEVNULL)
    copies = project / ".labwright" / "rehearsals"
    try:
        wait_until(lambda: list((project / ".labwright" / "runs").glob("*/events.jsonl")), "a run to start", 60)
        assert list(copies.iterdir())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (project / "hold.txt").unlink()
    with working_lab(project) as lab:
        wait_until(lambda: all(run.is_terminal for run in runs_of_plan(lab, plan_of(project))), "its runs to end", 60)
    with working_lab(project):
        assert not list(copies.iterdir())


def test_interrupted_rehearsal_continues_and_starts_nothing_twice(project: Path) -> None:
    handle, token = plan_of(project), json.dumps({"token": "abcdef"}).encode()
    handle.write("validation/rehearsal.pending.json", token)
    first, _found = rehearse(project)
    handle.write("validation/rehearsal.pending.json", token)
    again, found = rehearse(project)
    assert [run.run_id for run in again.runs] == [run.run_id for run in first.runs] and len(found) == len(first.runs)
    other, _found = rehearse(project)
    assert {run.run_id for run in other.runs}.isdisjoint({run.run_id for run in first.runs})
