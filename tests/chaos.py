"""`make chaos`: the crash tests, larger and longer.

The script kills servers, helpers, monitors, supervisors and tmux at random, fills the disk or makes it slow, sets the
clock, and suspends the server for a while. In parallel it kills the controller of a Slurm that has its own runs.

Invariants: every run ends exactly once; no command runs twice; a run whose end was observed has its true exit code
and a complete log; two runs never hold the same GPU.

CHAOS_SECONDS, CHAOS_SEED and CHAOS_SLURM=0 can be set. Filling the disk needs root, to mount a small file system.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from labwright.processes import children_of, processes_of_run, start_time
from labwright.sim.gpus import SimulatedGpus
from labwright.sim.slurm import SimulatedSlurm, SlurmDidNotStart, SlurmSize, simulated_slurm
from tests.support.live_server import ENDED, LiveServer
from tests.support.slurm import slurm_server
from tests.support.troubled import Troubles

ACTIVE_TARGET = 30
DISK_MB = 400
HARMS = (
    "server",
    "server",
    "helper",
    "monitor",
    "monitor",
    "supervisor",
    "tmux",
    "full disk",
    "clock",
    "slow disk",
    "standstill",
)
JUMPS = (-7200, -60, 60, 7200)  # clock offsets, in seconds
SLOWNESS = (50, 500)  # disk delays, in milliseconds for each fsync
COMMAND = """printf x >> '{ran}'
mkdir "{rooms}/$CUDA_VISIBLE_DEVICES" || exit 66
for i in 1 2 3 4 5; do echo line $i; done; sleep {seconds:.2f}; for i in 6 7 8 9 10; do echo line $i; done
rmdir "{rooms}/$CUDA_VISIBLE_DEVICES"; exit {code}"""
WHOLE = "".join(f"line {i}\n" for i in range(1, 11))


class PatientServer(LiveServer):
    """A server with a longer start timeout, for slow disks and controllers."""

    start_seconds = 120.0


class Chaos:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.rooms = folder / "rooms"
        self.ran = folder / "ran"
        self.disk = folder / "disk"
        for made in (self.rooms, self.ran, self.disk):
            made.mkdir()
        self.can_fill = _mount(self.disk)
        (self.disk / "project").mkdir()
        self.troubles = Troubles(folder)
        cards = SimulatedGpus.create(folder / "sim", 4)
        around = {**cards.environment(os.environ), "LABWRIGHT_LEASE_DIR": str(folder / "leases")}
        around |= {"LABWRIGHT_TMUX": "1", "TMUX_TMPDIR": str(folder)}
        self.server = PatientServer(self.disk / "project", **self.troubles.environment(around)).start()
        self.codes: dict[str, int] = {}
        self.bereaved: set[str] = set()  # runs whose supervisor was killed: they must end as lost
        self.starved: set[str] = set()  # runs that may have printed while the disk was full: their log has a gap
        self.kills: Counter[str] = Counter()

    def submit_some(self) -> None:
        active = sum(1 for run in self.server.get("/runs?limit=200") if run["status"] not in ENDED)
        for _ in range(active, ACTIVE_TARGET):
            number = len(self.codes)
            code = number % 5
            command = COMMAND.format(
                ran=self.ran / str(number), rooms=self.rooms, seconds=self.chance.uniform(0.05, 1.5), code=code
            )
            run = self.server.submit(command, name=str(number))
            self.codes[run["id"]] = code

    def harm(self) -> None:
        what = self.chance.choice([name for name in HARMS if name != "full disk" or self.can_fill])
        deeds = {
            "server": self.server.restart,
            "helper": lambda: self._kill_one(children_of(self._process)),
            "tmux": self._kill_tmux,
            "full disk": self._fill_disk,
            "standstill": self._stall,
            "slow disk": lambda: self.troubles.make(disk_milliseconds=self.chance.choice(SLOWNESS)),
            "clock": lambda: self.troubles.make(clock_seconds=self.chance.choice(JUMPS)),
        }
        deeds.get(what, lambda: self._kill_sidecar(what))()
        self.kills[what] += 1

    @property
    def _process(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def _kill_tmux(self) -> None:
        asked = ["tmux", "display-message", "-p", "#{pid}"]
        said = subprocess.run(asked, env=self.server.environment, capture_output=True, text=True, check=False)
        self._kill_one([int(said.stdout)] if said.stdout.strip().isdecimal() else [])

    def _fill_disk(self) -> None:
        """Fill the disk for a moment. Half of the time, kill the server while nothing can be written."""
        self.starved |= self._unfinished()
        ballast = self.disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * (1 << 20))
            except OSError:
                pass
        time.sleep(self.chance.uniform(0.1, 1.5))
        if self.chance.random() < 0.5:
            self.server.kill()
        ballast.unlink()
        if self.server.process and self.server.process.poll() is not None:
            self.server.start()

    def _stall(self) -> None:
        """Suspend the whole server, as a suspended machine does."""
        os.kill(self._process, signal.SIGSTOP)
        time.sleep(self.chance.uniform(0.1, 3.0))
        os.kill(self._process, signal.SIGCONT)

    def _unfinished(self) -> set[str]:
        return {run["id"] for run in self.server.all_runs() if run["status"] not in ENDED}

    def _kill_sidecar(self, what: str) -> None:
        folders = (self.server.state / "runs").iterdir()
        claims = [run / "claim" for run in folders if (run / "claim").exists() and not (run / "exit.json").exists()]
        self.chance.shuffle(claims)
        for claim in claims:
            supervisor = json.loads(claim.read_text())["pid"]
            jobs = processes_of_run(claim.parent.name)
            if start_time(supervisor) is None or not jobs:
                continue
            if what == "supervisor":
                self.bereaved.add(claim.parent.name)
                self._kill_one([supervisor])
            else:
                self._kill_one([pid for pid in children_of(supervisor) if pid not in jobs])
            return

    def _kill_one(self, pids: list[int]) -> None:
        for pid in pids[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def settle(self) -> None:
        deadline = time.monotonic() + 120
        while any(run["status"] not in ENDED for run in self.server.all_runs()):
            if time.monotonic() > deadline:
                raise AssertionError("runs did not end within two minutes of calm")
            time.sleep(0.2)

    def close(self) -> None:
        self.server.stop()
        subprocess.run(["tmux", "kill-server"], env=self.server.environment, capture_output=True, check=False)
        if self.can_fill:
            subprocess.run(["umount", "-l", str(self.disk)], check=True)

    def faults(self) -> list[str]:
        self.troubles.make()
        self.server.restart()
        found = {run["id"]: run for run in self.server.all_runs()}
        faults = [f"{run_id} is missing" for run_id in self.codes if run_id not in found]
        for run_id, run in found.items():
            ran = self.ran / run["name"]
            if (ran.read_text() if ran.exists() else "") not in ("x",) and run["status"] != "lost":
                faults.append(f"{run_id} did not run exactly once")
            if run["status"] == "lost":
                if run_id not in self.bereaved:
                    faults.append(f"{run_id} is lost though nobody killed its supervisor: {run['error']}")
            elif run["exit_code"] != self.codes[run_id]:
                faults.append(f"{run_id} ended with {run['exit_code']}, not {self.codes[run_id]}")
            elif run_id not in self.starved and self.server.output(run_id) != WHOLE:
                faults.append(f"{run_id}: its log is not whole")
        return faults


def _mount(point: Path) -> bool:
    """Mount a small file system, so that only this test's disk is full."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "none", str(point)]
    return subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode == 0


class SlurmChaos:
    """Runs on a small Slurm. Its controller and the server in front of it are killed and restarted."""

    def __init__(self, folder: Path, cluster: SimulatedSlurm, chance: random.Random) -> None:
        self.chance, self.cluster, self.folder = chance, cluster, folder
        self.server = slurm_server(folder / "slurm", cluster)
        self.server.start_seconds = PatientServer.start_seconds
        self.server.start()
        self.codes: dict[str, int] = {}
        self.kills: Counter[str] = Counter()

    def step(self, end: float) -> None:
        while time.monotonic() < end:
            for _ in range(4):
                number = len(self.codes)
                command = f"echo once >> '{self.folder}/slurm-ran-{number}'; sleep 0.5; exit {number % 3}"
                self.codes[self.server.submit(command, name=str(number))["id"]] = number % 3
            time.sleep(self.chance.uniform(1.0, 4.0))
            self.harm()
            self._resume_nodes()

    def harm(self) -> None:
        what = self.chance.choice(["slurmctld", "slurmctld", "server in front of Slurm"])
        if what == "slurmctld":
            self.cluster.kill_controller()
            time.sleep(self.chance.uniform(0.1, 3.0))
            self.cluster.start_controller()
        else:
            self.server.restart()
        self.kills[what] += 1

    def faults(self) -> list[str]:
        self._settle()
        return [fault for run_id, code in self.codes.items() for fault in self._faults_of(run_id, code)]

    def _settle(self) -> None:
        """Release the jobs that Slurm held when its controller died. An alert asks a person to do this."""
        deadline = time.monotonic() + 900
        while any(run["status"] not in ENDED for run in self.server.all_runs()) and time.monotonic() < deadline:
            waiting = self.cluster.client("squeue", "-h", "-r", "-t", "PD", "-o", "%i %r").splitlines()
            for job in {line.split()[0] for line in waiting if "held" in line}:
                self.cluster.client("scontrol", "release", job)
                self.kills["job released"] += 1
            self._resume_nodes()
            time.sleep(1)

    def _resume_nodes(self) -> None:
        """Resume nodes that Slurm drained.

        A killed controller reuses job numbers that it forgot. Slurm drains the nodes that still know them ("Duplicate
        jobid"), and a person has to resume them.
        """
        drained = [line.split()[0] for line in self._nodes() if "drain" in line.split()[1]]
        for node in drained:
            with contextlib.suppress(SlurmDidNotStart):  # it is being resumed already, or does not respond yet
                self.cluster.client("scontrol", "update", f"nodename={node}", "state=resume")
                self.kills["node given back"] += 1

    def _nodes(self) -> list[str]:
        return self.cluster.client("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").splitlines()

    def _faults_of(self, run_id: str, code: int) -> Iterator[str]:
        run = self.server.run(run_id)
        if run["status"] not in ENDED:
            yield f"{run_id} on Slurm did not end: {run['status']}, {run['status_reason']}"
            return
        trace = self.folder / f"slurm-ran-{run['name']}"
        ran = trace.read_text() if trace.exists() else ""
        if run["status"] == "lost" and "Slurm knows nothing of job" in run["error"]:
            self.kills["job that a killed controller forgot"] += 1  # Slurm saves submitted jobs only at intervals
            if ran:
                yield f"{run_id} on Slurm was forgotten, and ran"
        elif (run["exit_code"], ran) != (code, "once\n"):
            yield f"{run_id} on Slurm: {run['status']}, {run['exit_code']}, not {code}; ran {ran!r}: {run['error']}"


def main() -> None:
    seconds = float(os.environ.get("CHAOS_SECONDS", "900"))
    seed = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))
    print(f"chaos for {seconds:g} s, seed {seed}", flush=True)
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="labwright-chaos-") as folder, ThreadPoolExecutor() as pool:
        parts = [pool.submit(_on_this_machine, Path(folder), seed, seconds)]
        if os.environ.get("CHAOS_SLURM", "1") == "1":
            parts.append(pool.submit(_on_slurm, Path(folder), seed, seconds))
        for part in parts:
            faults += part.result()
    print(f"faults: {len(faults)}", *faults, sep="\n  ")
    sys.exit(1 if faults else 0)


def _on_this_machine(folder: Path, seed: int, seconds: float) -> list[str]:
    chaos = Chaos(folder, seed)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            chaos.submit_some()
            time.sleep(chaos.chance.uniform(0.0, 0.8))
            chaos.harm()
        chaos.settle()
        faults = chaos.faults()
    finally:
        chaos.close()
    print(f"{len(chaos.codes)} runs; {dict(chaos.kills)}", flush=True)
    return faults


def _on_slurm(folder: Path, seed: int, seconds: float) -> list[str]:
    with simulated_slurm(SlurmSize(nodes=2, gpus=0)) as cluster:
        chaos = SlurmChaos(folder, cluster, random.Random(seed))
        try:
            chaos.step(time.monotonic() + seconds)
            faults = chaos.faults()
        finally:
            chaos.server.stop()
    print(f"{len(chaos.codes)} runs on Slurm; {dict(chaos.kills)}", flush=True)
    return faults


if __name__ == "__main__":
    main()
