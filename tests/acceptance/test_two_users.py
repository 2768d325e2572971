"""Servers of two users on one machine share only its cards."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labwright.gpu.lease import holders
from labwright.sim.gpus import SimulatedGpus
from tests.support.live_server import ENDED, LiveServer
from tests.support.other_user import TestUser
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making users takes root")

# Inside each job: a run enters a card by making a folder, which fails if another run is in it.
JOB = """
for card in ${CUDA_VISIBLE_DEVICES//,/ }; do mkdir "$ROOMS/$card" || { echo SHARED "$card"; exit 66; }; done
sleep 0.3
for card in ${CUDA_VISIBLE_DEVICES//,/ }; do rmdir "$ROOMS/$card"; done
"""


@pytest.fixture
def people(stage: Path) -> Iterator[list[TestUser]]:
    made = [TestUser(f"lw-{name}-{os.getpid() % 100000}", stage) for name in ("ada", "bob")]
    yield made
    for user in made:
        subprocess.run(["pkill", "-KILL", "-u", str(user.uid)], check=False)  # nothing of theirs may stay
        wait_until(
            lambda uid=user.uid: not subprocess.run(["pgrep", "-u", str(uid)], capture_output=True).stdout, "quiet"
        )
        user.remove()


def server_of(user: TestUser, stage: Path, cards: SimulatedGpus) -> LiveServer:
    project = user.make_folder(stage / user.name)
    server = LiveServer(project)
    server.environment = {
        **cards.environment(user.environment(project)),
        "LABWRIGHT_PORT": "0",
        "LABWRIGHT_TMUX": "0",
        "LABWRIGHT_LEASE_DIR": str(stage / "leases"),
        "ROOMS": str(stage / "rooms"),
    }
    server.command = user.command(user.python, "-P", "-m", "labwright.server", "--project", str(project))
    return server.start()


@pytest.fixture
def servers(people: list[TestUser], stage: Path) -> Iterator[list[LiveServer]]:
    for name in ("rooms", "leases", "cache"):
        (stage / name).mkdir()
        (stage / name).chmod(0o1777)
    cards = SimulatedGpus.create(stage / "sim", 4)
    os.environ["XDG_CACHE_HOME"], before = str(stage / "cache"), os.environ.get("XDG_CACHE_HOME")
    found = [server_of(user, stage, cards) for user in people]
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    yield found
    for server in found:
        server.stop()


def test_forty_runs_of_two_users_never_share_a_card_and_leave_none_idle(servers: list[LiveServer], stage: Path) -> None:
    wanted = [
        (server, server.submit(JOB, gpus=2 if index % 7 == 0 else 1, gpuwrap_config={"enabled": True})["id"])
        for index in range(20)
        for server in servers
    ]
    idle_since: float | None = None
    longest_idle = 0.0

    def all_ended() -> bool:
        nonlocal idle_since, longest_idle
        runs = [run for server in servers for run in server.all_runs()]
        waiting = [run for run in runs if run["status"] in ("queued", "waiting") and run["gpus"] == 1]
        free = 4 - len(holders(str(stage / "leases")))
        if waiting and free:
            idle_since = idle_since or time.monotonic()
            longest_idle = max(longest_idle, time.monotonic() - idle_since)
        else:
            idle_since = None
        return all(run["status"] in ENDED for run in runs)

    wait_until(all_ended, "all forty runs to end", 120)
    for server, run_id in wanted:
        run = server.run(run_id)
        assert run["status"] == "finished", (run, server.output(run_id))
    assert longest_idle < 3.0


def test_other_user_cannot_read_or_stop_anything(servers: list[LiveServer], people: list[TestUser]) -> None:
    ada, bob = servers
    run = ada.wait_for_status(ada.submit("echo private; sleep 1000")["id"], "running")
    assert stat.S_IMODE(ada.state.stat().st_mode) == 0o700
    secrets = ["token", "labwright.db", "server.json", f"runs/{run['id']}/output.log", f"runs/{run['id']}/env.json"]
    script = f"""
import os, pathlib, signal, sys
for name in {secrets!r}:
    try:
        pathlib.Path({str(ada.state)!r}, name).read_bytes(); sys.exit(f"could read {{name}}")
    except PermissionError: pass
try:
    os.kill({run["pid"]}, signal.SIGTERM); sys.exit("could signal the job")
except PermissionError: pass
"""
    command = people[1].command(people[1].python, "-c", script)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=people[1].environment(bob.project))
    assert done.returncode == 0, done.stderr
    for token in (bob.token, "", "nonsense"):
        answer = ada.call("POST", f"/runs/{run['id']}/stop", headers={"X-Auth-Token": token}, token=None)
        assert answer.status == 401
    assert ada.run(run["id"])["status"] == "running"
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert ada.token not in listing
    ada.post(f"/runs/{run['id']}/stop")
    ada.wait_for_status(run["id"], "stopped")
