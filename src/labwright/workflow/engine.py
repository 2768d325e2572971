"""`run`: do the work of a workflow, durably. A fact is in the log before it is relied upon; what is done stays done.

A task that was under way when the process was killed runs again: at least once, and once it has finished, never again.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from labwright.workflow.attempts import Bodies
from labwright.workflow.experiments import result_type
from labwright.workflow.fingerprints import Fingerprints
from labwright.workflow.graph import Step, Workflow
from labwright.workflow.inputs import Given, Sources, key_of
from labwright.workflow.jobs import Job, News, Workers, checked
from labwright.workflow.outcomes import Outcome, RunResult
from labwright.workflow.reports import Report
from labwright.workflow.store import Store, Stored
from labwright.workflow.structure import check_structure
from labwright.workflow.tasks import Retry, Task
from labwright.workflow.values import Refused, digest_of, encode, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    OnEvent = Callable[[dict[str, Any]], None]
    RunExperiment = Callable[[Step, dict[str, Any]], Any]


class InvalidWorkflow(ValueError):
    """The workflow cannot be run; `report` says why."""

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
    """Run what is not done yet. Calling it again, after a kill or a failure, goes on where it was.

    `environment` is part of every task's key: give versions that results depend on. `on_event` is called with each fact
    after it is in the log. `run_experiment(step, inputs)` executes an experiment and returns an `ExperimentResult`.
    `sealed`: bodies are given `Sealed` values and give such, so that no class of the workflow's code is needed here.
    """
    report = Report(tuple(check_structure(workflow)))
    if not report.ok:
        raise InvalidWorkflow(report)
    with store if isinstance(store, Store) else Store(store) as opened:
        fingerprints = Fingerprints(environment)
        engine = _Engine(workflow, opened, Workers(concurrency), fingerprints, on_event, run_experiment, sealed)
        return engine.run()


async def run_async(workflow: Workflow, store: Store | str | os.PathLike[str], **options: Any) -> RunResult:
    """`run`, without holding up the event loop of the caller."""
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, lambda: run(workflow, store, **options))


class _Fan:
    """The jobs of one step, until the last has ended."""

    def __init__(self, step: Step, size: int) -> None:
        self.step = step
        self.stored: list[Stored | None] = [None] * size
        self.left = size
        self.reused = 0
        self.failures: list[str] = []
        self.pauses: list[str] = []

    def note(self, news: News) -> None:
        words = f"{news.job.name}: {news.error}" if self.step.over is not None else news.error
        if news.status == "failed":
            self.failures.append(words)
        elif news.status == "suspended":
            self.pauses.append(words)

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
    """One run. Only the thread that called `run` touches the log and the state; workers tell it what happened."""

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
        # before any body runs: it may change the globals that a later one reads
        self._code = {step.id: _code_of(step.work, fingerprints) for step in workflow.steps}
        self._on_event = on_event
        self._run_experiment = run_experiment
        self._outcomes: dict[str, Outcome] = {}
        self._sources = Sources(self._outcomes, sealed)
        self._steps = {step.id: step for step in workflow.steps}
        self._waits_for = {step.id: step.waits_for() for step in workflow.steps}
        self._waits = {id: len(sources) for id, sources in self._waits_for.items()}  # how many have not ended
        self._users = _users(self._waits_for)
        self._ready = deque(step for step in workflow.steps if not self._waits[step.id])
        self._jobs: deque[Job] = deque()
        self._fans: dict[str, _Fan] = {}

    def run(self) -> RunResult:
        self._tell("run_started", workflow=self._workflow.name, pid=os.getpid(), steps=len(self._steps))
        try:
            while self._ready or self._jobs or self._workers.busy:
                self._advance()
        finally:
            self._workers.close()
            self._bodies.close()
        result = RunResult(self._workflow, self._outcomes)
        self._tell("run_ended", status=result.status)
        return result

    def _advance(self) -> None:
        while self._ready:
            self._begin(self._ready.popleft())
        while self._jobs and not self._workers.full:
            job = self._jobs.popleft()
            self._tell("started", task=job.name, step=job.step, key=job.key)
            self._workers.start(job)
        if self._workers.busy:
            self._hear(self._workers.wait())

    def _tell(self, fact: str, **about: Any) -> None:
        line = {"fact": fact, "time": round(time.time(), 3), **about}
        self._store.append(line)
        if self._on_event is not None:
            self._on_event(line)

    def _begin(self, step: Step) -> None:
        obstacle = self._obstacle(step)
        if obstacle is not None:
            self._tell(obstacle.status, task=step.id, step=step.id, reason=obstacle.reason)
            self._end(step, obstacle)
            return
        try:
            combinations = list(self._sources.combinations(step))
        except Refused as error:
            self._tell("failed", task=step.id, step=step.id, error=str(error))
            self._end(step, Outcome("failed", str(error)))
            return
        self._fans[step.id] = _Fan(step, len(combinations))
        for index, given in enumerate(combinations):
            self._reuse_or_queue(step, index, given)
        self._end_if_done(step.id)

    def _obstacle(self, step: Step) -> Outcome | None:
        """Why the step does not begin: something it waits for did not finish, or its condition is false."""
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

    def _reuse_or_queue(self, step: Step, index: int, given: dict[str, Given]) -> None:
        key = key_of(step.id, self._code[step.id], given)
        name = step.id if step.over is None else f"{step.id}[{index}]"
        stored = self._store.finished(key)
        if stored is None:
            self._jobs.append(Job(name, step.id, index, key, self._call(step, given), _retry_of(step)))
            return
        self._tell("reused", task=name, step=step.id, key=key)
        fan = self._fans[step.id]
        fan.stored[index] = stored
        fan.left -= 1
        fan.reused += 1

    def _call(self, step: Step, given: dict[str, Given]) -> Callable[[], Any]:
        """The work, as a worker does it: inputs decoded there, the result checked and encoded there."""

        def call() -> Any:
            inputs = {name: part.load() for name, part in given.items()}
            if isinstance(step.work, Task):
                return checked(step.work.returns, self._bodies.call(step.work, inputs))
            if self._run_experiment is None:
                raise RuntimeError("an experiment declares runs; this run was given no run_experiment to execute them")
            return checked(result_type(), self._run_experiment(step, inputs))

        return call

    def _hear(self, news: News) -> None:
        job, fan = news.job, self._fans[news.job.step]
        about: dict[str, Any] = {"task": job.name, "step": job.step, "key": job.key, "attempt": news.attempt}
        about["seconds"] = round(news.seconds, 6)
        if news.status == "finished":
            kept = self._store.keep(news.value)
            self._tell("finished", **about, **kept)
            fan.stored[job.index] = self._store.stored(kept)
        else:
            self._tell(news.status, **about, error=news.error, traceback=news.traceback)
            fan.note(news)
        if news.status != "retrying":
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


def _users(waits_for: dict[str, list[str]]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {id: [] for id in waits_for}
    for id, sources in waits_for.items():
        for source in sources:
            users[source].append(id)
    return users


def _code_of(work: Any, fingerprints: Fingerprints) -> str:
    if isinstance(work, Task):
        return fingerprints.of(work)
    return digest_of(text_of([encode(work), fingerprints.environment]))


def _retry_of(step: Step) -> Retry:
    return step.work.options.retry if isinstance(step.work, Task) else Retry()
