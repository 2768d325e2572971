"""The loop that starts runs and follows them: one thread, woken by events, with a tick as a fallback."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sqlite3
import threading
import time
from dataclasses import replace

from labwright.compute.database.backups import Backups
from labwright.compute.lab import Lab
from labwright.compute.local.recover import recover
from labwright.compute.metrics.ingest import MetricIngest
from labwright.compute.runs.alert_rules import DueAlerts
from labwright.compute.runs.ingest import ingest
from labwright.compute.runs.launching import Launching
from labwright.compute.scheduler import capacity_of, choose
from labwright.compute.slurm.held_jobs import SlurmHolds
from labwright.compute.slurm.reports import SlurmReports
from labwright.compute.viewers import Viewers
from labwright.domain.actor import SYSTEM
from labwright.domain.errors import LabwrightError, StorageFailed
from labwright.domain.event import Hint
from labwright.domain.run import ACTIVE, Run, RunStatus
from labwright.store import runs, sweeps
from labwright.store.queue import Holder, load_holders, load_queues

log = logging.getLogger(__name__)
_TICK_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_LOST_CHECK_SECONDS = 30.0
_MAX_LAUNCHES = 2000  # per tick
_NEWEST = 100  # ended runs that are checked at the start
_READING_METRICS = "it has ended; its result is shown once its metrics are read"


class RunEngine:
    """Starts sidecars for queued runs, and applies what sidecars report to the runs."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(lab.paths.wake, 0o600)
        # Opened for reading and writing, so that it never reports end-of-file when the last sidecar closes it.
        self._fifo = os.open(lab.paths.wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._closing = False
        self._dirty: set[str] = set()
        self._next_check = 0.0
        self._next_lost_check = 0.0
        self._is_full = False
        self._turns: dict[str, int] = {}  # sweep -> when its last run was started, as a rising number
        self._launching = Launching(lab)
        self._due_alerts = DueAlerts(lab)
        self._viewers = Viewers(lab)
        self._backups = Backups(lab)
        self._metrics = MetricIngest(lab, self._on_metrics_read)
        self._unfinished: set[str] = set()  # ended, with metrics that are still being read
        self._over: set[str] = set()  # the command has ended and its GPUs are free; the sidecar still reads its output
        self._slurm = SlurmReports(lab, self._update_at_once)
        self._holds = SlurmHolds(lab)
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)
        lab.wake = self.wake
        lab.run_was_queued = self._wake_if_room
        lab.slurm.wake = self.wake
        lab.metrics_arrived = self._metrics.soon

    def start(self) -> None:
        """Apply what happened while no server was running, then start the loop."""
        for run in runs.with_status(self._lab.db.reader(), *ACTIVE, RunStatus.LOST):
            self._update(run.id)
        for run in runs.with_status(self._lab.db.reader(), *ACTIVE):
            self._recover(run, at_start=True)
        newest = runs.lost_or_newest(self._lab.db.reader(), _NEWEST)
        for run_id in {*self._lab.unread.run_ids(), *newest}:  # ended runs may have metrics that no server has read
            self._metrics.soon(run_id)
        self._thread.start()
        self._metrics.start()
        self._viewers.start()

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full: a wake-up is pending already
            os.write(self._wake_write, b"x")

    def _wake_if_room(self) -> None:
        """Wake the engine, unless all slots are in use: then the end of a run wakes it."""
        if not self._is_full:
            self.wake()

    def close(self) -> None:
        self._closing = True
        self.wake()
        self._thread.join(timeout=10)
        self._metrics.close()
        self._viewers.close()
        self._lab.local.close()
        self._lab.slurm.close()
        os.close(self._fifo)

    def _loop(self) -> None:
        while not self._closing:
            self._wait_for_event()
            try:
                self.tick()
                self._lab.fault = ""
            except Exception as error:
                is_expected = isinstance(error, LabwrightError | OSError | sqlite3.Error)
                self._lab.fault = str(error) if is_expected else repr(error)
                log.error("The engine failed and tries again: %s", self._lab.fault, exc_info=True)
                time.sleep(_RETRY_SECONDS)

    def tick(self) -> None:
        self._lab.db.heal_if_deleted()
        while self._dirty:
            self._update(self._dirty.pop())
        self._slurm.apply()
        self._check_active()
        self._check_lost()
        self._start_queued()
        self._backups.make_if_due()
        self._lab.reserve.keep()

    def _wait_for_event(self) -> None:
        """Wait for a line from a sidecar, a wake-up from the API, or the tick."""
        ready, _, _ = select.select([self._fifo, self._wake_read], [], [], _TICK_SECONDS)
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        if self._fifo in ready:
            for line in os.read(self._fifo, 65536).decode(errors="replace").splitlines():
                run_id, _, topic = line.partition(" ")
                if topic == "output":
                    self._lab.publish_hint(Hint("output", run_id))
                elif topic == "metrics":
                    self._metrics.soon(run_id)
                elif topic == "over":
                    self._over.add(run_id)
                else:
                    self._dirty.add(run_id)

    def _on_metrics_read(self, run_id: str) -> None:
        """Wake the engine through the FIFO, as sidecars do. The metrics thread calls this."""
        with contextlib.suppress(BlockingIOError):  # the FIFO is full: the run is checked at the next tick
            os.write(self._fifo, f"{run_id} events\n".encode())

    def _update_at_once(self, run_id: str) -> Run | None:
        """Read all metrics now, then update the run: for callers that know that it has ended and cannot wait."""
        self._metrics.drain(run_id)
        return self._update(run_id)

    def _update(self, run_id: str) -> Run | None:
        """Ingest the remaining metrics before marking a run as ended. Large files are read by another thread first."""
        try:
            if os.path.exists(self._lab.paths.run(run_id).exit):
                if not self._metrics.finish(run_id):
                    self._note_reading(run_id)
                    return None
                self._unfinished.discard(run_id)
            return ingest(self._lab, run_id)
        except StorageFailed:  # affects all runs, not only this one
            raise
        except (LabwrightError, OSError, ValueError, KeyError, TypeError, ArithmeticError):  # jobs can write there too
            log.exception("The files of the sidecar of %s cannot be read", run_id)
            return None

    def _note_reading(self, run_id: str) -> None:
        """Set a status reason that the run has ended: in a rebuilt database it may still be `launching`."""
        if run_id in self._unfinished:
            return
        self._unfinished.add(run_id)
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if run.is_active:
                runs.change(tx, run, run.evolve(status_reason=_READING_METRICS), str(SYSTEM))

    def _recover(self, run: Run, *, at_start: bool = False) -> None:
        """Recover one run. An error must not affect other runs."""
        if run.id in self._unfinished:
            return
        try:
            recover(self._lab, run, at_start=at_start)
        except StorageFailed:
            raise
        except (LabwrightError, OSError, ValueError, KeyError, TypeError):
            log.exception("%s cannot be recovered", run.id)

    def _check_active(self) -> None:
        """Check every active run once a second, in case a wake-up got lost."""
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + _TICK_SECONDS
        active = runs.with_status(self._lab.db.reader(), *ACTIVE)
        for run in active:
            self._metrics.soon(run.id)
            if self._update(run.id) is None:
                self._recover(run)
        self._lab.slurm.watch(run for run in active if run.is_on_slurm)
        self._holds.update(active)
        self._viewers.open_for(runs.with_status(self._lab.db.reader(), RunStatus.RUNNING))
        self._due_alerts.answer()

    def _check_lost(self) -> None:
        """Check lost Slurm runs: the job may have continued and written its exit, but nodes send no wake-ups."""
        if time.monotonic() < self._next_lost_check:
            return
        self._next_lost_check = time.monotonic() + _LOST_CHECK_SECONDS
        for run in runs.with_status(self._lab.db.reader(), RunStatus.LOST):
            if run.is_on_slurm and os.path.exists(self._lab.paths.run(run.id).exit):
                self._update(run.id)

    def _start_queued(self) -> None:
        if self._launching.is_backing_off or self._slurm.is_blocked():
            return
        reader, settings = self._lab.db.reader(), self._lab.settings
        cluster = self._lab.cluster.current
        capacity = capacity_of(cluster, settings.max_parallel)
        active = self._with_over_marked(load_holders(reader, cluster), capacity.gpus)
        room = min(capacity.total - sum(holder.keeps_others_out for holder in active), _MAX_LAUNCHES)
        self._is_full = room <= 0  # set before the queue is read: later runs wake us
        if self._is_full:
            return
        limits = sweeps.limits(reader)
        queues = load_queues(reader, {name for name, limit in limits.items() if limit == 0}, room)
        chosen = choose(queues, active, capacity, limits, time.time(), settings.ageing_seconds, self._turns)
        if chosen:
            groups = {candidate.run_id: candidate.group for queue in queues.values() for candidate in queue}
            for run_id in chosen:
                self._turns[groups[run_id]] = max(self._turns.values(), default=0) + 1
            self._launching.launch(chosen)

    def _with_over_marked(self, holders: list[Holder], cards: int) -> list[Holder]:
        """Mark runs whose command has ended, so that their GPUs can be used again.

        At most one run per GPU is marked, so that unread output does not pile up. Runs without GPUs keep their slot,
        because reading their output needs a core.
        """
        self._over &= {holder.run_id for holder in holders}
        over = [holder for holder in holders if holder.gpus and holder.run_id in self._over | self._unfinished]
        return [replace(holder, is_over=holder in over[:cards]) for holder in holders]
