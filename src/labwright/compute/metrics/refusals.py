"""What a run logged and nobody could keep: counted on the run, the first few with the reason, each told once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from labwright.compute.runs.alerts import raise_alert
from labwright.domain.alert import Severity
from labwright.domain.run import Run
from labwright.store import alerts, metrics, runs
from labwright.store.database import Transaction

_SHOWN = 10  # with reasons, of one run
_MORE_ALERTS_RULE = "many_alerts"
ALERT_CALL = "alert()"


class Refusals:
    """Of one source and one batch."""

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
        fresh = self._merge(shown)
        metrics.save_refused(tx, run.id, {"count": before.get("count", 0) + self._counts.total(), "first": shown})
        if fresh:
            words = "; ".join(f"{entry['key']}: {entry['why']}" for entry in fresh)
            runs.notice(tx, run, "system", f"Not taken as metrics from {self._source}: {words}")
        _tell_more_alerts(tx, run, shown)

    def _merge(self, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Into those that are shown. Answers the new ones."""
        known = {(entry["source"], entry["key"]): entry for entry in shown}
        fresh = []
        for key, why in self._why.items():
            entry = known.get((self._source, key))
            if entry is not None:
                entry["count"] += self._counts[key]
            elif len(shown) < _SHOWN or key == ALERT_CALL:
                fresh.append({"source": self._source, "key": key, "why": why, "count": self._counts[key]})
                shown.append(fresh[-1])
        return fresh


def _tell_more_alerts(tx: Transaction, run: Run, shown: list[dict[str, Any]]) -> None:
    """One alert stands for all that a script raised beyond its share."""
    count = sum(entry["count"] for entry in shown if entry["key"] == ALERT_CALL)
    if not count:
        return
    words = f"The script raised {count} more alerts. Answer some of those that are open to see new ones."
    pending = alerts.pending_of_run(tx.connection, run.id)
    told = next((alert for alert in pending if alert.rule == _MORE_ALERTS_RULE), None)
    if told is None:
        raise_alert(tx, run, _MORE_ALERTS_RULE, words, Severity.WARNING, ("ignore", "stop"))
    elif told.message != words:
        alerts.change(tx, replace(told, message=words), "system")
