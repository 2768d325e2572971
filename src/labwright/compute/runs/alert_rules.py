"""Metrics and alert rules in labwright.toml, and the automatic answers to alerts.

The rules are checked when the server starts, and passed to every sidecar.

`[metrics]` where numbers come from · `[alerts_builtin]` switches of built-in rules · `[[alerts]]` the project's own.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import epoch_seconds
from labwright.domain.errors import Invalid, LabwrightError
from labwright.domain.run import RunStatus
from labwright.settings import nearest
from labwright.store import alerts, runs

log = logging.getLogger(__name__)

SWITCHES = ("nan_or_inf", "divergence", "plateau", "stall", "gpu_idle", "disk_nearly_full", "traceback", "exit")
AMOUNTS = ("stall_minutes", "gpu_idle_minutes", "disk_free_gb")
_FIELDS = ("metric", "condition", "name", "severity", "choices", "action", "default_action", "default_after_seconds")
_ACTIONS = ("none", "stop", "rerun")
_CHOICES = ("ignore", "stop", "rerun")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CONDITION = re.compile(
    rf"""(?: (?P<op><=|>=|==|<|>) \s* (?P<value>{_NUMBER}|[-+]?inf)
           | (?P<nan>is\ nan) | (?P<stuck>no\ improvement) )
         (?: \s+ for \s+ (?: (?P<steps>\d+)\ steps? | (?P<span>\d+(?:\.\d+)?)\s?(?P<unit>s|m|h) ) )?""",
    re.VERBOSE,
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_CONDITION_HINT = (
    'Write "< 0.1", ">= 5 for 100 steps", "> 2 for 5m", "is nan" or "no improvement for 1000 steps"; '
    "compare with <, <=, >, >= or ==."
)
_LONGEST_TEXT = 400
_HIGHER_IS_BETTER = re.compile(
    r"(?:^|[/_.\-])(?:acc|accuracy|auc|auroc|f1|reward|return|score|bleu|map|iou)(?:$|[/_.\-@\d])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    name: str
    metric: str
    condition: dict[str, Any]
    severity: Severity
    choices: tuple[str, ...]
    action: str = "none"
    default_action: str = "none"
    default_after_seconds: float = 0.0

    def for_sidecar(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "metric": self.metric,
            "condition": self.condition,
            "severity": str(self.severity),
            "choices": list(self.choices),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    metrics: dict[str, Any] = field(default_factory=dict)
    builtin: dict[str, Any] = field(default_factory=dict)
    rules: tuple[AlertRule, ...] = ()

    def alert_options(self) -> dict[str, Any]:
        return {"builtin": self.builtin, "project": [rule.for_sidecar() for rule in self.rules]}

    def due_defaults(self, connection: sqlite3.Connection, now: float) -> list[tuple[Alert, str]]:
        """Return alerts to answer automatically, with the answer: an `action` at once, a default after its delay."""
        due = []
        for rule in self.rules:
            choice, after = rule.default_action, rule.default_after_seconds
            if rule.action != "none":
                choice, after = rule.action, 0.0
            if choice == "none":
                continue
            pending = (alert for alert in alerts.pending_of_rule(connection, rule.name) if choice in alert.choices)
            due += [(alert, choice) for alert in pending if epoch_seconds(alert.created_at) + after <= now]
        return due


@cache
def project_rules(config: Path) -> AlertRules:
    """Read the rules once per server. Raises Invalid with the wrong line."""
    try:
        text = config.read_text()
    except FileNotFoundError:
        return AlertRules()
    return parse_rules(text, str(config))


def parse_rules(text: str, where: str) -> AlertRules:
    data = tomllib.loads(text)
    source = _Source(text, where)
    tables = data.get("alerts", [])
    if not isinstance(tables, list):
        raise Invalid(
            f"{where}: alerts must be written as [[alerts]] tables.", hint="Use double brackets, one table per rule."
        )
    rules = tuple(_rule(source, index, table) for index, table in enumerate(tables))
    for index, rule in enumerate(rules):
        if rule.name in [*SWITCHES, *(other.name for other in rules[:index])]:
            place = source.place("alerts", "name", index)
            raise Invalid(f"{place}: there is a rule {rule.name!r} already.", hint="Give this rule another `name`.")
    return AlertRules(metrics=_metrics(source, data), builtin=_builtin(source, data), rules=rules)


class _Source:
    """The file's text, to find the line of a key."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.splitlines()
        self._name = name

    def place(self, table: str, key: str = "", index: int | None = None) -> str:
        number = self._line_of(table, key, index)
        return f"{self._name}, line {number}" if number else f"{self._name}, {table}"

    def _line_of(self, table: str, key: str, index: int | None) -> int | None:
        header = f"[[{table}]]" if index is not None else f"[{table}]"
        starts = [at for at, line in enumerate(self._lines) if line.split("#")[0].strip() == header]
        if len(starts) <= (index or 0):
            return None  # written inline
        start = starts[index or 0]
        for at in range(start + 1, len(self._lines)):
            line = self._lines[at].strip()
            if line.startswith("["):
                break
            if key and re.match(rf'"?{re.escape(key)}"?\s*=', line):
                return at + 1
        return start + 1


class _RuleTable:
    """One `[[alerts]]` table: returns each field, or raises Invalid with its line."""

    def __init__(self, source: _Source, index: int, table: object) -> None:
        self._source = source
        self._index = index
        if not isinstance(table, dict):
            raise self.wrong("", "an alert must be a table.")
        self._table: dict[str, Any] = table
        for key in table:
            if key not in _FIELDS:
                raise self.wrong(key, f"unknown field {key!r}.", hint=_known_hint(key, _FIELDS))

    def wrong(self, key: str, message: str, hint: str = "") -> Invalid:
        return Invalid(f"{self._source.place('alerts', key, self._index)}: {message}", hint=hint)

    def text(self, key: str, otherwise: str = "") -> str:
        value = self._table.get(key, otherwise)
        if not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST_TEXT:
            message = f"an alert needs `{key}`, as text of at most {_LONGEST_TEXT} characters."
            raise self.wrong(key, message, hint='For example metric = "val/acc" and condition = "< 0.1".')
        return value

    def condition(self, metric: str) -> dict[str, Any]:
        condition = parse_condition(self.text("condition"), metric)
        if condition is None:
            raise self.wrong("condition", f"{self._table['condition']!r} is not a condition.", hint=_CONDITION_HINT)
        return condition

    def one_of(self, key: str, known: Sequence[str], otherwise: str) -> str:
        value = self._table.get(key, otherwise)
        if value not in known:
            raise self.wrong(key, f"{key} {value!r} is not known.", hint=f"Known: {', '.join(known)}.")
        return str(value)

    def seconds(self, key: str, belongs_to: str) -> float:
        value = self._table.get(key)
        if (value is None) != (self._table.get(belongs_to, "none") == "none"):
            raise self.wrong(belongs_to, f"{belongs_to} and {key} belong together.", hint="Set both, or neither.")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9):
            raise self.wrong(key, f"{key} must be a number above 0, not {value!r}.")
        return float(value or 0.0)

    def choices(self, *needed: str) -> tuple[str, ...]:
        value = self._table.get("choices", list(_CHOICES))
        if not isinstance(value, list) or not all(isinstance(choice, str) and choice for choice in value):
            raise self.wrong("choices", "choices must be a list of texts.", hint='For example ["ignore", "stop"].')
        return tuple(dict.fromkeys([*value, *(choice for choice in needed if choice != "none")]))


def _rule(source: _Source, index: int, table: object) -> AlertRule:
    fields = _RuleTable(source, index, table)
    metric = fields.text("metric")
    action = fields.one_of("action", _ACTIONS, "none")
    default_action = fields.one_of("default_action", _ACTIONS, "none")
    return AlertRule(
        metric=metric,
        condition=fields.condition(metric),
        name=fields.text("name", f"{metric} {fields.text('condition')}"),
        severity=Severity(fields.one_of("severity", list(Severity), "warning")),
        choices=fields.choices(action, default_action),
        action=action,
        default_action=default_action,
        default_after_seconds=fields.seconds("default_after_seconds", "default_action"),
    )


def parse_condition(text: str, metric: str) -> dict[str, Any] | None:
    """Return a condition for the sidecar, or None if the text is not in the grammar."""
    match = _CONDITION.fullmatch(" ".join(text.split()))
    if match is None:
        return None
    op = match["op"] or ("is nan" if match["nan"] else "no improvement")
    condition: dict[str, Any] = {"op": op, "text": " ".join(text.split())}
    if match["value"]:
        condition["value"] = float(match["value"])
    if match["steps"]:
        condition["steps"] = int(match["steps"])
    if match["span"]:
        condition["seconds"] = float(match["span"]) * _SECONDS[match["unit"]]
    if op == "no improvement":
        if not match["steps"] and not match["span"]:
            return None  # else every second point of a noisy curve would raise it
        condition["goal"] = "max" if _HIGHER_IS_BETTER.search(metric) else "min"
    return condition


def _builtin(source: _Source, data: Mapping[str, Any]) -> dict[str, Any]:
    table = _table(source, data, "alerts_builtin", (*SWITCHES, *AMOUNTS))
    for key, value in table.items():
        place = source.place("alerts_builtin", key)
        if key in SWITCHES and not isinstance(value, bool):
            raise Invalid(f"{place}: {key} must be true or false, not {value!r}.")
        if key in AMOUNTS and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            raise Invalid(f"{place}: {key} must be a number above 0, not {value!r}.")
    return table


def _metrics(source: _Source, data: Mapping[str, Any]) -> dict[str, Any]:
    table = _table(source, data, "metrics", ("key_value", "patterns", "files"))
    if not isinstance(table.get("key_value", False), bool):
        raise Invalid(f"{source.place('metrics', 'key_value')}: key_value must be true or false.")
    for key in ("patterns", "files"):
        texts = table.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise Invalid(f"{source.place('metrics', key)}: {key} must be a list of texts.")
    place = source.place("metrics", "patterns")
    hint = r"Name each number: 'loss: (?P<loss>[\d.]+)'; a group `step` is the step."
    for pattern in table.get("patterns", ()):
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            raise Invalid(f"{place}: {pattern!r} is not a regular expression: {error}.", hint=hint) from error
        if not groups:
            raise Invalid(f"{place}: {pattern!r} has no named group.", hint=hint)
    return table


def _table(source: _Source, data: Mapping[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise Invalid(f"{source.place(name)}: {name} must be a table, [{name}].")
    for key in table:
        if key not in known:
            raise Invalid(f"{source.place(name, key)}: unknown field {key!r}.", hint=_known_hint(key, known))
    return table


def _known_hint(key: str, known: Sequence[str]) -> str:
    near = nearest(key, known)
    return f"{f'Did you mean {near}? ' if near else ''}Known: {', '.join(known)}."


class DueAlerts:
    """Answers alerts as the project's rules say: at once, or if nobody did in time."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._unanswerable: set[str] = set()

    def answer(self) -> None:
        rules = project_rules(self._lab.paths.config)
        for alert, choice in rules.due_defaults(self._lab.db.reader(), time.time()):
            if alert.id in self._unanswerable or (choice == "rerun" and not self._may_rerun(alert)):
                continue
            try:
                self._lab.answer_alert(alert.id, choice)
            except LabwrightError:
                self._unanswerable.add(alert.id)  # logged once; a person can still answer
                log.exception("The automatic answer %r to %s failed", choice, alert.id)

    def _may_rerun(self, alert: Alert) -> bool:
        """Return whether an automatic rerun is allowed: not of a rerun, to avoid a loop, and not of a stopped run."""
        if alert.run_id is None:
            return False
        run = runs.get(self._lab.db.reader(), alert.run_id)
        return run.parent_run_id is None and run.status is not RunStatus.STOPPED
