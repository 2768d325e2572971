"""`make chaos`: the crash tests, larger and longer. Kills servers, helpers, monitors and supervisors at random.

Invariants: every run ends exactly once; no command ran twice; what was witnessed has its true exit code; every log
of a witnessed run is whole; a card is never held by two runs. CHAOS_SECONDS and CHAOS_SEED are settable.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from labwright.processes import children_of, processes_of_run, start_time
from labwright.sim.gpus import SimulatedGpus
from tests.support.live_server import ENDED, LiveServer

ACTIVE_TARGET = 30
COMMAND = """printf x >> '{ran}'
mkdir "{rooms}/$CUDA_VISIBLE_DEVICES" || exit 66
for i in 1 2 3 4 5; do echo line $i; done; sleep {seconds:.2f}; for i in 6 7 8 9 10; do echo line $i; done
rmdir "{rooms}/$CUDA_VISIBLE_DEVICES"; exit {code}"""
WHOLE = "".join(f"line {i}\n" for i in range(1, 11))


class Chaos:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rooms = folder / "rooms"
        self.ran = folder / "ran"
        for made in (self.rooms, self.ran, folder / "project"):
            made.mkdir()
        cards = SimulatedGpus.create(folder / "sim", 4)
        self.server = LiveServer(folder / "project", **cards.environment(os.environ)).start()
        self.codes: dict[str, int] = {}
        self.bereaved: set[str] = set()  # runs whose supervisor we killed: lost is their truth
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
        what = self.chance.choice(["server", "server", "helper", "monitor", "monitor", "supervisor"])
        if what == "server":
            self.server.restart()
        elif what == "helper":
            self._kill_one(children_of(self.server.process.pid) if self.server.process else [])
        else:
            self._kill_sidecar(what)
        self.kills[what] += 1

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

    def faults(self) -> list[str]:
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
            elif self.server.output(run_id) != WHOLE:
                faults.append(f"{run_id}: its log is not whole")
        return faults


def main() -> None:
    seconds = float(os.environ.get("CHAOS_SECONDS", "120"))
    seed = int(os.environ.get("CHAOS_SEED", str(int(time.time()))))
    print(f"chaos for {seconds:g} s, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="labwright-chaos-") as folder:
        chaos = Chaos(Path(folder), seed)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            chaos.submit_some()
            time.sleep(chaos.chance.uniform(0.0, 0.8))
            chaos.harm()
        chaos.settle()
        faults = chaos.faults()
        chaos.server.stop()
        print(f"{len(chaos.codes)} runs; kills: {dict(chaos.kills)}; faults: {len(faults)}")
        for fault in faults:
            print(f"  {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
