"""Sidecars on the nodes of a Slurm cluster, started by sbatch.

Nothing here blocks its caller: orders go to a thread, since with the controller down every command hangs. What came
of them, and what Slurm says of the jobs, is kept as reports until the engine takes them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from labwright.compute.launchers import Launch
from labwright.compute.slurm.batch import Batch, batches_of, send
from labwright.compute.slurm.commands import SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.probe import DEFAULT_ARRAY_SIZE, probe_max_array_size
from labwright.compute.slurm.resources import SlurmDefaults
from labwright.compute.slurm.states import held_arguments, read_held
from labwright.compute.slurm.watch import Seen, SlurmWatch, Unanswered
from labwright.domain.run import Run
from labwright.files import write_json
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)
SLURM = "slurm"
_GATHER_SECONDS = 0.1  # runs that arrive together go in together
_TRY_AGAIN_SECONDS = 5.0
_HARD_AFTER_SECONDS = 5.0  # beyond the grace that the sidecar gives the job
_IDS_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    job_ids: dict[str, str]  # by run


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSubmitted:
    """`for_good`: Slurm said no. `in_doubt`: nobody said anything, and the job may be there after all."""

    run_ids: tuple[str, ...]
    words: str
    for_good: bool
    in_doubt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Slurm was told to forget a job that had not begun."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """An order about these runs failed in a way that nobody foresaw; it is tried again."""

    run_ids: tuple[str, ...]
    words: str


Report = Submitted | NotSubmitted | Cancelled | Troubled | Seen | Unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cancel:
    run: Run
    hard: bool = False
    not_before: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keep:
    verb: str  # uhold or release
    run: Run
    not_before: float = 0.0


_Order = TypeVar("_Order", _Cancel, _Keep)


class SlurmLauncher:
    name = SLURM

    def __init__(
        self, commands: SlurmCommands, defaults: SlurmDefaults, paths: ProjectPaths, grace_seconds: float
    ) -> None:
        self.defaults = defaults
        self.wake: Callable[[], None] = lambda: None
        self._commands = commands
        self._paths = paths
        self._grace_seconds = grace_seconds
        self._watch = SlurmWatch(commands, defaults.query_seconds, self._tell)
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._orders = threading.Condition()
        self._to_send: list[Run] = []
        self._sending: set[str] = set()  # runs on their way to Slurm
        self._job_ids: dict[str, str] = {}  # by run, also before the database has them
        self._sent_at: dict[str, float] = {}
        self._to_cancel: list[_Cancel] = []
        self._to_keep: list[_Keep] = []
        self._unneeded: list[str] = []
        self._max_array_size: int | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self.silence = ""  # why nothing can be sent now
        self._faults: dict[str, str] = {}  # by run: what went wrong with an order and nobody foresaw

    @property
    def fault(self) -> str:
        """For /health; gone once the order was carried out or its run has ended."""
        return next(iter(list(self._faults.values())), "")

    # -- what the engine and the services ask for

    def launch(self, launches: Sequence[Launch]) -> None:
        runs = [launch.run for launch in launches]
        with self._orders:
            self._sending.update(run.id for run in runs)
            self._to_send += runs
            self._start_thread()

    def nudge(self, run: Run) -> None:
        with self._orders:
            self._to_cancel.append(_Cancel(run=run))
            self._start_thread()
        self._watch.soon()

    def hold(self, runs: Iterable[Run]) -> None:
        """Keep pending jobs from starting; those that run go on."""
        self._order_keeping("uhold", runs)  # as the user, also where that is root: whoever owns a job may release it

    def release(self, runs: Iterable[Run]) -> None:
        self._order_keeping("release", runs)

    def _order_keeping(self, verb: str, runs: Iterable[Run]) -> None:
        """The last word counts, also where an earlier one has to be tried again."""
        orders = [_Keep(verb=verb, run=run) for run in runs]
        newer = {order.run.id for order in orders}
        with self._orders:
            self._to_keep = [order for order in self._to_keep if order.run.id not in newer] + orders
            self._start_thread()

    def cancel(self, job_id: str) -> None:
        """A job that no run needs any more."""
        with self._orders:
            self._unneeded.append(job_id)
            self._start_thread()

    def watch(self, active: Iterable[Run]) -> None:
        """Which runs there are to ask Slurm about; called every second, answers come as reports."""
        runs = list(active)
        started = {run.id: run.attempt for run in runs if run.started_at is not None}
        for run_id in self._faults.keys() - {run.id for run in runs}:
            self._faults.pop(run_id, None)
        self._watch.look(bool(runs) or bool(self.silence), started)

    def reports(self) -> list[Report]:
        return [self._reports.get() for _ in range(self._reports.qsize())]

    def is_sending(self, run_id: str) -> bool:
        with self._orders:
            return run_id in self._sending

    def was_sent_after(self, run_id: str, moment: float) -> bool:
        """Whether an answer to what was asked then can know of it."""
        return self.is_sending(run_id) or self._sent_at.get(run_id, 0.0) >= moment

    def close(self) -> None:
        with self._orders:
            self._closing = True
            self._orders.notify()
        self._watch.close()

    # -- the thread

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="slurm-orders", daemon=True)
            self._thread.start()
        self._orders.notify()

    def _work(self) -> None:
        while True:
            with self._orders:
                has_orders = self._orders.wait_for(lambda: self._closing or self._has_orders(), 1.0)
                if self._closing:
                    return
            if not has_orders:
                continue
            time.sleep(_GATHER_SECONDS)
            with self._orders:
                runs, self._to_send = self._to_send, []
                unneeded, self._unneeded = self._unneeded, []
                cancels, keeps = _due(self._to_cancel), _due(self._to_keep)
                self._to_cancel = [order for order in self._to_cancel if order not in cancels]
                self._to_keep = [order for order in self._to_keep if order not in keeps]
            self._carry_out(self._cancel_all, cancels, lambda: self._to_cancel)
            self._carry_out(self._keep_all, keeps, lambda: self._to_keep)
            self._cancel_unneeded(unneeded)
            self._send_all(runs)

    def _carry_out(
        self, do: Callable[[list[_Order]], None], orders: list[_Order], waiting: Callable[[], list[_Order]]
    ) -> None:
        """What nobody foresaw costs its own orders a delay, and no other order anything."""
        try:
            do(orders)
        except Exception as error:  # noqa: BLE001 - without this thread nothing is sent; it is told in /health
            words = self._note_fault([order.run for order in orders], error)
            self._tell(Troubled(run_ids=tuple(order.run.id for order in orders), words=words))
            later = time.monotonic() + _TRY_AGAIN_SECONDS
            with self._orders:
                waiting().extend(replace(order, not_before=later) for order in orders)
        else:
            self._faults_over(order.run.id for order in orders)

    def _note_fault(self, runs: Iterable[Run], error: Exception) -> str:
        words = f"An order to Slurm failed unexpectedly: {error!r}."
        log.error("%s", words, exc_info=True)
        self._faults.update({run.id: words for run in runs})
        return words

    def _faults_over(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._faults.pop(run_id, None)

    def _has_orders(self) -> bool:
        return bool(self._to_send or self._unneeded or _due(self._to_cancel) or _due(self._to_keep))

    def _tell(self, report: Report) -> None:
        if isinstance(report, Seen | Submitted):
            self.silence = ""
        elif isinstance(report, Unanswered):
            self.silence = report.words
        self._reports.put(report)
        self.wake()

    # -- sending

    def _send_all(self, runs: list[Run]) -> None:
        stopped = [run for run in runs if os.path.exists(self._paths.run(run.id).stop)]
        for run in stopped:
            self._sent(run.id)
            self._tell(Cancelled(run_id=run.id))
        left = [run for run in runs if run not in stopped]
        try:
            batches = list(batches_of(left, self.defaults, self._array_size(left)))
        except Exception as error:  # noqa: BLE001 - what one of them asks for cannot be read; the others go on
            self._send_apart(left, error)
            return
        for batch in batches:
            self._send(batch)

    def _send_apart(self, runs: list[Run], error: Exception) -> None:
        if len(runs) > 1:
            for run in runs:
                self._send_all([run])
            return
        self._sent(runs[0].id)
        words = self._note_fault(runs, error)
        self._tell(NotSubmitted(run_ids=(runs[0].id,), words=words, for_good=True, in_doubt=False))

    def _array_size(self, runs: list[Run]) -> int:
        """Asked once, when the first array is due; while nobody answers, Slurm's own default."""
        if self._max_array_size is None and len(runs) > 1:
            try:
                self._max_array_size = probe_max_array_size(self._commands)
            except (SlurmSilent, SlurmRefused):
                return DEFAULT_ARRAY_SIZE
        return self._max_array_size or DEFAULT_ARRAY_SIZE

    def _send(self, batch: Batch) -> None:
        run_ids = tuple(run.id for run in batch.runs)
        try:
            job_ids = send(batch, self._commands, self._paths, self.defaults)
            self._job_ids.update(job_ids)
            self._sent_at.update(dict.fromkeys(job_ids, time.time()))
            report: Report = Submitted(job_ids=job_ids)
            self._faults_over(run_ids)
        except SlurmRefused as error:
            report = NotSubmitted(run_ids=run_ids, words=error.message, for_good=True, in_doubt=False)
        except SlurmSilent as error:
            report = NotSubmitted(run_ids=run_ids, words=error.message, for_good=False, in_doubt=error.in_doubt)
            self.silence = error.message
        except OSError as error:  # the array's file could not be written
            report = NotSubmitted(run_ids=run_ids, words=str(error), for_good=False, in_doubt=False)
        except Exception as error:  # noqa: BLE001 - whether Slurm has it, the next answer of squeue tells
            words = self._note_fault(batch.runs, error)
            report = NotSubmitted(run_ids=run_ids, words=words, for_good=False, in_doubt=True)
        for run_id in run_ids:
            self._sent(run_id)
        self._watch.soon()
        self._tell(report)

    def _sent(self, run_id: str) -> None:
        with self._orders:
            self._sending.discard(run_id)

    # -- ending

    def _cancel_all(self, orders: list[_Cancel]) -> None:
        """A job that runs is ended by its sidecar, with grace; what does not heed that, Slurm kills."""
        pending = [order.run for order in orders if not order.hard and not self._has_begun(order.run)]
        self._cancel_pending(pending)
        for order in orders:
            if order.run not in pending:
                self._cancel_running(order)

    def _has_begun(self, run: Run) -> bool:
        return os.path.exists(self._paths.run(run.id).claim(run.attempt))

    def _cancel_unneeded(self, job_ids: list[str]) -> None:
        for first in range(0, len(job_ids), _IDS_AT_ONCE):
            try:
                self._commands.call("scancel", *job_ids[first : first + _IDS_AT_ONCE])
            except (SlurmSilent, SlurmRefused) as error:
                log.warning("jobs that no run needs could not be cancelled: %s", error)

    def _cancel_pending(self, runs: list[Run]) -> None:
        on_their_way = [run for run in runs if self.is_sending(run.id)]
        self._again(_Cancel(run=run, not_before=time.monotonic() + _GATHER_SECONDS) for run in on_their_way)
        known = [run for run in runs if self._job_id(run) and run not in on_their_way]
        for first in range(0, len(known), _IDS_AT_ONCE):
            piece = known[first : first + _IDS_AT_ONCE]
            self._cancel_or_later(piece, [str(self._job_id(run)) for run in piece])
        for run in runs:
            if run not in known and run not in on_their_way:
                self._cancel_or_later([run], _by_name(run))

    def _cancel_or_later(self, runs: list[Run], arguments: list[str]) -> None:
        try:
            self._commands.call("scancel", *arguments)
        except (SlurmSilent, SlurmRefused):
            self._again(_Cancel(run=run, not_before=time.monotonic() + _TRY_AGAIN_SECONDS) for run in runs)
            return
        for run in runs:
            self._tell(Cancelled(run_id=run.id))

    def _cancel_running(self, order: _Cancel) -> None:
        run = order.run
        if os.path.exists(self._paths.run(run.id).exit):
            return
        how = [] if order.hard else ["--batch", "--signal=TERM"]  # to the sidecar alone, should it not see the file
        job_id = self._job_id(run)
        try:
            self._commands.call("scancel", *how, *([job_id] if job_id else _by_name(run)))
        except (SlurmSilent, SlurmRefused):
            self._again([_Cancel(run=run, hard=order.hard, not_before=time.monotonic() + _TRY_AGAIN_SECONDS)])
            return
        if not order.hard:
            due = time.monotonic() + self._grace_seconds + _HARD_AFTER_SECONDS
            self._again([_Cancel(run=run, hard=True, not_before=due)])

    def _job_id(self, run: Run) -> str | None:
        return self._job_ids.get(run.id) or run.slurm_job_id

    def _again(self, orders: Iterable[_Cancel]) -> None:
        with self._orders:
            self._to_cancel += orders

    # -- holding

    def _keep_all(self, orders: list[_Keep]) -> None:
        for verb, keep in (("uhold", self._hold), ("release", self._release)):
            runs = [order.run for order in orders if order.verb == verb and not self._has_begun(order.run)]
            for first in range(0, len(runs), _IDS_AT_ONCE):
                self._keep_or_later(verb, keep, runs[first : first + _IDS_AT_ONCE])

    def _keep_or_later(self, verb: str, keep: Callable[[dict[str, Run]], None], runs: list[Run]) -> None:
        try:
            keep({job_id: run for run in runs if (job_id := self._job_id(run))})
        except SlurmSilent:
            later = time.monotonic() + _TRY_AGAIN_SECONDS
            with self._orders:
                newer = {order.run.id for order in self._to_keep}
                self._to_keep += [_Keep(verb=verb, run=run, not_before=later) for run in runs if run.id not in newer]
        except SlurmRefused as error:  # one of them has begun or ended meanwhile; the others were heeded
            log.info("scontrol %s: %s", verb, error.message)

    def _hold(self, jobs: dict[str, Run]) -> None:
        """Which holds are ours lies on disk before Slurm hears of them; what is held already is somebody else's."""
        held = read_held(self._commands.call(*held_arguments(jobs)))
        ours = {job_id: run for job_id, run in jobs.items() if job_id not in held}
        for run in ours.values():
            write_json(self._paths.run(run.id).held, {"at": time.time()})
        if ours:
            self._commands.call("scontrol", "uhold", ",".join(ours))

    def _release(self, jobs: dict[str, Run]) -> None:
        ours = {job_id: run for job_id, run in jobs.items() if os.path.exists(self._paths.run(run.id).held)}
        if not ours:
            return
        with contextlib.suppress(SlurmRefused):  # one of them has begun or ended meanwhile; the others were heeded
            self._commands.call("scontrol", "release", ",".join(ours))
        for run in ours.values():
            os.unlink(self._paths.run(run.id).held)


def _by_name(run: Run) -> list[str]:
    return [f"--name={run.id}", f"--user={os.getuid()}"]


def _due(orders: list[_Order]) -> list[_Order]:
    return [order for order in orders if order.not_before <= time.monotonic()]
