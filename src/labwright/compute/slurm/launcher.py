"""Start sidecars on the nodes of a Slurm cluster with sbatch.

No call blocks its caller: orders go to a thread, because every command hangs while the controller is down. Outcomes of
orders and listings of jobs are kept as reports until the engine takes them.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from labwright.compute.launcher import Launch
from labwright.compute.slurm.commands import TRY_AGAIN_SECONDS, SlurmCommands, SlurmRefused, SlurmSilent
from labwright.compute.slurm.job_book import JobBook, OrderFaults
from labwright.compute.slurm.jobs import (
    Cancelled,
    JobListing,
    JobRow,
    NotSubmitted,
    SlurmReport,
    StopDelayed,
    Submitted,
    Troubled,
    Unanswered,
    read_squeue,
    squeue_arguments,
)
from labwright.compute.slurm.orders import HOLD, RELEASE, Cancelling, CancelOrder, Holding, HoldOrder, Recalling
from labwright.compute.slurm.probe import DialectProbe
from labwright.compute.slurm.resources import SlurmDefaults
from labwright.compute.slurm.submit import Submission
from labwright.domain.run import SLURM, Run
from labwright.paths import ProjectPaths

log = logging.getLogger(__name__)

_GATHER_SECONDS = 0.1  # runs that arrive together are submitted together
_BEING_SENT = "sbatch has not answered yet, so it is not known whether Slurm has the job"

_Order = TypeVar("_Order", CancelOrder, HoldOrder)


class SlurmLauncher:
    name = SLURM

    def __init__(
        self, commands: SlurmCommands, defaults: SlurmDefaults, paths: ProjectPaths, grace_seconds: float
    ) -> None:
        self.defaults = defaults
        self.wake: Callable[[], None] = lambda: None
        self.silence = ""  # why nothing can be submitted now
        self._reports: queue.SimpleQueue[SlurmReport] = queue.SimpleQueue()
        self._book, self._faults, dialect = JobBook(paths), OrderFaults(), DialectProbe(commands)
        self._watch = SlurmWatch(commands, defaults.query_seconds, self._report)
        self._submission = Submission(commands, paths, defaults, dialect, self._book, self._faults, self._report)
        self._cancelling = Cancelling(commands, paths, self._book, self._report, grace_seconds)
        self._holding = Holding(commands, paths, self._book)
        self._recalling = Recalling(commands, paths, dialect, self._book, self._report)
        self._orders = threading.Condition()
        self._to_send: list[Run] = []
        self._to_cancel: list[CancelOrder] = []
        self._to_hold: list[HoldOrder] = []
        self._to_recall: list[Run] = []
        self._unneeded: list[str] = []
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def fault(self) -> str:
        """An unexpected error for /health, until the order succeeds or its run ends."""
        return self._faults.first

    def launch(self, launches: Sequence[Launch]) -> None:
        runs = [launch.run for launch in launches]
        with self._orders:
            self._book.expect(run.id for run in runs)
            self._to_send += runs
            self._start_thread()

    def nudge(self, run: Run) -> None:
        """Stop a run that has a stop file: drop it if it is not submitted yet, else cancel its job."""
        with self._orders:
            left = [waiting for waiting in self._to_send if waiting.id != run.id]
            if len(left) < len(self._to_send):
                self._to_send = left
                self._book.settle([run.id])
                self._report(Cancelled(run_id=run.id))
                return
            if self._book.is_being_sent(run.id):
                self._report(StopDelayed(run_id=run.id, message=_BEING_SENT))
            self._to_cancel.append(CancelOrder(run=run))
            self._start_thread()
        self._watch.hurry()

    def hold(self, runs: Iterable[Run]) -> None:
        """Hold pending jobs; jobs that already run continue."""
        self._order_hold(HOLD, runs)

    def release(self, runs: Iterable[Run]) -> None:
        self._order_hold(RELEASE, runs)

    def _order_hold(self, verb: str, runs: Iterable[Run]) -> None:
        """The newest order for a run replaces an older one, even one that has to be retried."""
        orders = [HoldOrder(verb=verb, run=run) for run in runs]
        newer = {order.run.id for order in orders}
        with self._orders:
            self._to_hold = [order for order in self._to_hold if order.run.id not in newer] + orders
            self._start_thread()

    def recall(self, run: Run) -> None:
        """Look up a job in the accounting that squeue no longer lists."""
        with self._orders:
            self._to_recall.append(run)
            self._start_thread()

    def cancel(self, job_id: str) -> None:
        """Cancel a job that no run needs any more."""
        with self._orders:
            self._unneeded.append(job_id)
            self._start_thread()

    def watch(self, active: Iterable[Run]) -> None:
        """Set the active runs. Called every second; listings come as reports."""
        runs = list(active)
        run_ids = {run.id for run in runs}
        self._faults.clear_all_but(run_ids)
        self._book.forget_all_but(run_ids)
        started = {run.id: run.attempt for run in runs if run.started_at is not None}
        self._watch.update(bool(runs) or bool(self.silence), started)

    def reports(self) -> list[SlurmReport]:
        return [self._reports.get() for _ in range(self._reports.qsize())]

    def was_sent_after(self, run_id: str, moment: float) -> bool:
        """Return whether a listing requested at `moment` may lack this run's job."""
        return self._book.was_sent_after(run_id, moment)

    def close(self) -> None:
        with self._orders:
            self._closing = True
            self._orders.notify()
        self._watch.close()

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
            if has_orders:
                time.sleep(_GATHER_SECONDS)
                self._carry_out_all()

    def _has_orders(self) -> bool:
        at_once = self._to_send or self._to_recall or self._unneeded
        return bool(at_once or _split_by_due(self._to_cancel)[0] or _split_by_due(self._to_hold)[0])

    def _carry_out_all(self) -> None:
        """Cancel first: submitting may hang."""
        with self._orders:
            runs, self._to_send = self._to_send, []
            forgotten, self._to_recall = self._to_recall, []
            unneeded, self._unneeded = self._unneeded, []
            cancels, self._to_cancel = _split_by_due(self._to_cancel)
            holds, self._to_hold = _split_by_due(self._to_hold)
        cancel_later = self._carry_out(self._cancelling.carry_out, cancels)
        hold_later = self._carry_out(self._holding.carry_out, holds)
        with self._orders:
            self._to_cancel += cancel_later
            newer = {order.run.id for order in self._to_hold}
            self._to_hold += [order for order in hold_later if order.run.id not in newer]
        self._cancelling.cancel_unneeded(unneeded)
        self._recalling.carry_out(forgotten)
        self._submission.send_all(runs)

    def _carry_out(self, do: Callable[[list[_Order]], list[_Order]], orders: list[_Order]) -> list[_Order]:
        """Execute orders and return those to retry. An unexpected error delays only these orders."""
        try:
            later = do(orders)
        except Exception as error:  # noqa: BLE001 - without this thread nothing is submitted; /health shows the error
            message = self._faults.note([order.run for order in orders], error)
            self._report(Troubled(run_ids=tuple(order.run.id for order in orders), message=message))
            return [replace(order, not_before=time.monotonic() + TRY_AGAIN_SECONDS) for order in orders]
        self._faults.clear(order.run.id for order in orders)
        return later

    def _report(self, report: SlurmReport) -> None:
        if isinstance(report, JobListing | Submitted):
            self.silence = ""
        elif isinstance(report, Unanswered) or (isinstance(report, NotSubmitted) and report.is_silent):
            self.silence = report.message
        if isinstance(report, Submitted | NotSubmitted):
            self._watch.hurry()
        self._reports.put(report)
        self.wake()


def _split_by_due(orders: list[_Order]) -> tuple[list[_Order], list[_Order]]:
    """Return the orders for now, and those for later."""
    now = time.monotonic()
    return [order for order in orders if order.not_before <= now], [order for order in orders if order.not_before > now]


_SLOWEST = 6  # times the shortest pause: while nothing changes
_SLOWEST_SILENT = 12  # while Slurm does not answer


class SlurmWatch:
    """Lists all jobs at once, in its own thread and at most once every few seconds.

    It lists less often while nothing changes or Slurm does not answer. Run folders show starts and ends earlier.
    """

    def __init__(
        self, commands: SlurmCommands, query_seconds: float, report: Callable[[JobListing | Unanswered], None]
    ) -> None:
        self._commands = commands
        self._shortest = query_seconds
        self._report = report
        self._pause = query_seconds
        self._needed = threading.Event()
        self._closing = threading.Event()
        self._started: Mapping[str, int] = {}
        self._each_task = False  # list each task in its own row
        self._last: tuple[JobRow, ...] | None = None
        self._thread: threading.Thread | None = None

    def update(self, is_needed: bool, started: Mapping[str, int]) -> None:
        """Set whether jobs have to be listed, and which attempts have started by now."""
        self._started = started
        if not is_needed:
            self._needed.clear()
            return
        self._needed.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._loop, name="slurm-watch", daemon=True)
            self._thread.start()

    def hurry(self) -> None:
        """Use the shortest pause again: something was submitted or ended, so the next listing will differ."""
        self._pause = self._shortest

    def close(self) -> None:
        self._closing.set()
        self._needed.set()

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._needed.wait()
            if self._closing.is_set():
                return
            listed_at = time.monotonic()
            self._list_jobs()
            while time.monotonic() < listed_at + self._pause and not self._closing.wait(min(0.2, self._shortest)):
                pass

    def _list_jobs(self) -> None:
        asked_at, started = time.time(), self._started
        try:
            rows = tuple(read_squeue(self._commands.call(*squeue_arguments(os.getuid(), each_task=self._each_task))))
        except (SlurmSilent, SlurmRefused) as error:
            self._unanswered(error.message)
            return
        except Exception as error:  # without this thread no job would ever end
            log.exception("The output of squeue could not be parsed")
            self._unanswered(f"the output of squeue could not be parsed: {error!r}")
            return
        unchanged = rows == self._last
        self._pause = min(self._pause * 1.5, self._shortest * _SLOWEST) if unchanged else self._shortest
        self._last = rows
        held = any(row.tasks is not None and row.is_held for row in rows)
        self._each_task = held and (self._each_task or any(row.is_mixed for row in rows))
        self._report(JobListing(rows=rows, asked_at=asked_at, had_started=started))

    def _unanswered(self, message: str) -> None:
        self._pause = min(self._pause * 2, self._shortest * _SLOWEST_SILENT)
        self._report(Unanswered(message=message))
