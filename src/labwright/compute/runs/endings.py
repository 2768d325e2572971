"""End a run in the database: store its facts, settle its alerts, release or fail the runs that waited for it."""

from __future__ import annotations

import contextlib
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.alerts import EXIT_RULE, clear_alerts, raise_alert, settle_alerts
from labwright.compute.runs.folder import alert_options
from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Severity
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.errors import NotFound
from labwright.domain.run import MOVES, Run, RunStatus
from labwright.files import read_json, write_json
from labwright.paths import RunPaths
from labwright.store import dependencies, runs
from labwright.store.database import Transaction

_ACTOR = str(SYSTEM)
_ENDED_AS = {RunStatus.FAILED: "failed", RunStatus.STOPPED: "was stopped", RunStatus.LOST: "was lost"}


def read_facts(path: str) -> dict[str, Any] | None:
    """Return the content of `exit.json` or `end.json`, or None if there is no such file."""
    try:
        facts: dict[str, Any] = read_json(path)
    except FileNotFoundError:
        return None
    return facts


def apply_exit(tx: Transaction, run: Run, facts: dict[str, Any]) -> Run:
    to = RunStatus(facts["status"])
    if run.status is to or not MOVES[run.status]:  # applied already
        return run
    if run.status is RunStatus.LOST and to is RunStatus.STOPPED:
        to = RunStatus.FAILED  # the exit file of a run that was given up says how it ended, not that a user stopped it
    ended = _end_and_release(
        tx,
        run,
        to,
        status_reason=facts["reason"],
        exit_code=facts["exit_code"],
        signal=facts["signal"],
        error=facts["error"],
        ended_at=rfc3339(facts["ended_at"]),
        usage=facts["usage"],
    )
    if run.status is RunStatus.LOST and to is RunStatus.FINISHED:
        clear_alerts(tx, run, EXIT_RULE)
    if to is RunStatus.FAILED and facts["reason"] == "no_gpu":
        choices, at = ("ignore", "rerun"), facts["ended_at"]
        raise_alert(tx, run, "no_gpu", str(facts["error"]), Severity.CRITICAL, choices, at=at)
    return ended


def end_run(tx: Transaction, run: Run, to: RunStatus, *, reason: str, actor: str = _ACTOR, **facts: Any) -> Run:
    """End a run whose sidecar does not report its end."""
    ended = _end_and_release(tx, run, to, actor, status_reason=reason, **facts)
    if ended.run_dir:  # written before the commit, so that a rebuilt database has the end too
        end_facts = {
            "status": ended.status,
            "reason": ended.status_reason,
            "exit_code": ended.exit_code,
            "signal": ended.signal,
            "error": ended.error,
            "attempt": ended.attempt,
            "ended_at": epoch_seconds(ended.ended_at or now()),
            "usage": ended.usage,
        }
        with contextlib.suppress(FileNotFoundError):
            write_json(RunPaths(ended.run_dir).end, end_facts)
    return ended


def _end_and_release(tx: Transaction, run: Run, to: RunStatus, actor: str = _ACTOR, **facts: Any) -> Run:
    """End a run, then release or fail the runs that waited for it, down the whole chain."""
    ended = _end(tx, run, to, actor, **facts)
    parents = [ended]
    while parents:
        parents += _release_children(tx, parents.pop())
    return ended


def _end(tx: Transaction, run: Run, to: RunStatus, actor: str, **facts: Any) -> Run:
    ended = runs.change(tx, run, run.move(to, **{"ended_at": now(), **facts}), actor)
    settle_alerts(tx, run)
    return ended


def _release_children(tx: Transaction, parent: Run) -> list[Run]:
    """Release the children of a finished parent, or fail them after any other end. Return those that failed."""
    failed = []
    for child_id in dependencies.children(tx.connection, parent.id):
        try:
            child = runs.get(tx.connection, child_id)
        except NotFound:
            continue  # deleted meanwhile
        if parent.status is RunStatus.FINISHED:
            dependencies.unblock(tx, child_id)
            if child.status_reason:
                runs.change(tx, child, child.evolve(status_reason=waits_for(tx, child)), _ACTOR)
        elif child.status in (RunStatus.READY, RunStatus.QUEUED):
            message = f"It was to run after {parent.id} ({parent.name}), which {_ENDED_AS[parent.status]}."
            failed.append(_end(tx, child, RunStatus.FAILED, _ACTOR, status_reason="dependency_failed", error=message))
    return failed


def waits_for(tx: Transaction, run: Run) -> str:
    """Return a text that names the unfinished parents, or ""."""
    parents = dependencies.unfinished(tx.connection, run.after)
    return f"waits for {', '.join(parents)}" if parents else ""


def end_and_alert(lab: Lab, tx: Transaction, run: Run, to: RunStatus, *, reason: str, **facts: Any) -> None:
    raise_end_alert(lab, tx, end_run(tx, run, to, reason=reason, **facts))


def raise_end_alert(lab: Lab, tx: Transaction, ended: Run) -> None:
    """Raise the alert that a sidecar raises for a failed run. A stopped run raises none."""
    is_news = ended.status in (RunStatus.FAILED, RunStatus.LOST)
    if is_news and alert_options(lab, ended)["builtin"].get("exit", True):
        at = epoch_seconds(ended.ended_at or now())
        raise_alert(tx, ended, EXIT_RULE, str(ended.error), Severity.CRITICAL, ("ignore", "rerun"), at=at)
