"""Some lines of one metric file: parsed outside of a transaction, then stored in portions, so that others can write.

Besides numbers, a line may have an alert, a configuration, an artifact or values that the writer refused. Values that
cannot be used are counted and shown with the run (`Refusals`).
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from labwright.compute.metrics.unread import part_of
from labwright.compute.runs.alerts import raise_alert
from labwright.domain.actor import Actor, Scope
from labwright.domain.alert import Severity
from labwright.domain.clock import rfc3339
from labwright.domain.errors import Conflict
from labwright.domain.metrics.points import Points, as_number, as_step, as_time
from labwright.domain.run import Run, name_from
from labwright.domain.search.configurations import config_hash
from labwright.files import LONGEST_LINE, TooLong
from labwright.store import alerts, metric_files, metrics, runs
from labwright.store.database import Transaction
from labwright.store.idempotency import IdempotencyKey, first_answer, refuse_other, remember
from labwright.store.metrics import Series

MAX_KEYS = 100_000
MAX_KEY_LENGTH = 1024
MAX_SCRIPT_ALERTS = 20  # open at a time
_MANY_KEYS = 500  # in one batch
_SYSTEM = "system"  # the source of the monitor's samples, which do not count toward the limit
_NAME_LENGTH = 200
_TAG_LENGTH = 100
_MOST_TAGS = 50
_NOTES_LENGTH = 10_000
_MAX_COUNT = 1 << 40
_SEVERITY = {"INFO": Severity.INFO, "WARN": Severity.WARNING, "ERROR": Severity.CRITICAL}
_Fact = tuple[Callable[["MetricBatch", Transaction, Any, dict[str, Any]], None], Any, dict[str, Any]]


class MetricBatch:
    """`read` sorts lines into series, outside of a transaction. Meanwhile no other thread reads lines of this run."""

    def __init__(self, connection: sqlite3.Connection, run: Run, source: str, attempt: int) -> None:
        self._connection = connection
        self._run = run
        self._source = source
        self._attempt = attempt
        self._points: dict[str, Points] = {}
        self._facts: list[_Fact] = []
        self._sent: dict[tuple[str, str], IdempotencyKey] = {}
        self._refused = Refusals(source)
        self._script_alerts: set[str] | None = None  # rules of the open ones; None until they are read
        self._find: Callable[[str], Series | None]

    def read(self, lines: list[bytes]) -> None:
        for line in lines:
            if isinstance(line, TooLong):
                self._refused.add("(a long line)", f"it is longer than {LONGEST_LINE >> 20} MB")
                continue
            try:
                entry = from_json(line)
            except ValueError:
                self._refused.add("(a line)", "it is not JSON")
                continue
            self._read_entry(entry)
        self._keys = list(self._points)
        self._room = MAX_KEYS - metrics.count_own_series(self._connection, self._run.id)
        series = (self._run.id, self._source, self._attempt)
        if len(self._points) > _MANY_KEYS:
            self._find = metrics.series_of_source(self._connection, *series).get
        else:
            self._find = lambda key: metrics.find_series(self._connection, key, *series)

    @property
    def key_count(self) -> int:
        return len(self._keys)

    def pass_over(self, count: int) -> None:
        """Skip keys that are stored already, but count again those that the run had no room for."""
        for key in self._keys[:count]:
            if self._find(key) is None:
                self._refuse_key(key)

    def store_points(self, tx: Transaction, first: int, end: int) -> None:
        """Store the points of some keys. A run that is full gets no new series; existing ones continue."""
        new: list[tuple[str, Points]] = []
        grown: list[tuple[Series, Points]] = []
        for key in self._keys[first:end]:
            series = self._find(key)
            if series is not None:
                grown.append((series, self._points[key]))
            elif len(new) < self._room or self._source == _SYSTEM:
                new.append((key, self._points[key]))
            else:
                self._refuse_key(key)
        self._room -= len(new)
        metrics.append(tx, grown)
        metrics.begin(tx, self._run.id, self._source, self._attempt, new)

    def store_rest(self, tx: Transaction) -> None:
        """Store everything but the points: once, with the last points."""
        for store, fact, entry in self._facts:
            store(self, tx, fact, entry)
        for key in self._sent.values():
            remember(tx, key, None)
        self._refused.record(tx, self._run)

    def _refuse_key(self, key: str) -> None:
        self._refused.add("(more keys)", f"a run may have {MAX_KEYS} series", len(self._points[key]))

    def _read_entry(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self._refused.add("(a line)", "it is not an object")
        elif "m" in entry:
            self._read_numbers(entry)
        elif "once" in entry:
            self._read_once(entry["once"], entry.get("lines"))
        elif "source" in entry:
            self._facts.append((MetricBatch._store_header, entry, entry))
        else:
            kinds = [kind for kind in _FACT_HANDLERS if isinstance(entry.get(kind), dict)]
            self._facts += [(_FACT_HANDLERS[kind], entry[kind], entry) for kind in kinds]

    def _read_numbers(self, entry: dict[str, Any]) -> None:
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

    def _read_once(self, sent: Any, lines: Any) -> None:
        """Take points sent with an idempotency key once: a client that got no reply has sent them again."""
        if not isinstance(sent, dict) or not isinstance(lines, list):
            self._refused.add("(a line)", "it needs a key and lines")
            return
        key = IdempotencyKey(str(sent.get("key")), f"POST /runs/{self._run.id}/metrics", str(sent.get("digest")))
        key = part_of(key, sent.get("part", 0))
        before = self._sent.get((key.key, key.request), key)
        try:
            refuse_other(key, before.digest)
            if before is not key or first_answer(self._connection, key) is not None:
                return
        except Conflict:
            self._refused.add("(points)", "their Idempotency-Key was used for others before")
            return
        self._sent[key.key, key.request] = key
        for line in lines:
            self._read_entry(line if isinstance(line, dict) and "m" in line else None)

    def _store_header(self, tx: Transaction, header: dict[str, Any], _entry: dict[str, Any]) -> None:
        """Apply the arguments of `init`: a name and notes if the run has none, and more tags."""
        current = runs.get(tx.connection, self._run.id)
        name = str(header.get("name") or "")[:_NAME_LENGTH].strip()
        has_default_name = not current.sweep_id and current.name == name_from(current.command)
        tags = header["tags"][:_MOST_TAGS] if isinstance(header.get("tags"), list) else []
        changed = current.evolve(
            name=name if name and has_default_name else current.name,
            tags=tuple(dict.fromkeys([*current.tags, *(str(tag)[:_TAG_LENGTH] for tag in tags)])),
            notes=current.notes or str(header.get("notes") or "")[:_NOTES_LENGTH],
        )
        if changed != current:
            self._run = runs.change(tx, current, changed, _by(current))

    def _store_alert(self, tx: Transaction, alert: dict[str, Any], _entry: dict[str, Any]) -> None:
        title, text = str(alert.get("title", ""))[:200], str(alert.get("text", ""))[:5000]
        message = f"{title}: {text}" if title and text else title or text or "An alert without a text."
        severity = _SEVERITY.get(str(alert.get("level", "")).upper(), Severity.WARNING)
        if self._script_alerts is None:
            pending = alerts.pending_of_run(tx.connection, self._run.id)
            self._script_alerts = {alert.rule for alert in pending if alert.rule.startswith("sdk:")}
        rule = f"sdk:{title}"
        if rule not in self._script_alerts and len(self._script_alerts) >= MAX_SCRIPT_ALERTS:
            self._refused.add(ALERT_CALL, f"{MAX_SCRIPT_ALERTS} alerts of the script are open")
            return
        self._script_alerts.add(rule)
        raise_alert(tx, self._run, rule, message, severity, ("ignore", "stop"), by=_by(self._run))

    def _store_config(self, tx: Transaction, config: dict[str, Any], _entry: dict[str, Any]) -> None:
        current = runs.get(tx.connection, self._run.id)
        plain: dict[str, Any] = json.loads(json.dumps(config, default=str), parse_constant=str)  # else as text
        if current.trial is not None:  # the parameters of the sweep stay: they identify the configuration
            changed = current.evolve(params={**plain, **current.params})
        else:
            params = {**current.params, **plain}
            changed = current.evolve(params=params, config_hash=config_hash(params) if params else None)
        if changed != current:
            self._run = runs.change(tx, current, changed, _by(current))

    def _store_artifact(self, tx: Transaction, artifact: dict[str, Any], entry: dict[str, Any]) -> None:
        metric_files.add_artifact(
            tx,
            self._run.id,
            key=str(artifact.get("key", ""))[:MAX_KEY_LENGTH],
            step=as_step(entry.get("s")),
            kind=str(artifact.get("kind", "file"))[:40],
            path=str(artifact.get("path", ""))[:4096],
            caption=str(artifact.get("caption") or "")[:1000],
            time=rfc3339(as_time(entry.get("t")) or 0.0),
        )

    def _store_refused(self, _tx: Transaction, refused: dict[str, Any], _entry: dict[str, Any]) -> None:
        count = refused.get("count")
        times = count if type(count) is int and 0 < count < _MAX_COUNT else 1
        self._refused.add(str(refused.get("key", ""))[:80], str(refused.get("why", ""))[:200], times)


_FACT_HANDLERS: dict[str, Callable[[MetricBatch, Transaction, dict[str, Any], dict[str, Any]], None]] = {
    "alert": MetricBatch._store_alert,
    "config": MetricBatch._store_config,
    "artifact": MetricBatch._store_artifact,
    "refused": MetricBatch._store_refused,
}


def _by(run: Run) -> str:
    return str(Actor(Scope.RUN, run.id))


_SHOWN = 10  # with reasons, per run
_MORE_ALERTS_RULE = "many_alerts"
ALERT_CALL = "alert()"


class Refusals:
    """Values of one source and one batch that could not be used, with reasons."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._why: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, key: str, why: str, count: int = 1) -> None:
        self._why.setdefault(key, why)
        self._counts[key] += count

    def record(self, tx: Transaction, run: Run) -> None:
        if not self._why:
            return
        before = runs.get(tx.connection, run.id).refused
        shown: list[dict[str, Any]] = list(before.get("first", ()))
        known = {(entry["source"], entry["key"]): entry for entry in shown}
        fresh = []
        for key, why in self._why.items():
            entry = known.get((self._source, key))
            if entry is not None:
                entry["count"] += self._counts[key]
            elif len(shown) < _SHOWN or key == ALERT_CALL:
                fresh.append({"source": self._source, "key": key, "why": why, "count": self._counts[key]})
                shown.append(fresh[-1])
        metrics.save_refused(tx, run.id, {"count": before.get("count", 0) + self._counts.total(), "first": shown})
        if fresh:
            reasons = "; ".join(f"{entry['key']}: {entry['why']}" for entry in fresh)
            runs.notice(tx, run, "system", f"Not stored as metrics from {self._source}: {reasons}")
        _report_more_alerts(tx, run, shown)


def _report_more_alerts(tx: Transaction, run: Run, shown: list[dict[str, Any]]) -> None:
    """Raise or update the one alert that stands for all alerts of a script beyond the limit."""
    count = sum(entry["count"] for entry in shown if entry["key"] == ALERT_CALL)
    if not count:
        return
    message = f"The script raised {count} more alerts. Answer some of those that are open to see new ones."
    pending = alerts.pending_of_run(tx.connection, run.id)
    alert = next((alert for alert in pending if alert.rule == _MORE_ALERTS_RULE), None)
    if alert is None:
        raise_alert(tx, run, _MORE_ALERTS_RULE, message, Severity.WARNING, ("ignore", "stop"))
    elif alert.message != message:
        alerts.change(tx, replace(alert, message=message), "system")
