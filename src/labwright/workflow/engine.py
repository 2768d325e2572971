"""`run`: do the work of a workflow, durably. A fact is in the log before it is used, and finished work is not repeated.

A task that was running when the process was killed runs again. So a task runs at least once, and never again after it
has finished.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from labwright.workflow.contract import Report, check_structure
from labwright.workflow.experiments import result_type
from labwright.workflow.fingerprints import Fingerprints
from labwright.workflow.graph import Output, Step, Workflow, outputs_in
from labwright.workflow.jobs import AttemptResult, Bodies, Job, Workers, checked
from labwright.workflow.store import Store, Stored
from labwright.workflow.tasks import WHOLE, Retry, Task
from labwright.workflow.values import NotEncodable, Sealed, decode, digest_of, encode, picked, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    OnEvent = Callable[[dict[str, Any]], None]
    RunExperiment = Callable[[Step, dict[str, Any]], Any]


@dataclass(frozen=True)
class Outcome:
    """How a step ended: `finished`, `failed`, `suspended`, or not started: `skipped` or `waiting`, with the reason."""

    status: str
    reason: str = ""
    stored: tuple[Stored, ...] = ()  # one; in a fan-out, one per combination
    fanned_out: bool = False
    reused: int = 0  # how many come from an earlier run

    def encoded(self, name: str) -> Any:
        parts = [part.encoded if name == WHOLE else picked(part.encoded, name) for part in self.stored]
        return parts if self.fanned_out else parts[0]

    def digest(self, name: str) -> str:
        if name == WHOLE and not self.fanned_out:
            return self.stored[0].digest
        return digest_of(text_of(self.encoded(name)))


@dataclass(frozen=True)
class RunResult:
    """The result of a run: `failed` if any step failed, else `suspended` if one is suspended, else `finished`."""

    workflow: Workflow
    steps: dict[str, Outcome] = field(default_factory=dict)

    @property
    def status(self) -> str:
        statuses = {outcome.status for outcome in self.steps.values()}
        return next((status for status in ("failed", "suspended") if status in statuses), "finished")

    def value(self, step: str, output: str = WHOLE) -> Any:
        """Return an output of a finished step."""
        outcome = self.steps[step]
        if outcome.status != "finished":
            raise LookupError(f"{step} {outcome.status}: {outcome.reason}")
        return decode(outcome.encoded(output))

    @property
    def results(self) -> dict[str, Any]:
        """The declared results whose steps finished."""
        declared: dict[str, Output] = self.workflow.results
        done = {name: out for name, out in declared.items() if self.steps[out.step].status == "finished"}
        return {name: self.value(out.step, out.name) for name, out in done.items()}


@dataclass(frozen=True)
class InputValue:
    """An input of a job: its digest, and a function that loads it, called only if the job must run."""

    digest: str
    load: Callable[[], Any]  # returns a new copy each time


class Sources:
    """Look up outputs of finished steps, decoded or (with `sealed`) encoded."""

    def __init__(self, outcomes: Mapping[str, Outcome], sealed: bool = False) -> None:
        self._outcomes = outcomes
        self._opened: Callable[[Any], Any] = Sealed if sealed else decode
        self._digests: dict[Output, str] = {}

    def value(self, output: Output) -> Any:
        return self._opened(self._outcomes[output.step].encoded(output.name))

    def input_value(self, value: Any) -> InputValue:
        if isinstance(value, Output):
            if value not in self._digests:
                self._digests[value] = self._outcomes[value.step].digest(value.name)
            return InputValue(self._digests[value], lambda: self.value(value))
        if outputs_in(value):
            parts = [self.input_value(item) for item in value]
            return InputValue(
                digest_of("+".join(part.digest for part in parts)), lambda: [part.load() for part in parts]
            )
        encoded = encode(value)
        return InputValue(digest_of(text_of(encoded)), lambda: self._opened(encoded))

    def combinations(self, step: Step) -> Iterator[dict[str, InputValue]]:
        """Yield the inputs of each job of a step: one job, or in a fan-out one per combination."""
        same = {name: self.input_value(value) for name, value in step.inputs.items()}
        if step.over is None:
            yield same
            return
        lists = [self.value(value) if isinstance(value, Output) else value for value in step.over.values()]
        axes = [[self.input_value(item) for item in items] for items in lists]
        for point in itertools.product(*axes):
            yield {**same, **dict(zip(step.over, point))}  # noqa: B905 - Python 3.8 has no strict


def key_of(step: str, code: str, inputs: Mapping[str, InputValue]) -> str:
    """Return the key of a job. The same key means the same step, code, environment and inputs."""
    return digest_of(text_of([step, code, {name: part.digest for name, part in inputs.items()}]))


class InvalidWorkflow(ValueError):
    """The workflow cannot be run. `report` says why."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def run(
    workflow: Workflow,
    store: Store | str | os.PathLike[str],
    *,
    concurrency: int = 4,
    environment: Mapping[str, str] | None = None,
    on_event: OnEvent | None = None,
    run_experiment: RunExperiment | None = None,
    sealed: bool = False,
) -> RunResult:
    """Run the steps that are not done yet. Call it again after a kill or a failure to continue.

    `environment` is part of every task's key: pass versions that results depend on. `on_event` is called with each fact
    after it is in the log. `run_experiment(step, inputs)` executes an experiment and returns an `ExperimentResult`.
    `sealed`: bodies take and return `Sealed` values, so that no class of the workflow's code is needed here.
    """
    report = Report(tuple(check_structure(workflow)))
    if not report.ok:
        raise InvalidWorkflow(report)
    with store if isinstance(store, Store) else Store(store) as opened:
        fingerprints = Fingerprints(environment)
        engine = _Engine(workflow, opened, Workers(concurrency), fingerprints, on_event, run_experiment, sealed)
        return engine.run()


async def run_async(workflow: Workflow, store: Store | str | os.PathLike[str], **options: Any) -> RunResult:
    """Call `run` without blocking the event loop of the caller."""
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, lambda: run(workflow, store, **options))


class _Fan:
    """The jobs of one step that has not ended yet."""

    def __init__(self, step: Step, size: int) -> None:
        self.step = step
        self.stored: list[Stored | None] = [None] * size
        self.left = size
        self.reused = 0
        self.failures: list[str] = []
        self.pauses: list[str] = []

    def note(self, result: AttemptResult) -> None:
        message = f"{result.job.name}: {result.error}" if self.step.over is not None else result.error
        if result.status == "failed":
            self.failures.append(message)
        elif result.status == "suspended":
            self.pauses.append(message)

    def outcome(self) -> Outcome:
        done = tuple(stored for stored in self.stored if stored is not None)
        fanned_out = self.step.over is not None
        if self.pauses:
            return Outcome("suspended", self.pauses[0])
        if self.failures and (self.step.collect == "all" or not done):
            many = f"{len(self.failures)} of {len(self.stored)} failed, first " if fanned_out else ""
            return Outcome("failed", many + self.failures[0])
        return Outcome("finished", "; ".join(self.failures), done, fanned_out, self.reused)


class _Engine:
    """One run. Only the thread that called `run` uses the log and the state; workers report results to it."""

    def __init__(
        self,
        workflow: Workflow,
        store: Store,
        workers: Workers,
        fingerprints: Fingerprints,
        on_event: OnEvent | None,
        run_experiment: RunExperiment | None,
        sealed: bool,
    ) -> None:
        self._workflow = workflow
        self._store = store
        self._workers = workers
        self._bodies = Bodies()
        self._code = {  # read before any body runs, since a body may change the globals that a later one reads
            step.id: fingerprints.of(step.work)
            if isinstance(step.work, Task)
            else digest_of(text_of([encode(step.work), fingerprints.environment]))
            for step in workflow.steps
        }
        self._on_event = on_event
        self._run_experiment = run_experiment
        self._outcomes: dict[str, Outcome] = {}
        self._sources = Sources(self._outcomes, sealed)
        self._steps = {step.id: step for step in workflow.steps}
        self._waits_for = {step.id: step.waits_for() for step in workflow.steps}
        self._waits = {id: len(sources) for id, sources in self._waits_for.items()}  # sources that have not ended
        self._users: dict[str, list[str]] = {id: [] for id in self._waits_for}
        for id, sources in self._waits_for.items():
            for source in sources:
                self._users[source].append(id)
        self._ready = deque(step for step in workflow.steps if not self._waits[step.id])
        self._jobs: deque[Job] = deque()
        self._fans: dict[str, _Fan] = {}

    def run(self) -> RunResult:
        self._log("run_started", workflow=self._workflow.name, pid=os.getpid(), steps=len(self._steps))
        try:
            while self._ready or self._jobs or self._workers.busy:
                while self._ready:
                    self._start(self._ready.popleft())
                while self._jobs and not self._workers.full:
                    job = self._jobs.popleft()
                    self._log("started", task=job.name, step=job.step, key=job.key)
                    self._workers.start(job)
                if self._workers.busy:
                    self._handle(self._workers.wait())
        finally:
            self._workers.close()
            self._bodies.close()
        result = RunResult(self._workflow, self._outcomes)
        self._log("run_ended", status=result.status)
        return result

    def _log(self, fact: str, **about: Any) -> None:
        line = {"fact": fact, "time": round(time.time(), 3), **about}
        self._store.append(line)
        if self._on_event is not None:
            self._on_event(line)

    def _start(self, step: Step) -> None:
        obstacle = self._obstacle(step)
        if obstacle is not None:
            self._log(obstacle.status, task=step.id, step=step.id, reason=obstacle.reason)
            self._end(step, obstacle)
            return
        try:
            combinations = list(self._sources.combinations(step))
        except NotEncodable as error:
            self._log("failed", task=step.id, step=step.id, error=str(error))
            self._end(step, Outcome("failed", str(error)))
            return
        self._fans[step.id] = _Fan(step, len(combinations))
        for index, inputs in enumerate(combinations):
            self._reuse_or_queue(step, index, inputs)
        self._end_if_done(step.id)

    def _obstacle(self, step: Step) -> Outcome | None:
        """Return why the step cannot start: a source did not finish, or its condition is false."""
        for source in self._waits_for[step.id]:
            outcome = self._outcomes[source]
            if outcome.status in ("skipped", "waiting"):
                return Outcome(outcome.status, outcome.reason)
            if outcome.status != "finished":
                status = "waiting" if outcome.status == "suspended" else "skipped"
                return Outcome(status, f"{source} {outcome.status}: {outcome.reason}")
        if step.when is not None and not self._sources.value(step.when):
            return Outcome("skipped", f"{step.when} is false")
        return None

    def _reuse_or_queue(self, step: Step, index: int, inputs: dict[str, InputValue]) -> None:
        key = key_of(step.id, self._code[step.id], inputs)
        name = step.id if step.over is None else f"{step.id}[{index}]"
        stored = self._store.finished(key)
        if stored is None:
            retry = step.work.options.retry if isinstance(step.work, Task) else Retry()
            self._jobs.append(Job(name, step.id, index, key, self._call(step, inputs), retry))
            return
        self._log("reused", task=name, step=step.id, key=key)
        fan = self._fans[step.id]
        fan.stored[index] = stored
        fan.left -= 1
        fan.reused += 1

    def _call(self, step: Step, inputs: dict[str, InputValue]) -> Callable[[], Any]:
        """Return the work for a worker thread, which also decodes inputs and checks and encodes the result."""

        def call() -> Any:
            values = {name: part.load() for name, part in inputs.items()}
            if isinstance(step.work, Task):
                return checked(step.work.returns, self._bodies.call(step.work, values))
            if self._run_experiment is None:
                raise RuntimeError("this workflow has an experiment; pass run_experiment to execute its runs")
            return checked(result_type(), self._run_experiment(step, values))

        return call

    def _handle(self, result: AttemptResult) -> None:
        job, fan = result.job, self._fans[result.job.step]
        about: dict[str, Any] = {"task": job.name, "step": job.step, "key": job.key, "attempt": result.attempt}
        about["seconds"] = round(result.seconds, 6)
        if result.status == "finished":
            kept = self._store.keep(result.value)
            self._log("finished", **about, **kept)
            fan.stored[job.index] = self._store.stored(kept)
        else:
            self._log(result.status, **about, error=result.error, traceback=result.traceback)
            fan.note(result)
        if result.status != "retrying":
            fan.left -= 1
            self._end_if_done(job.step)

    def _end_if_done(self, id: str) -> None:
        fan = self._fans[id]
        if not fan.left:
            del self._fans[id]
            self._end(fan.step, fan.outcome())

    def _end(self, step: Step, outcome: Outcome) -> None:
        self._outcomes[step.id] = outcome
        for user in self._users[step.id]:
            self._waits[user] -= 1
            if not self._waits[user]:
                self._ready.append(self._steps[user])
