"""The runs of one rehearsal: started in a throw-away copy, waited for, cleared up.

What it makes is named by a token that a kill leaves behind, so that it goes on and not anew.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.cluster import ClusterType
from labwright.domain.errors import Conflict
from labwright.domain.ids import RUN, id_of
from labwright.domain.run import REHEARSAL, Run, RunStatus
from labwright.planning.ir.model import PlanIR
from labwright.planning.project.contained import project_python
from labwright.planning.rehearsal.code_paths import Config
from labwright.planning.rehearsal.fence import fenced
from labwright.planning.rehearsal.project_copy import make_copy
from labwright.planning.rehearsal.record import RehearsedRun
from labwright.planning.rehearsal.shortening import Shortening
from labwright.planning.runs.last_words import last_words
from labwright.planning.runs.waiting import wait_for
from labwright.planning.scan import ProjectScan
from labwright.sandbox.fences import only_where_it_works
from labwright.services.runs import verbs as run_verbs
from labwright.services.runs.new_run import NewRun
from labwright.services.runs.queue import with_reason
from labwright.store import runs
from labwright.workflow import Configuration, Experiment
from labwright.workspace import PlanWorkspaceHandle

OnWait = Callable[[str], None]  # is told why, in words
_PATIENCE_SECONDS = 600.0  # for the queue of a busy machine
_UNTOLD_SECONDS = 3.0  # so long a run may stand in the queue without a word about it
_IN_LINE = (RunStatus.QUEUED, RunStatus.WAITING)
_PENDING = "validation/rehearsal.pending.json"
_WORDS = 6


class Trials:
    def __init__(
        self,
        lab: Lab,
        actor: Actor,
        handle: PlanWorkspaceHandle,
        scan: ProjectScan,
        ir: PlanIR,
        seconds: float,
        on_wait: OnWait,
    ) -> None:
        self._lab, self._actor, self._handle, self._scan, self._ir = lab, actor, handle, scan, ir
        self._seconds, self._on_wait = seconds, on_wait
        self._token = _token(handle)
        self._copy = lab.paths.rehearsals / self._token
        self._experiment = Experiment(ir.experiment.id, ir.experiment.command, switches=ir.experiment.switches)
        self._made: list[str] = []
        self._is_wait_told = False
        if not self._copy.exists():
            self._copy.parent.mkdir(mode=0o700, exist_ok=True)
            make_copy(Path(scan.folder), self._copy)

    def start(self, config: Config, short: Shortening | None, amount: object) -> None:
        """So long as `amount` says, or as the time limit does."""
        seeds = self._ir.workflow.grid.seeds
        seed = seeds[0] if seeds else None
        command = self._experiment.command_for(Configuration(config, seed), {})
        if short is not None:
            command = short.apply(command, amount, self._scan.environment.activation)
        wanted = NewRun(
            id=self._id(config, short, amount),
            name=f"rehearsal of {self._ir.experiment.id}",
            command=self._fenced(command),
            plan_id=self._handle.id,
            tags=(REHEARSAL,),
            params=config,
            seed=seed,
            workdir=str(self._copy),
            gpus=self._ir.experiment.resources.gpus or None,
            time_limit_seconds=self._seconds,
            auto_start=True,
        )
        self._made.append(run_verbs.create(self._lab, wanted, self._actor).id)

    def _fenced(self, command: str) -> str:
        cluster = self._lab.cluster.current.type
        on_slurm = cluster is ClusterType.SLURM
        gpus = bool(self._ir.experiment.resources.gpus) if on_slurm else cluster is ClusterType.LOCAL_GPU
        python = project_python(self._scan)
        line = fenced(self._lab, Path(self._scan.folder), self._copy, command, python, gpus=gpus)
        return only_where_it_works(line) if on_slurm else line

    def finish(
        self, config: Config, short: Shortening | None, amount: object, stopping: threading.Event
    ) -> RehearsedRun:
        run = self._ended(self._id(config, short, amount), stopping)
        over_time = run.status_reason == "time_limit"
        failed = run.status is not RunStatus.FINISHED and not over_time
        return RehearsedRun(
            run_id=run.id,
            params=run.params,
            seed=run.seed,
            shortened_by=short.words(amount) if short else "",
            status=str(run.status),
            over_time=over_time,
            seconds=round(float(run.usage.get("wall_seconds", 0.0)), 2),
            memory_mb=run.usage.get("max_memory_mb"),
            is_whole=short is None or short.is_whole(amount),
            reported=self._ir.workflow.grid.metric.name in run.summary,
            said=(last_words(self._lab, run, _WORDS) or run.error or run.status_reason) if failed else "",
        )

    def clear_up(self) -> None:
        for run_id in self._made:
            with contextlib.suppress(Conflict):  # most have ended
                run_verbs.stop(self._lab, run_id, self._actor, "the rehearsal is over")
        shutil.rmtree(self._copy, ignore_errors=True)
        forget_rehearsal(self._handle)

    def _id(self, config: Config, short: Shortening | None, amount: object) -> str:
        length = short.words(amount) if short else ""
        return id_of(RUN, json.dumps([self._token, config, length], sort_keys=True).encode())

    def _ended(self, run_id: str, stopping: threading.Event) -> Run:
        began = time.monotonic()

        def look() -> Run | None:
            run = runs.get(self._lab.db.reader(), run_id)
            if run.is_terminal:
                return run
            waited = time.monotonic() - began
            if waited > _PATIENCE_SECONDS:
                raise Conflict(f"no place was free for {_PATIENCE_SECONDS / 60:g} min: {_standing(self._lab, run)}.")
            if waited > _UNTOLD_SECONDS and run.status in _IN_LINE:
                self._tell_of_wait(run)
            return None

        return wait_for(self._lab, look, stopping)

    def _tell_of_wait(self, run: Run) -> None:
        """Once: who looks on would else take it for a hang."""
        if self._is_wait_told:
            return
        self._is_wait_told = True
        words = f"the rehearsal has to wait, for {_PATIENCE_SECONDS / 60:g} min at most: {_standing(self._lab, run)}"
        self._on_wait(words)


def _standing(lab: Lab, run: Run) -> str:
    why = with_reason(lab, run).status_reason or "the machine is busy with other runs"
    return f"{run.id} is {run.status}: {why}"


def forget_rehearsal(handle: PlanWorkspaceHandle) -> None:
    """The next one begins with runs of its own; copies that no run needs go at the next start."""
    (handle.paths.dir / _PENDING).unlink(missing_ok=True)


def _token(handle: PlanWorkspaceHandle) -> str:
    """Of the rehearsal that a kill interrupted, else a new one."""
    try:
        known = json.loads(handle.read(_PENDING))["token"]
        return known if isinstance(known, str) and known.isalnum() else _new_token(handle)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return _new_token(handle)


def _new_token(handle: PlanWorkspaceHandle) -> str:
    token = secrets.token_hex(8)
    handle.write(_PENDING, json.dumps({"token": token}).encode())
    return token
