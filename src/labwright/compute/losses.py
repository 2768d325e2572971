"""A run whose end nobody can learn: it is lost, and somebody is told."""

from __future__ import annotations

from typing import Any

from labwright.compute.ingest import EXIT_RULE, end_run, raise_alert
from labwright.compute.lab import Lab
from labwright.compute.run_folder import alert_options
from labwright.domain.alert import Severity
from labwright.domain.run import Run, RunStatus
from labwright.store.database import Transaction


def lose(lab: Lab, tx: Transaction, run: Run, *, reason: str, error: str, **facts: Any) -> None:
    """Its own sidecar can no longer raise the alert of its end."""
    lost = end_run(tx, run, RunStatus.LOST, reason=reason, error=error, **facts)
    if alert_options(lab, run)["builtin"].get("exit", True):
        raise_alert(tx, lost, EXIT_RULE, error, Severity.CRITICAL, ("ignore", "rerun"))
