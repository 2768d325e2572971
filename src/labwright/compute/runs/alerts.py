"""The alerts of a run: raised, cleared and settled in the transaction of what they tell of."""

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
GPU_WAIT_RULE = "gpu_wait"
GPU_CONTENTION_RULE = "gpu_contention"  # of the sidecar
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
    """`at` is when the run's folder says it was: then its id follows from that, and a rebuilt database has the same."""
    told = f"{run.id} {run.attempt} {rule} {at!r} {message}"
    alert = Alert(
        id=new_id(ALERT) if at is None else id_of(ALERT, told.encode(errors="replace")),
        run_id=run.id,
        message=message,
        severity=severity,
        rule=rule,
        choices=choices,
        created_at=now() if at is None else rfc3339(at),
    )
    alerts.insert(tx, alert.after_end() if run.is_terminal else alert, by)


def clear_alerts(tx: Transaction, run: Run, rule: str) -> None:
    """What the alert told of is over; nobody needs to answer it any more."""
    if alert := alerts.open_of_rule(tx.connection, run.id, rule):
        _clear(tx, alert)


def settle_alerts(tx: Transaction, run: Run) -> None:
    """Its wait is over, and nobody is offered to stop what has ended."""
    for alert in alerts.pending_of_run(tx.connection, run.id):
        if alert.rule in (GPU_WAIT_RULE, SLURM_HELD_RULE):
            _clear(tx, alert)
        elif (changed := alert.after_end()) != alert:
            alerts.change(tx, changed, _ACTOR)


def _clear(tx: Transaction, alert: Alert) -> None:
    alerts.resolve(tx, alert.answered("cleared", _ACTOR, now()), _ACTOR)
