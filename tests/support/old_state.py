"""State folders of earlier versions: make one with the current version, and unpack one for a test.

    python -m tests.support.old_state 0.1.0   # writes tests/fixtures/state-0.1.0.tar.xz

The archive has `project/` (scripts, and `.labwright/` as a killed server leaves it), `package/` (the sidecar of that
version, so that a test can start it) and `facts.json` (responses of the server of that version).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import labwright
from labwright.processes import children_of
from tests.support.live_server import LiveServer
from tests.support.planning import FRAGILE, approved, execute, executed, request_plan, when_idle
from tests.support.waiting import wait_until

FIXTURES = Path(__file__).parents[1] / "fixtures"
_MODULES = ("__init__.py", "version.py", "paths.py", "files.py", "hashes.py", "processes.py")
_PACKAGES = ("domain", "gpu", "sidecar")
Json = dict[str, Any]

TRAIN = """
import argparse, os, random, time
import labwright

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--hold", action="store_true")
options = parser.parse_args()
labwright.init(config=vars(options))
noise = random.Random(options.seed).gauss(0, 0.005)
for step in range(5):
    labwright.log({"loss": 1 / (step + 1)}, step=step)
print(f"val_acc={0.95 - 2 * abs(options.lr - 0.3) + noise:.5f}", flush=True)
while os.path.exists("hold") and options.hold:
    time.sleep(0.05)
"""


def make(version: str) -> Path:
    with tempfile.TemporaryDirectory(prefix="labwright-state-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        server = LiveServer(project, LABWRIGHT_MAX_PARALLEL="16").start(cold=True)
        facts = {"version": version, "project": str(project), **_fill(server)}
        package = Path(folder) / "package" / "labwright"
        package.mkdir(parents=True)
        source = Path(labwright.__file__).parent
        for name in _MODULES:
            shutil.copy(source / name, package)
        for name in _PACKAGES:
            shutil.copytree(source / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True))
        target = FIXTURES / f"state-{version}.tar.xz"
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for name in ("facts.json", "package", "project"):
                archive.add(Path(folder) / name, name, filter=_plain)
        for held in facts["pids"]:
            os.kill(held, signal.SIGKILL)
        return target


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out sockets, pipes, bytecode and the name of the user who made the archive."""
    if "__pycache__" in member.name or not (member.isfile() or member.isdir() or member.issym()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _fill(server: LiveServer) -> Json:
    """Create one of everything a project can hold. Some of it is still in progress when the server is killed."""
    project = server.project
    (project / "train.py").write_text(TRAIN)
    (project / "fragile.py").write_text(FRAGILE)
    facts: Json = {"runs": {}, "plans": {}, "wild": {}, "sessions": {}, "sweeps": {}}

    finished = server.submit(
        "python3 train.py --lr 0.2", name="finished", tags=["baseline"], params={"lr": 0.2}, seed=0
    )
    failed = server.submit("python3 train.py --lr banana", name="failed")
    stopped = server.submit("sleep 1000", name="stopped")
    with_code = server.submit("python3 train.py", name="with code", use_snapshot=True)
    server.wait_for_status(stopped["id"], "running")
    server.post(f"/runs/{stopped['id']}/stop")
    for run in (finished, failed, stopped, with_code):
        server.wait_for_end(run["id"])
    server.call("PATCH", f"/runs/{finished['id']}", {"notes": "The first one that worked."})
    server.post(f"/runs/{stopped['id']}/archive")
    server.post("/runs", {"command": "true", "name": "ready"})

    grid = {
        "name": "lr by seed",
        "base_command": "python3 train.py",
        "parameters": {"lr": [0.1, 0.3]},
        "seeds": 2,
        "metric": {"key": "val_acc", "goal": "max"},
        "auto_start": True,
    }
    sweep = server.post("/sweeps", grid)
    wait_until(lambda: server.get(f"/sweeps/{sweep['id']}")["status"] == "completed", "the sweep to end", 120)
    joined = server.post("/sweeps/wild", {"name": "by hand", "goal": "which lr?"})
    run = server.submit("python3 train.py --lr 0.25", name="joined", sweep_id=joined["id"])
    server.wait_for_end(run["id"])

    draft = server.post(
        "/plans", {"title": "Only words", "goal": "lr", "raw_markdown": "## 📋 Plan: lr\n### Objective\nlr.\n"}
    )
    goal = "lr 0.1 and 0.3 for fragile.py, 2 seeds, lowest loss"
    completed = when_idle(server, request_plan(server, goal))["id"]
    approved(server, completed)
    execute(server, completed)
    executed(server, completed)
    ready = when_idle(server, request_plan(server, "lr 0.2 and 0.4 for fragile.py, 2 seeds, lowest loss"))["id"]
    approved(server, ready)

    talk = server.post("/sessions", {"title": "Questions"})
    for message in (
        "what failed?",
        "show me the run finished",
        "best run by val_acc",
        "rerun finished",
        "stop run ready",
    ):
        server.say(talk["id"], message)
    plan_talk = server.post("/sessions", {"title": "Planning", "mode": "plan"})
    server.say(plan_talk["id"], "lr 0.1 and 0.2 for train.py, 2 seeds, highest val_acc")
    server.call("POST", "/memories", {"text": "The learning rate 0.3 works best."})

    done = server.post("/wild/start", {"goal": "lr 0.2 and 0.3: reach val_acc 0.9", "budget": {"runs": 12}})["id"]
    wait_until(lambda: server.get(f"/wild/{done}")["status"] not in ("running", "waiting"), "the loop to end", 180)

    (project / "hold").touch()
    held = server.submit("python3 train.py --hold", name="running")
    server.wait_for_status(held["id"], "running")
    server.submit("true", name="queued", after=[held["id"]])
    executing = when_idle(server, request_plan(server, "lr 0.15 and 0.35 for fragile.py, 2 seeds, lowest loss"))["id"]
    approved(server, executing)
    execute(server, executing)
    wait_until(lambda: _active(server, executing), "the plan's first run", 120)
    loop = server.post("/wild/start", {"goal": "lr 0.2 and 0.3: reach val_acc 0.9", "budget": {"runs": 12}})["id"]
    wait_until(lambda: server.get(f"/wild/{loop}")["iterations"], "the loop's first try", 60)

    assert server.process is not None
    helper = next(pid for pid in children_of(server.process.pid) if b"prefork" in _command_line(pid))
    os.kill(helper, signal.SIGSTOP)
    launching = server.submit(
        "echo begun; while [ -e hold ]; do sleep 0.05; done; echo over; exit 3", name="launching", priority=9
    )
    wait_until(lambda: (server.state / "runs" / launching["id"] / "spec.json").exists(), "its folder")

    runs = {run["id"]: run for run in server.all_runs()}
    facts["runs"] = runs
    facts["metrics"] = {finished["id"]: server.get(f"/runs/{finished['id']}/metrics")}
    facts["sweeps"] = {one["id"]: one for one in server.get("/sweeps")}
    facts["plans"] = {one: server.get(f"/plans/{one}") for one in (draft["id"], completed, ready, executing)}
    facts["wild"] = {one: server.get(f"/wild/{one}") for one in (done, loop)}
    facts["sessions"] = {one: server.get(f"/sessions/{one}") for one in (talk["id"], plan_talk["id"])}
    facts["named"] = {
        "held": held["id"], "launching": launching["id"], "finished": finished["id"], "failed": failed["id"],
        "draft": draft["id"], "completed": completed, "approved": ready, "executing": executing,
        "loop": loop, "talk": talk["id"], "plan_talk": plan_talk["id"],
    }  # fmt: skip
    server.kill()
    os.kill(helper, signal.SIGKILL)
    claims = [json.loads(path.read_text()) for path in server.state.glob("runs/*/claim")]
    facts["pids"] = [claim["pid"] for claim in claims if os.path.exists(f"/proc/{claim['pid']}")]
    return facts


def _active(server: LiveServer, plan_id: str) -> bool:
    return any(run["plan_id"] == plan_id and run["status"] == "running" for run in server.all_runs())


def _command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def unpack(version: str, folder: Path) -> Json:
    """Unpack the state into `folder`, adapt its paths to the new place, and return its facts."""
    with tarfile.open(FIXTURES / f"state-{version}.tar.xz") as archive:
        archive.extractall(folder, filter="tar")
    facts: Json = json.loads((folder / "facts.json").read_text())
    for file in (folder / "project" / ".labwright" / "runs").glob("*/*.json"):
        text = file.read_text()
        file.write_text(text.replace(str(Path(facts["project"]).parent), str(folder)))
    return facts


def start_sidecar(folder: Path, run_id: str) -> subprocess.Popen[bytes]:
    """Start the sidecar of that version, for a run that its server had started to launch."""
    sidecar = folder / "package" / "labwright" / "sidecar" / "__main__.py"
    run_dir = folder / "project" / ".labwright" / "runs" / run_id
    return subprocess.Popen([sys.executable, "-I", "-S", str(sidecar), "run", str(run_dir)], start_new_session=True)


if __name__ == "__main__":
    print(make(sys.argv[1]))
