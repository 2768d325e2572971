"""Read the metric files of runs into the database, each line exactly once, and tell who looks that a series grew.

A file has one writer and only grows; how far it was read is stored with what was read. Besides numbers a line may
carry an alert, a configuration, an artifact or what the writer refused.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sqlite3
import threading
import time
import zlib
from array import array
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from labwright.compute.http_points import part_of
from labwright.compute.ingest import raise_alert
from labwright.compute.lab import Lab
from labwright.compute.refusals import ALERT_CALL, Refusals
from labwright.domain.actor import Actor, Scope
from labwright.domain.alert import Severity
from labwright.domain.clock import rfc3339
from labwright.domain.configurations import config_hash
from labwright.domain.errors import Conflict, LabwrightError, NotFound
from labwright.domain.event import Hint
from labwright.domain.metric import Points, as_number, as_step, as_time
from labwright.domain.run import Run, name_from
from labwright.files import LONGEST_LINE, TooLong, complete_lines
from labwright.store import alerts, metrics, runs
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, recall, remember
from labwright.store.metrics import Series
from labwright.store.statements import METRICS

log = logging.getLogger(__name__)
MAX_KEYS = 100_000
MAX_KEY_LENGTH = 1024
_BATCH_BYTES = 4 << 20
_MANY_KEYS = 500  # in one batch
_LARGE_BATCH_BYTES = 16 << 20  # of a run with so many series each batch touches most of them: the fewer, the better
_MANY_SERIES = 10_000
_SYSTEM = "system"  # the source of what the monitor samples: a few series that count for nothing
_MARKED_BYTES = 256
_LOOK_AGAIN_SECONDS = 0.25
_PAUSE_SECONDS = 0.1  # small portions cost the most: what comes meanwhile is taken in one
MAX_SCRIPT_ALERTS = 20  # open at a time
_NAME_LENGTH = 200
_MAX_COUNT = 1 << 40
_SEVERITY = {"INFO": Severity.INFO, "WARN": Severity.WARNING, "ERROR": Severity.CRITICAL}


class MetricIngest:
    """A thread of its own: a million points to read must not hold up the engine."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._todo: queue.Queue[str | None] = queue.Queue()
        self._waiting: set[str] = set()
        self._woken: set[str] = set()
        self._lock = threading.Lock()  # the engine drains a run that ends; nobody reads a file twice
        self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
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
        """The last points of a burst come without a wake-up of their own."""
        woken, self._woken = self._woken, set()
        for run_id in woken:
            self._take_and_go_on(run_id)

    def _take_and_go_on(self, run_id: str) -> None:
        try:
            if self.take(run_id):
                self.soon(run_id)  # there is more; others have their turn first
        except (LabwrightError, OSError, sqlite3.Error) as error:
            log.error("metrics of %s could not be read and will be tried again: %s", run_id, error)

    def drain(self, run_id: str) -> None:
        """Everything there is, now: what an ended run logged is there when its end is told."""
        while self.take(run_id):
            pass

    def take(self, run_id: str) -> bool:
        """One batch of each file of the run. Answers whether there is more."""
        with self._lock:
            more = [self._take_file(run_id, name) for name in self._files(run_id)]
            self._lab.unread.forget(run_id, lambda: not self._files(run_id))
        if more:
            self._lab.publish_hint(Hint("metrics", run_id))
        return any(more)

    def _files(self, run_id: str) -> list[str]:
        folder = self._lab.paths.run(run_id).metrics
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
        known = self._positions(run_id)
        sizes = {name: os.path.getsize(f"{folder}/{name}") for name in names if name.endswith(".jsonl")}
        return [name for name, size in sizes.items() if size != known.get(name, 0)]

    def _positions(self, run_id: str) -> dict[str, int]:
        rows = self._lab.db.reader().execute(METRICS["files_of_run"], {"run_id": run_id})
        return {row[0]: row[1] for row in rows}

    def _take_file(self, run_id: str, name: str) -> bool:
        path = f"{self._lab.paths.run(run_id).metrics}/{name}"
        with self._lab.db.transaction() as tx:
            try:
                run = runs.get(tx.connection, run_id)
            except NotFound:
                return False  # deleted meanwhile
            row = tx.execute(METRICS["file"], run_id=run_id, name=name).fetchone()
            position, source, attempt, mark = row or (0, _source_of(name), run.attempt, None)
            if os.path.getsize(path) < position or mark not in (None, _mark_before(path, position)):
                words = (
                    f"{name} was cut short or written anew; it is read from its beginning, and what is gone is lost."
                )
                runs.notice(tx, run, "system", words)
                position = 0
            size = _BATCH_BYTES if _count_series(tx, run_id) < _MANY_SERIES else _LARGE_BATCH_BYTES
            with self._lab.unread.settled():
                lines, end = complete_lines(path, position, size)
            if position == 0 and lines:
                attempt = _attempt_in(lines[0], attempt)
            Batch(tx, run, source, attempt).take(lines)
            facts = {"run_id": run_id, "name": name, "position": end, "source": source, "attempt": attempt}
            tx.execute(METRICS["set_file"], **facts, mark=_mark_before(path, end))
            metrics.save_summary(tx, run_id)
        return end > position and os.path.getsize(path) > end


def _count_series(tx: Transaction, run_id: str) -> int:
    return int(tx.execute(METRICS["count_own_series"], run_id=run_id).fetchone()[0])


def _source_of(name: str) -> str:
    """`sdk-123-x.jsonl` comes from the source `sdk`."""
    return name.removesuffix(".jsonl").split("-")[0]


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


class Batch:
    """Some lines of one file, sorted into series."""

    def __init__(self, tx: Transaction, run: Run, source: str, attempt: int) -> None:
        self._tx = tx
        self._run = run
        self._source = source
        self._attempt = attempt
        self._points: dict[str, Points] = {}
        self._refused = Refusals(source)
        self._script_alerts: set[str] | None = None  # rules of those that are open, once asked for

    def take(self, lines: list[bytes]) -> None:
        for line in lines:
            if isinstance(line, TooLong):
                self._refused.add("(a long line)", f"it is longer than {LONGEST_LINE >> 20} MB")
                continue
            try:
                entry = from_json(line)
            except ValueError:
                self._refused.add("(a line)", "it is not JSON")
                continue
            self._take_entry(entry)
        self._append_points()
        self._refused.record(self._tx, self._run)

    def _append_points(self) -> None:
        """A run that is full begins no new series; those it has go on."""
        room = MAX_KEYS - _count_series(self._tx, self._run.id)
        find = self._finder()
        new: list[tuple[str, Points]] = []
        grown: list[tuple[Series, Points]] = []
        for key, points in self._points.items():
            series = find(key)
            if series is not None:
                grown.append((series, points))
            elif len(new) < room or self._source == _SYSTEM:
                new.append((key, points))
            else:
                self._refused.add("(more keys)", f"a run may have {MAX_KEYS} series", len(points))
        metrics.append(self._tx, grown)
        metrics.begin(self._tx, self._run.id, self._source, self._attempt, new)

    def _finder(self) -> Callable[[str], Series | None]:
        if len(self._points) > _MANY_KEYS:
            return metrics.series_of_source(self._tx, self._run.id, self._source, self._attempt).get
        return lambda key: metrics.find_series(self._tx, self._run.id, key, self._source, self._attempt)

    def _take_entry(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self._refused.add("(a line)", "it is not an object")
        elif "m" in entry:
            self._take_numbers(entry)
        elif "once" in entry:
            self._take_once(entry["once"], entry.get("lines"))
        elif "source" in entry:
            self._take_name(entry.get("name"))
        else:
            for kind, handle in _OTHER.items():
                if isinstance(entry.get(kind), dict):
                    handle(self, entry[kind], entry)

    def _take_numbers(self, entry: dict[str, Any]) -> None:
        step, moment, numbers = as_step(entry.get("s")), as_time(entry.get("t")), entry["m"]
        if step is None or moment is None or not isinstance(numbers, dict):
            self._refused.add("(a line)", "it needs a whole step, a time and numbers by key")
            return
        for key, value in numbers.items():
            number = value if type(value) is float else as_number(value)
            if number is None or len(key) > MAX_KEY_LENGTH:
                self._refused.add(key[:80], "not a number" if number is None else "the key is too long")
                continue
            points = self._points.get(key)
            if points is None:
                points = self._points[key] = Points(array("q"), array("d"), array("d"))
            points.steps.append(step)
            points.times.append(moment)
            points.values.append(number)

    def _take_once(self, sent: Any, lines: Any) -> None:
        """Points that were sent with an idempotency key: who heard no answer sent them again."""
        if not isinstance(sent, dict) or not isinstance(lines, list):
            self._refused.add("(a line)", "it needs a key and lines")
            return
        key = IdempotencyKey(str(sent.get("key")), f"POST /runs/{self._run.id}/metrics", str(sent.get("digest")))
        key = part_of(key, sent.get("part", 0))
        try:
            if recall(self._tx, key) is not None:
                return
        except Conflict:
            self._refused.add("(points)", "their Idempotency-Key was used for others before")
            return
        remember(self._tx, key, None)
        for line in lines:
            self._take_entry(line if isinstance(line, dict) and "m" in line else None)

    def _take_name(self, name: Any) -> None:
        """`init(name=…)` names a run that has no name of its own."""
        current = runs.get(self._tx.connection, self._run.id)
        wanted = str(name or "")[:_NAME_LENGTH].strip()
        if wanted and not current.sweep_id and current.name == name_from(current.command):
            self._run = runs.change(self._tx, current, current.evolve(name=wanted), _by(current))

    def _take_alert(self, alert: dict[str, Any], _entry: dict[str, Any]) -> None:
        title, text = str(alert.get("title", ""))[:200], str(alert.get("text", ""))[:5000]
        message = f"{title}: {text}" if title and text else title or text or "An alert without words."
        severity = _SEVERITY.get(str(alert.get("level", "")).upper(), Severity.WARNING)
        if self._has_room_for_alert(f"sdk:{title}"):
            raise_alert(self._tx, self._run, f"sdk:{title}", message, severity, ("ignore", "stop"), by=_by(self._run))
        else:
            self._refused.add(ALERT_CALL, f"{MAX_SCRIPT_ALERTS} alerts of the script are open")

    def _has_room_for_alert(self, rule: str) -> bool:
        if self._script_alerts is None:
            pending = alerts.pending_of_run(self._tx.connection, self._run.id)
            self._script_alerts = {alert.rule for alert in pending if alert.rule.startswith("sdk:")}
        if rule not in self._script_alerts and len(self._script_alerts) >= MAX_SCRIPT_ALERTS:
            return False
        self._script_alerts.add(rule)
        return True

    def _take_config(self, config: dict[str, Any], _entry: dict[str, Any]) -> None:
        current = runs.get(self._tx.connection, self._run.id)
        changed = _with_config(current, _plain(config))
        if changed != current:
            self._run = runs.change(self._tx, current, changed, _by(current))

    def _take_artifact(self, artifact: dict[str, Any], entry: dict[str, Any]) -> None:
        self._tx.execute(
            METRICS["insert_artifact"],
            run_id=self._run.id,
            key=str(artifact.get("key", ""))[:MAX_KEY_LENGTH],
            step=as_step(entry.get("s")),
            kind=str(artifact.get("kind", "file"))[:40],
            path=str(artifact.get("path", ""))[:4096],
            caption=str(artifact.get("caption") or "")[:1000],
            time=rfc3339(as_time(entry.get("t")) or 0.0),
        )

    def _take_refused(self, refused: dict[str, Any], _entry: dict[str, Any]) -> None:
        count = refused.get("count")
        times = count if type(count) is int and 0 < count < _MAX_COUNT else 1
        self._refused.add(str(refused.get("key", ""))[:80], str(refused.get("why", ""))[:200], times)


_OTHER: dict[str, Callable[[Batch, dict[str, Any], dict[str, Any]], None]] = {
    "alert": Batch._take_alert,
    "config": Batch._take_config,
    "artifact": Batch._take_artifact,
    "refused": Batch._take_refused,
}


def _by(run: Run) -> str:
    return str(Actor(Scope.RUN, run.id))


def _with_config(run: Run, config: dict[str, Any]) -> Run:
    """What a sweep gave a run stays as it was given: it says which configuration the run is."""
    if run.trial is not None:
        return run.evolve(params={**config, **run.params})
    params = {**run.params, **config}
    return run.evolve(params=params, config_hash=config_hash(params) if params else None)


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """Only what JSON can carry everywhere: the rest as text."""
    text = json.dumps(config, default=str)
    found: dict[str, Any] = json.loads(text, parse_constant=str)
    return found
