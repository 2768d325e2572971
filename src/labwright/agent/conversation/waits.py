"""Waiting without a model: a session's waits are stored in its record, and an event starts its next turn."""

from __future__ import annotations

from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.errors import NotFound
from labwright.domain.event import CHAT_HINT, Hint
from labwright.domain.session import PieceKind, Session, SessionStatus, Wait
from labwright.domain.sweep import SweepStatus
from labwright.services.runs import verbs as runs
from labwright.store import sessions, sweeps

Json = dict[str, Any]


def wake(lab: Lab, seen: Session) -> None:
    """Start a turn if something that the session waits for has happened. Idempotent."""
    if seen.status is not SessionStatus.IDLE or not _happened(lab, seen):
        return
    with lab.db.transaction() as tx:
        before = sessions.get(tx.connection, seen.id)
        done = {wait: what for wait, what in _happened(lab, before).items() if before.status is SessionStatus.IDLE}
        if not done:
            return
        left = tuple(wait for wait in before.waits if wait not in done)
        started = before.begin_turn(now()).evolve(waits=left)
        news = [{"note": wait.note, "happened": what} for wait, what in done.items()]
        started = sessions.append(tx, started, [(PieceKind.WAKE, {"news": news, "mode": started.mode})])
        sessions.change(tx, before, started, str(SYSTEM))
    lab.publish_hint(Hint(CHAT_HINT, session_id=seen.id))


def _happened(lab: Lab, session: Session) -> dict[Wait, list[Json]]:
    found = {wait: outcome(lab, wait) for wait in session.waits}
    return {wait: what for wait, what in found.items() if what}


def outcome(lab: Lab, wait: Wait) -> list[Json]:
    """Return how the runs or the sweep ended, or an empty list if there is still something to wait for."""
    if wait.sweep_id is not None:
        return _sweep_outcome(lab, wait.sweep_id)
    ends = [end for run_id in wait.run_ids if (end := _run_end(lab, run_id))]
    enough = bool(ends) if wait.any_of_them else len(ends) == len(wait.run_ids)
    return ends if enough else []


def _run_end(lab: Lab, run_id: str) -> Json | None:
    try:
        run = runs.get(lab, run_id)
    except NotFound:
        return {"run_id": run_id, "status": "deleted"}
    if not run.is_terminal:
        return None
    return {"run_id": run.id, "name": run.name, "status": run.status, "reason": run.status_reason}


def _sweep_outcome(lab: Lab, sweep_id: str) -> list[Json]:
    try:
        sweep = sweeps.get(lab.db.reader(), sweep_id)
    except NotFound:
        return [{"sweep_id": sweep_id, "status": "deleted"}]
    if sweep.status is SweepStatus.RUNNING and not sweep.is_wild:
        return []
    if sweep.is_wild and sweeps.unended_runs(lab.db.reader(), sweep_id):
        return []
    return [{"sweep_id": sweep.id, "name": sweep.name, "status": sweep.status, "reason": sweep.status_reason}]
