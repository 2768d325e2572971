"""Read the metric files of runs into the database, each line exactly once, and tell who looks that a series grew.

A file has one writer and only grows; how far it was read is stored with what was read.
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
_LARGE_BATCH_BYTES = 16 << 20  # of a run with so many series each batch touches most of them: the fewer, the better
_MANY_SERIES = 10_000
_KEYS_AT_ONCE = 1000  # in one transaction: about a tenth of a second, in which nobody else writes
_BREATH_SECONDS = 0.001  # whoever waits to write comes first
_LITTLE_BYTES = 64 << 10
_SCRIPT = "sdk"
_HALF_A_LINE = "(half a line)"
_MARKED_BYTES = 256
_LOOK_AGAIN_SECONDS = 0.25
_WEIGH_SECONDS = 5.0
_WEIGH_SHARE = 0.02  # of the time
_LONGEST_WEIGHED = 100_000  # points of a series; a longer one is weighed when its run has ended
_PAUSE_SECONDS = 0.1  # small portions cost the most: what comes meanwhile is taken in one


class MetricIngest:
    """A thread of its own: a million points to read must not hold up the engine."""

    def __init__(self, lab: Lab, tell_finished: Callable[[str], None] = lambda _run_id: None) -> None:
        self._lab = lab
        self._tell_finished = tell_finished
        self._todo: queue.Queue[str | None] = queue.Queue()
        self._waiting: set[str] = set()
        self._woken: set[str] = set()
        self._finishing: set[str] = set()  # ended, and the thread takes what is left
        self._finished: set[str] = set()  # and has done so
        self._grown: set[str] = set()  # since they were weighed
        self._weigh_at: dict[str, float] = {}  # runs that go on, by when their series may be read whole again
        self._closing = threading.Event()
        self._hands = threading.Condition()
        self._in_hand: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._todo.put(None)
        self._thread.join(timeout=10)

    def soon(self, run_id: str) -> None:
        """Called for every wake-up; a run that is already in line is not put there twice."""
        if run_id not in self._waiting:
            self._waiting.add(run_id)
            self._todo.put(run_id)

    def _work(self) -> None:
        while True:
            try:
                run_id = self._todo.get(timeout=_LOOK_AGAIN_SECONDS if self._woken else None)
            except queue.Empty:
                self._look_again()
                continue
            if run_id is None:
                return
            self._waiting.discard(run_id)
            self._woken.add(run_id)
            self._take_and_go_on(run_id)
            if self._todo.empty():
                time.sleep(_PAUSE_SECONDS)

    def _look_again(self) -> None:
        """The last points of a burst come without a wake-up of their own; what may not be weighed yet comes again."""
        woken, self._woken = self._woken, set()
        for run_id in woken:
            self._take_and_go_on(run_id)
        self._woken |= {run_id for run_id in woken if run_id in self._grown}

    def _take_and_go_on(self, run_id: str) -> None:
        is_last = run_id in self._finishing  # asked before: what is read from here on is all there is
        try:
            if self.take(run_id):
                self.soon(run_id)  # there is more; others have their turn first
                return
            if is_last or self._has_ended(run_id):
                self._weigh_anew(run_id)
                self._weigh_at.pop(run_id, None)
            elif run_id in self._grown and time.monotonic() >= self._weigh_at.get(run_id, 0.0):
                self._weigh_meanwhile(run_id)
        except (LabwrightError, OSError, sqlite3.Error, ValueError, KeyError, TypeError, ArithmeticError) as error:
            log.error("metrics of %s could not be read and will be tried again: %r", run_id, error)
            if isinstance(error, StorageFailed):
                return  # not the run's fault: its end waits
        if is_last:
            self._finishing.discard(run_id)
            self._finished.add(run_id)
            self._tell_finished(run_id)

    def _has_ended(self, run_id: str) -> bool:
        """Points may be sent to such a run, too."""
        try:
            return runs.get(self._lab.db.reader(), run_id).is_terminal
        except NotFound:
            return False  # deleted meanwhile

    def finish(self, run_id: str) -> bool:
        """Whether all that an ended run logged is there, so that its end can be told.

        Little is taken here and now. More is taken in the thread, for others end meanwhile; then it is told.
        """
        is_taken_beside = run_id in self._finishing or run_id in self._in_hand
        if run_id in self._finished:
            self._finished.discard(run_id)
        elif not is_taken_beside and sum(self._files(run_id).values()) <= _LITTLE_BYTES:
            self.drain(run_id)
        else:
            self._finishing.add(run_id)
            self.soon(run_id)
            return False
        self._tell_half_a_line(run_id)
        return True

    def _tell_half_a_line(self, run_id: str) -> None:
        """At the end of what a script logged it stands for all that could not be written; its own words may be gone."""
        folder = self._lab.paths.run(run_id).metrics
        if not any(
            _source_of(name) == _SCRIPT and _ends_within_a_line(f"{folder}/{name}") for name in self._files(run_id)
        ):
            return
        with self._lab.db.transaction() as tx:
            run = runs.get(tx.connection, run_id)
            if _HALF_A_LINE not in [entry["key"] for entry in run.refused.get("first", ())]:
                refused = Refusals(_SCRIPT)
                refused.add(_HALF_A_LINE, "the disk was full or the process killed; what came after it is not there")
                refused.record(tx, run)

    def drain(self, run_id: str) -> None:
        """Everything there is, now."""
        while self.take(run_id):
            pass
        self._weigh_anew(run_id)

    def _weigh_meanwhile(self, run_id: str) -> None:
        """Of a run that goes on: now and then, so that nobody's points wait for it."""
        began = time.monotonic()
        self._weigh_anew(run_id, _LONGEST_WEIGHED)
        now = time.monotonic()
        self._weigh_at[run_id] = now + max(_WEIGH_SECONDS, (now - began) / _WEIGH_SHARE)

    def _weigh_anew(self, run_id: str, longest: float = math.inf) -> None:
        """Not with each batch: a series has to be read whole to tell what was logged anew."""
        with self._alone_with(run_id):
            self._grown.discard(run_id)
            found = metrics.weighed_anew(self._lab.db.reader(), run_id, longest)
            if found:
                with self._lab.db.transaction() as tx:
                    metrics.save_statistics(tx, run_id, found)

    def take(self, run_id: str) -> bool:
        """One batch of each file of the run. Answers whether there is more."""
        with self._alone_with(run_id):
            more = [self._take_file(run_id, name) for name in self._files(run_id)]
            self._lab.unread.unmark(run_id, lambda: not self._files(run_id))
            if more:
                self._grown.add(run_id)
        if more:
            self._lab.publish_hint(Hint("metrics", run_id))
        return any(more)

    @contextlib.contextmanager
    def _alone_with(self, run_id: str) -> Iterator[None]:
        """The engine takes the last words of runs, the thread all else; nobody reads a file twice."""
        with self._hands:
            self._hands.wait_for(lambda: run_id not in self._in_hand)
            self._in_hand.add(run_id)
        try:
            yield
        finally:
            with self._hands:
                self._in_hand.discard(run_id)
                self._hands.notify_all()

    def _files(self, run_id: str) -> dict[str, int]:
        """Those that are longer than what was read of them, or shorter, and by how many bytes; the last written last,
        since of a step that several processes log the last to arrive counts, whether or not a server read along."""
        written: list[tuple[int, str, int]] = []
        with contextlib.suppress(FileNotFoundError):  # nothing was logged
            for entry in os.scandir(self._lab.paths.run(run_id).metrics):
                with contextlib.suppress(FileNotFoundError):  # gone meanwhile, or a link to nowhere
                    if entry.name.endswith(".jsonl"):
                        facts = entry.stat()
                        written.append((facts.st_mtime_ns, entry.name, facts.st_size))
        known = self._positions(run_id)
        unread = {name: abs(size - known.get(name, 0)) for _, name, size in sorted(written)}
        return {name: size for name, size in unread.items() if size}

    def _positions(self, run_id: str) -> dict[str, int]:
        return metric_files.positions(self._lab.db.reader(), run_id)

    def _take_file(self, run_id: str, name: str) -> bool:
        try:
            return self._take_batch(runs.get(self._lab.db.reader(), run_id), name)
        except NotFound:
            return False  # deleted meanwhile

    def _take_batch(self, run: Run, name: str) -> bool:
        """Read without a transaction, since whoever wants to write waits for those."""
        reader = self._lab.db.reader()
        row = metric_files.find(reader, run.id, name)
        path = f"{self._lab.paths.run(run.id).metrics}/{name}"
        file = _File(name, path, *(row or (0, _source_of(name), run.attempt, None, 0, 0)))
        if file.is_written_anew():
            self._begin_anew(run, file)
        with self._lab.unread.settled():
            lines, end = complete_lines(path, file.position, self._batch_size(run.id, file))
        if file.position == 0 and lines:
            file.attempt = _attempt_in(lines[0], file.attempt)
        batch = MetricBatch(reader, run, file.source, file.attempt)
        batch.read(lines)
        has_grown = end > file.position
        self._store(run.id, file, batch, end)
        return has_grown and os.path.getsize(path) > end

    def _batch_size(self, run_id: str, file: _File) -> int:
        if file.part_keys:
            return file.part_end - file.position  # the very same lines again
        many = metrics.count_own_series(self._lab.db.reader(), run_id) >= _MANY_SERIES
        return _LARGE_BATCH_BYTES if many else _BATCH_BYTES

    def _begin_anew(self, run: Run, file: _File) -> None:
        file.position = file.part_keys = 0
        with self._lab.db.transaction() as tx:
            words = (
                f"{file.name} was cut short or written anew; it is read from its beginning, and what is gone is lost."
            )
            runs.notice(tx, run, "system", words)
            file.save(tx, run.id)

    def _store(self, run_id: str, file: _File, batch: MetricBatch, end: int) -> None:
        """Of very many keys some at a time, each time with how far we are: a kill in between repeats nothing."""
        batch.pass_over(file.part_keys)
        first = file.part_keys
        while batch.key_count - first > _KEYS_AT_ONCE:
            with self._lab.db.transaction() as tx:
                runs.get(tx.connection, run_id)  # or it was deleted meanwhile
                batch.store_points(tx, first, first + _KEYS_AT_ONCE)
                first = file.part_keys = first + _KEYS_AT_ONCE
                file.part_end = end
                file.save(tx, run_id)
            if self._closing.wait(_BREATH_SECONDS):
                return  # the next server goes on from here
        with self._lab.db.transaction() as tx:
            runs.get(tx.connection, run_id)
            batch.store_points(tx, first, batch.key_count)
            batch.store_rest(tx)
            file.position, file.part_keys = end, 0
            file.save(tx, run_id)
            metrics.save_summary(tx, run_id)


@dataclass(slots=True)
class _File:
    """How far a file was read. The first `part_keys` keys of what lies between `position` and `part_end` are stored."""

    name: str
    path: str
    position: int
    source: str
    attempt: int
    mark: int | None
    part_end: int
    part_keys: int

    def is_written_anew(self) -> bool:
        size = os.path.getsize(self.path)
        is_shorter = size < self.position or bool(self.part_keys and size < self.part_end)
        return is_shorter or self.mark not in (None, _mark_before(self.path, self.position))

    def save(self, tx: Transaction, run_id: str) -> None:
        facts = {"position": self.position, "source": self.source, "attempt": self.attempt}
        part = {"part_end": self.part_end, "part_keys": self.part_keys}
        metric_files.put(tx, run_id, self.name, **facts, **part, mark=_mark_before(self.path, self.position))


def _source_of(name: str) -> str:
    """`sdk-123-x.jsonl` comes from the source `sdk`."""
    return name.removesuffix(".jsonl").split("-")[0]


def _ends_within_a_line(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _mark_before(path: str, position: int) -> int:
    """Of the bytes just read: if they are others the next time, the file has been written anew."""
    with open(path, "rb") as file:
        file.seek(max(0, position - _MARKED_BYTES))
        return zlib.crc32(file.read(min(position, _MARKED_BYTES)))


def _attempt_in(line: bytes, otherwise: int) -> int:
    try:
        found = from_json(line).get("attempt", otherwise)
    except (ValueError, AttributeError):
        return otherwise
    return found if isinstance(found, int) else otherwise
