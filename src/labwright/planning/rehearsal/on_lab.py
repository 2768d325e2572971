"""Rehearse on a server: tracked runs with the tag `rehearsal`, of no sweep, so that their numbers are never results."""

from __future__ import annotations

import threading

from labwright.compute.lab import Lab
from labwright.compute.scheduler import capacity_of
from labwright.domain.actor import Actor
from labwright.domain.cluster import ClusterType
from labwright.domain.errors import Conflict, Invalid
from labwright.domain.run import RunStatus
from labwright.planning.ir.model import PlanIR, read_ir
from labwright.planning.rehearsal.code_paths import Config, paths_to_try
from labwright.planning.rehearsal.fence import missed
from labwright.planning.rehearsal.prediction import Measured, around, is_telling, predict, run_seconds
from labwright.planning.rehearsal.record import Prediction, Rehearsal, Rehearse, RehearsedRun
from labwright.planning.rehearsal.shortening import Shortening, scaling, shortenings
from labwright.planning.rehearsal.trials import OnWait, Trials
from labwright.planning.scan import EntryPoint, ProjectScan
from labwright.sandbox import containment
from labwright.sandbox.fences import NO_SANDBOX
from labwright.workspace import PlanWorkspaceHandle

_RUN_SECONDS = 30.0  # longer than that nothing is tried
_MEASURED = 2  # configurations: the first and the last of those that are tried
_LONGER, _TRIES = 10, 2  # a rate is looked for in runs so many times as long, so often
_NEEDS_NETWORK = (
    "Name or service not known", "Temporary failure in name resolution", "Network is unreachable",
    "Could not resolve host", "ConnectionError", "URLError", "Failed to establish a new connection",
    "offline mode is enabled",
)  # fmt: skip
_NO_GPU = "this machine has no GPU"
_NEEDS_GPU = ("No CUDA GPUs are available", "Found no NVIDIA driver", "not compiled with CUDA", "CUDA driver")


def rehearse_on(
    lab: Lab,
    actor: Actor,
    *,
    enabled: bool = True,
    stopping: threading.Event | None = None,
    on_wait: OnWait = lambda _why: None,
) -> Rehearse:
    def rehearse(handle: PlanWorkspaceHandle, scan: ProjectScan) -> Rehearsal:
        if not enabled:
            return Rehearsal(outcome="off", reason="it was switched off")
        ir = read_ir(handle)
        entry = scan.entry_point(ir.experiment.script)
        why_not = _why_not(lab, scan, ir, entry)
        if why_not or entry is None:
            return Rehearsal(outcome="not_possible", reason=why_not, cannot_run=why_not.startswith(_NO_GPU))
        trials = Trials(lab, actor, handle, scan, ir, _RUN_SECONDS, on_wait)
        return _Stage(lab, ir, entry, trials, stopping or threading.Event()).play()

    return rehearse


def _why_not(lab: Lab, scan: ProjectScan, ir: PlanIR, entry: EntryPoint | None) -> str:
    cluster = lab.cluster.current
    if entry is None:
        return f"{ir.experiment.script} is not among the scripts that were found"
    if cluster.type is not ClusterType.SLURM and containment().kind != "bubblewrap":
        return f"there is no sandbox: {containment().reason}"
    if entry.cuda_only and not cluster.gpu_count:
        return f"{_NO_GPU}, and {entry.path} needs one: {'; '.join(entry.cuda_only[:3])}"
    if scan.environment.create:
        return f"the environment is made when the plan is executed: {scan.environment.create}"
    if ir.workflow.step(ir.workflow.grid.task).inputs:
        return f"{ir.workflow.grid.task} takes what another step gives, and no step has run yet"
    return ""


class _Stage:
    """One rehearsal: try every way, then tell what became of it and how long all will take."""

    def __init__(self, lab: Lab, ir: PlanIR, entry: EntryPoint, trials: Trials, stopping: threading.Event) -> None:
        self._lab, self._ir, self._entry, self._trials, self._stopping = lab, ir, entry, trials, stopping
        swept = {parameter.flag for parameter in ir.workflow.grid.parameters}
        self._shortenings = shortenings(entry, ir.experiment.command, swept)
        self._timings: list[RehearsedRun] = []

    def play(self) -> Rehearsal:
        try:
            found = self._try_all()
        except Conflict as error:
            found = Rehearsal(outcome="not_possible", reason=error.message)
        except Invalid as error:
            found = Rehearsal(outcome="failed", reason=f"a run of it is refused: {error.message} {error.hint}".rstrip())
        self._trials.clear_up()  # not after a stop or a kill: then it goes on
        return found

    def _try_all(self) -> Rehearsal:
        configs, left_out = paths_to_try(self._ir.workflow.grid)
        short = self._shortenings[0] if self._shortenings else None
        amount = short.least if short else None
        for config in configs:
            self._trials.start(config, short, amount)
        tried = [self._trials.finish(config, short, amount, self._stopping) for config in configs]
        failed = [run for run in tried if run.status != RunStatus.FINISHED and not run.over_time]
        notes = (*left_out, *self._notes(short, tried))
        if failed:
            return self._failure(failed[0], tried, notes)
        prediction = self._predict(configs, tried)
        every = {run.run_id: run for run in (*tried, *self._timings)}
        found = Rehearsal(outcome="passed", runs=tuple(every.values()), notes=notes, prediction=prediction)
        return found.model_copy(update=self._about_metric(list(every.values())))

    def _about_metric(self, every: list[RehearsedRun]) -> dict[str, str]:
        """A run that ends without the metric counts for nothing. A short one may end before it is due."""
        metric = self._ir.workflow.grid.metric.name
        ended = [run for run in every if run.status == RunStatus.FINISHED]
        if not ended or any(run.reported for run in ended):
            return {}
        if not any(run.is_whole for run in ended):
            return {"reason": f"no run of it came so far as to report {metric}"}
        how = f"Print it as `{metric}=0.5`, log it with labwright.log, or choose another metric."
        return {"outcome": "failed", "reason": f"{self._entry.path} came to its end without reporting {metric}. {how}"}

    def _notes(self, short: Shortening | None, tried: list[RehearsedRun]) -> list[str]:
        notes = []
        if short is None:
            notes.append(f"no flag of {self._entry.path} makes a run short, so each was given {_RUN_SECONDS:g} s")
        late = [run.run_id for run in tried if run.over_time]
        if late:
            notes.append(f"{', '.join(late)} had not ended after {_RUN_SECONDS:g} s, without a fault until then")
        return notes

    def _failure(self, failed: RehearsedRun, tried: list[RehearsedRun], notes: tuple[str, ...]) -> Rehearsal:
        if why_not := self._lacking(failed.said):
            reason = f"{why_not}: {failed.said}"
            cannot_run = why_not.startswith(_NO_GPU)
            return Rehearsal(
                outcome="not_possible", reason=reason, cannot_run=cannot_run, runs=tuple(tried), notes=notes
            )
        values = ", ".join(f"{name} {value}" for name, value in failed.params.items())
        reason = f"{self._entry.path} with {values} {failed.status}:\n{failed.said}"
        return Rehearsal(outcome="failed", reason=reason, runs=tuple(tried), notes=notes)

    def _lacking(self, said: str) -> str:
        """What the sandbox has not, and a run of the plan would have."""
        if NO_SANDBOX in said:
            return "there is no sandbox where it ran"
        if any(word in said for word in _NEEDS_GPU) and not self._lab.cluster.current.gpu_count:
            return f"{_NO_GPU}, and {self._entry.path} needs one"
        for words, what in ((_NEEDS_NETWORK, "the network"), (_NEEDS_GPU, "a GPU")):
            if any(word in said for word in words):
                return f"{self._entry.path} needs {what}, which a rehearsal here does not have"
        path = missed(said, self._lab.paths.project)
        return f"{self._entry.path} needs {path}, and in a rehearsal /tmp is empty" if path else ""

    def _predict(self, configs: list[Config], tried: list[RehearsedRun]) -> Prediction:
        grid = self._ir.workflow.grid
        memory = max((run.memory_mb for run in tried if run.memory_mb), default=None)
        each, basis = self._measure(configs, tried)
        return predict(each, grid.size, self._at_a_time(), memory, basis)

    def _at_a_time(self) -> int:
        cluster, gpus = self._lab.cluster.current, self._ir.experiment.resources.gpus
        if cluster.type is ClusterType.SLURM:  # what waits in its queue is not at work
            return min(cluster.runs_at_work(gpus), self._ir.workflow.grid.size)
        capacity = capacity_of(cluster, self._lab.settings.max_parallel)
        gpus = gpus or (1 if cluster.type is ClusterType.LOCAL_GPU else 0)
        return max(1, min(capacity.fitting(gpus if capacity.gpus else 0), self._ir.workflow.grid.size))

    def _measure(self, configs: list[Config], tried: list[RehearsedRun]) -> tuple[list[tuple[float, float]], str]:
        if not self._shortenings:
            whole = [run.seconds for run in tried if not run.over_time]
            if len(whole) < len(tried):
                return [], f"a run takes longer than {_RUN_SECONDS:g} s; how much longer cannot be told"
            return [around(seconds, seconds) for seconds in whole], "whole runs, as the plan has them"
        scale = scaling(self._shortenings)
        if scale is None:
            return [], f"nothing in {self._entry.path} says how long a whole run is, so a short one does not tell"
        chosen = [configs[0], configs[-1]][: min(_MEASURED, len(configs))]
        found = [interval for config in chosen if (interval := self._rate(config, scale)) is not None]
        if not found:
            return [], f"no two runs by {scale.words(scale.least)} and more came to their end within {_RUN_SECONDS:g} s"
        words = (
            f"runs of {scale.words(scale.least)} and more, continued to {scale.full:g}; {len(found)} configuration(s)"
        )
        return found, words

    def _rate(self, config: Config, scale: Shortening) -> tuple[float, float] | None:
        """From the shortest run to ones that are longer, until the difference tells or the whole length is reached."""
        assert scale.full is not None
        small = self._timed(config, scale, scale.least)
        if small is None:
            return None
        large = small
        for _ in range(_TRIES):
            longer = self._timed(config, scale, int(min(scale.full, large.amount * _LONGER)))
            if longer is None:
                break
            large = longer
            if is_telling(small, large) or large.amount >= scale.full:
                break
        return None if large is small else run_seconds(small, large, scale.full)

    def _timed(self, config: Config, scale: Shortening, amount: int) -> Measured | None:
        """One at a time, so that they do not slow each other down. None if it did not end well in time."""
        self._trials.start(config, scale, amount)
        run = self._trials.finish(config, scale, amount, self._stopping)
        self._timings.append(run)
        return Measured(amount, run.seconds) if run.status == RunStatus.FINISHED else None
