"""A run whose end nobody can learn: it is lost, and somebody is told."""

from __future__ import annotations

from typing import Any

from labwright.compute.ingest import end_run, tell_end
from labwright.compute.lab import Lab
from labwright.domain.run import Run, RunStatus
from labwright.store.database import Transaction


def lose(lab: Lab, tx: Transaction, run: Run, *, reason: str, error: str, **facts: Any) -> None:
    lost = end_run(tx, run, RunStatus.LOST, reason=reason, error=error, **facts)
    tell_end(lab, tx, lost)
