"""Raise, clear and settle the alerts of a run, in the transaction of their cause."""

from __future__ import annotations

from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import now, rfc3339
from labwright.domain.ids import ALERT, id_of, new_id
from labwright.domain.run import Run
from labwright.store import alerts
from labwright.store.database import Transaction

_ACTOR = str(SYSTEM)
EXIT_RULE = "exit"
TRACEBACK_RULE = "traceback"  # raised by the sidecar
GPU_WAIT_RULE = "gpu_wait"
GPU_CONTENTION_RULE = "gpu_contention"  # raised by the sidecar
SLURM_HELD_RULE = "slurm_held"


def raise_alert(
    tx: Transaction,
    run: Run,
    rule: str,
    message: str,
    severity: Severity,
    choices: tuple[str, ...],
    by: str = _ACTOR,
    at: float | None = None,
) -> None:
    """Raise an alert. `at` is the time in the run folder: the id is derived from it, so a rebuilt database has the same
    one."""
    source = f"{run.id} {run.attempt} {rule} {at!r} {message}"
    alert = Alert(
        id=new_id(ALERT) if at is None else id_of(ALERT, source.encode(errors="replace")),
        run_id=run.id,
        message=message,
        severity=severity,
        rule=rule,
        choices=choices,
        created_at=now() if at is None else rfc3339(at),
    )
    alerts.insert(tx, alert.after_end() if run.is_terminal else alert, by)


def clear_alerts(tx: Transaction, run: Run, rule: str) -> None:
    """Clear an alert whose cause is over, so that nobody needs to answer it."""
    if alert := alerts.open_of_rule(tx.connection, run.id, rule):
        _clear(tx, alert)


def settle_alerts(tx: Transaction, run: Run) -> None:
    """Clear alerts about waiting, and remove choices that make no sense for an ended run.

    A failed run keeps one alert: its exit names the exception, so the alert about the traceback says nothing more.
    """
    pending = alerts.pending_of_run(tx.connection, run.id)
    over = {GPU_WAIT_RULE, SLURM_HELD_RULE}
    if any(alert.rule == EXIT_RULE for alert in pending):
        over.add(TRACEBACK_RULE)
    for alert in pending:
        if alert.rule in over:
            _clear(tx, alert)
        elif (changed := alert.after_end()) != alert:
            alerts.change(tx, changed, _ACTOR)


def _clear(tx: Transaction, alert: Alert) -> None:
    alerts.resolve(tx, alert.answered("cleared", _ACTOR, now()), _ACTOR)
