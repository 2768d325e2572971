"""Read the metric files of runs into the database, each line exactly once, and publish a hint that series have grown.

A file has one writer and only grows. The position is stored together with what was read.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic_core import from_json

from labwright.compute.lab import Lab
from labwright.compute.metrics.batch import MetricBatch, Refusals
from labwright.domain.errors import LabwrightError, NotFound, StorageFailed
from labwright.domain.event import Hint
from labwright.domain.run import Run
from labwright.files import complete_lines
from labwright.store import metric_files, metrics, runs
from labwright.store.database import Transaction

log = logging.getLogger(__name__)
_BATCH_BYTES = 4 << 20
_LARGE_BATCH_BYTES = 16 << 20  # for a run with many series: each batch touches most of them, so fewer are better
_MANY_SERIES = 10_000
_KEYS_AT_ONCE = 1000  # in one transaction: it blocks other writers for about a tenth of a second
_BREATH_SECONDS = 0.001  # lets waiting writers go first
_LITTLE_BYTES = 64 << 10
_SCRIPT = "sdk"
_HALF_A_LINE = "(half a line)"
_MARKED_BYTES = 256
_RECHECK_SECONDS = 0.25
_STATISTICS_SECONDS = 5.0
_STATISTICS_SHARE = 0.02  # of the time
_LONGEST_COMPUTED = 100_000  # points of a series; the statistics of a longer one are computed when its run has ended
_PAUSE_SECONDS = 0.1  # gathers points: small portions cost the most


class MetricIngest:
    """Reads in its own thread: a million points must not delay the engine."""

    def __init__(self, lab: Lab, on_finished: Callable[[str], None] = lambda _run_id: None) -> None:
        self._lab = lab
        self._on_finished = on_finished
        self._todo: queue.Queue[str | None] = queue.Queue()
        self._waiting: set[str] = set()
        self._woken: set[str] = set()
        self._finishing: set[str] = set()  # ended; the thread reads the rest
        self._finished: set[str] = set()  # ended; the thread has read the rest
        self._grown: set[str] = set()  # have new points since their statistics were computed
        self._statistics_at: dict[str, float] = {}  # active run -> when its statistics may be computed again
        self._closing = threading.Event()
        self._unlocked = threading.Condition()
        self._locked: set[str] = set()
        self._thread = threading.Thread(target=self._loop, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._todo.put(None)
        self._thread.join(timeout=10)

    def soon(self, run_id: str) -> None:
        """Queue a run, unless it is queued already. Called for every wake-up."""
        if run_id not in self._waiting:
            self._waiting.add(run_id)
            self._todo.put(run_id)

    def _loop(self) -> None:
        while True:
            try:
                run_id = self._todo.get(timeout=_RECHECK_SECONDS if self._woken else None)
            except queue.Empty:
                # The last points of a burst come without a wake-up, and some statistics had to wait.
                woken, self._woken = self._woken, set()
                for again in woken:
                    self._read(again)
                self._woken |= woken & self._grown
                continue
            if run_id is None:
                return
            self._waiting.discard(run_id)
            self._woken.add(run_id)
            self._read(run_id)
            if self._todo.empty():
                time.sleep(_PAUSE_SECONDS)

    def _read(self, run_id: str) -> None:
        is_last = run_id in self._finishing  # checked first: what is read from here on is complete
        try:
            if self.take_batch(run_id):
                self.soon(run_id)  # there is more; other runs go first
                return
            if is_last or self._has_ended(run_id):
                self._update_statistics(run_id)
                self._statistics_at.pop(run_id, None)
            elif run_id in self._grown and time.monotonic() >= self._statistics_at.get(run_id, 0.0):
                started = time.monotonic()
                self._update_statistics(run_id, _LONGEST_COMPUTED)
                now = time.monotonic()  # only now and then, so that points do not have to wait
                pause = max(_STATISTICS_SECONDS, (now - started) / _STATISTICS_SHARE)
                self._statistics_at[run_id] = now + pause
        except (LabwrightError, OSError, sqlite3.Error, ValueError, KeyError, TypeError, ArithmeticError) as error:
            log.error("Metrics of %s could not be read and are tried again: %r", run_id, error)
            if isinstance(error, StorageFailed):
                return  # not a fault of the run: its end waits
        if is_last:
            self._finishing.discard(run_id)
            self._finished.add(run_id)
            self._on_finished(run_id)

    def _has_ended(self, run_id: str) -> bool:
        """Return whether the run has ended. Points may still be sent to it."""
        try:
            return runs.get(self._lab.db.reader(), run_id).is_terminal
        except NotFound:
            return False  # deleted meanwhile

    def finish(self, run_id: str) -> bool:
        """Return whether all metrics of an ended run are read, so that it can be marked as ended.

        Small files are read here. The thread reads large ones and then calls `on_finished`, so that other runs can
        end meanwhile.
        """
        is_read_elsewhere = run_id in self._finishing or run_id in self._locked
        if run_id in self._finished:
            self._finished.discard(run_id)
        elif not is_read_elsewhere and sum(self._files(run_id).values()) <= _LITTLE_BYTES:
            self.drain(run_id)
        else:
            self._finishing.add(run_id)
            self.soon(run_id)
            return False
        self._report_half_a_line(run_id)
        return True

    def _report_half_a_line(self, run_id: str) -> None:
        """Report a file of the script that ends within a line: the rest could not be written."""
        folder = self._lab.paths.run(run_id).metrics
        paths = [f"{folder}/{name}" for name in self._files(run_id) if _source_of(name) == _SCRIPT]
        if all(_last_byte(path) == b"\n" for path in paths):
            return
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if _HALF_A_LINE not in [entry["key"] for entry in run.refused.get("first", ())]:
                refused = Refusals(_SCRIPT)
                refused.add(_HALF_A_LINE, "the disk was full or the process killed; what came after it is not there")
                refused.record(tx, run)

    def drain(self, run_id: str) -> None:
        """Read everything now."""
        while self.take_batch(run_id):
            pass
        self._update_statistics(run_id)

    def _update_statistics(self, run_id: str, longest: float = math.inf) -> None:
        """Compute statistics. That is too slow for each batch: it reads whole series to find steps logged again."""
        with self._lock(run_id):
            self._grown.discard(run_id)
            statistics = metrics.weighed_anew(self._lab.db.reader(), run_id, longest)
            if statistics:
                with self._lab.db.transaction() as tx:
                    metrics.save_statistics(tx, run_id, statistics)

    def take_batch(self, run_id: str) -> bool:
        """Read one batch of each file of the run. Return whether there is more."""
        with self._lock(run_id):
            more = [self._read_file(run_id, name) for name in self._files(run_id)]
            self._lab.unread.unmark(run_id, lambda: not self._files(run_id))
            if more:
                self._grown.add(run_id)
        if more:
            self._lab.publish_hint(Hint("metrics", run_id))
        return any(more)

    @contextlib.contextmanager
    def _lock(self, run_id: str) -> Iterator[None]:
        """Lock a run: the engine reads the end of runs, the thread everything else, and no file is read twice."""
        with self._unlocked:
            self._unlocked.wait_for(lambda: run_id not in self._locked)
            self._locked.add(run_id)
        try:
            yield
        finally:
            with self._unlocked:
                self._locked.discard(run_id)
                self._unlocked.notify_all()

    def _files(self, run_id: str) -> dict[str, int]:
        """Return the files whose size differs from what was read, with the difference in bytes.

        The file that was written last comes last: if several processes log a step, the last value counts.
        """
        written: list[tuple[int, str, int]] = []
        with contextlib.suppress(FileNotFoundError):  # nothing was logged
            for entry in os.scandir(self._lab.paths.run(run_id).metrics):
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile, or a link to nowhere
                    if entry.name.endswith(".jsonl"):
                        facts = entry.stat()
                        written.append((facts.st_mtime_ns, entry.name, facts.st_size))
        known = metric_files.positions(self._lab.db.reader(), run_id)
        unread = {name: abs(size - known.get(name, 0)) for _, name, size in sorted(written)}
        return {name: size for name, size in unread.items() if size}

    def _read_file(self, run_id: str, name: str) -> bool:
        try:
            return self._read_batch(runs.get(self._lab.db.reader(), run_id), name)
        except NotFound:
            return False  # deleted meanwhile

    def _read_batch(self, run: Run, name: str) -> bool:
        """Read and store a batch. Return whether there is more. A transaction blocks other writers, so it is short."""
        reader = self._lab.db.reader()
        row = metric_files.find(reader, run.id, name)
        path = f"{self._lab.paths.run(run.id).metrics}/{name}"
        file = _File(name, path, *(row or (0, _source_of(name), run.attempt, None, 0, 0)))
        if file.was_rewritten():
            file.position = file.part_keys = 0
            message = f"{name} was truncated or rewritten; it is read from its start, and removed points are lost."
            with self._lab.db.transaction() as tx:
                runs.notice(tx, run, "system", message)
                file.save(tx, run.id)
        has_many = metrics.count_own_series(reader, run.id) >= _MANY_SERIES
        size = _LARGE_BATCH_BYTES if has_many else _BATCH_BYTES
        if file.part_keys:
            size = file.part_end - file.position  # the same lines again
        with self._lab.unread.settled():
            lines, end = complete_lines(path, file.position, size)
        if file.position == 0 and lines:
            file.attempt = _attempt_in(lines[0], file.attempt)
        batch = MetricBatch(reader, run, file.source, file.attempt)
        batch.read(lines)
        has_grown = end > file.position
        self._store(run.id, file, batch, end)
        return has_grown and os.path.getsize(path) > end

    def _store(self, run_id: str, file: _File, batch: MetricBatch, end: int) -> None:
        """Store a batch, a part of its keys at a time together with the progress, so that a kill repeats nothing."""
        batch.pass_over(file.part_keys)
        first = file.part_keys
        while batch.key_count - first > _KEYS_AT_ONCE:
            with self._lab.db.transaction() as tx:
                runs.get(tx.connection, run_id)  # raises NotFound if it was deleted
                batch.store_points(tx, first, first + _KEYS_AT_ONCE)
                first = file.part_keys = first + _KEYS_AT_ONCE
                file.part_end = end
                file.save(tx, run_id)
            if self._closing.wait(_BREATH_SECONDS):
                return  # the next server continues here
        with self._lab.db.transaction() as tx:
            runs.get(tx.connection, run_id)
            batch.store_points(tx, first, batch.key_count)
            batch.store_rest(tx)
            file.position, file.part_keys = end, 0
            file.save(tx, run_id)
            metrics.save_summary(tx, run_id)


@dataclass(slots=True)
class _File:
    """How far a file was read. Of the lines between `position` and `part_end` the first `part_keys` keys are stored."""

    name: str
    path: str
    position: int
    source: str
    attempt: int
    mark: int | None
    part_end: int
    part_keys: int

    def was_rewritten(self) -> bool:
        size = os.path.getsize(self.path)
        is_shorter = size < self.position or bool(self.part_keys and size < self.part_end)
        return is_shorter or self.mark not in (None, _mark_before(self.path, self.position))

    def save(self, tx: Transaction, run_id: str) -> None:
        facts = {"position": self.position, "source": self.source, "attempt": self.attempt}
        part = {"part_end": self.part_end, "part_keys": self.part_keys}
        metric_files.put(tx, run_id, self.name, **facts, **part, mark=_mark_before(self.path, self.position))


def _source_of(name: str) -> str:
    """Return the source of a file: that of `sdk-123-x.jsonl` is `sdk`."""
    return name.removesuffix(".jsonl").split("-")[0]


def _last_byte(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)


def _mark_before(path: str, position: int) -> int:
    """Return a checksum of the bytes before a position: if it changes, the file was rewritten."""
    with open(path, "rb") as file:
        file.seek(max(0, position - _MARKED_BYTES))
        return zlib.crc32(file.read(min(position, _MARKED_BYTES)))


def _attempt_in(line: bytes, otherwise: int) -> int:
    try:
        attempt = from_json(line).get("attempt", otherwise)
    except (ValueError, AttributeError):
        return otherwise
    return attempt if isinstance(attempt, int) else otherwise
