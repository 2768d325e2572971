"""Apply the events that sidecars wrote into run folders to the database, each line exactly once.

The offset into `events.jsonl` is stored in the same transaction as the effects, so a kill repeats nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.runs.alerts import GPU_CONTENTION_RULE, GPU_WAIT_RULE, SLURM_HELD_RULE, clear_alerts, raise_alert
from labwright.compute.runs.endings import apply_exit, raise_end_alert, read_facts
from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Severity
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.errors import IllegalMove
from labwright.domain.failure import may_be_ended_by_slurm
from labwright.domain.run import Run, RunStatus
from labwright.files import LONGEST_LINE, TooLong, all_lines
from labwright.paths import RunPaths
from labwright.store import alerts, runs
from labwright.store.database import Transaction

_ACTOR = str(SYSTEM)


def ingest(lab: Lab, run_id: str) -> Run | None:
    """Bring one run up to date. Return the run, or None if there was nothing new."""
    paths = lab.paths.run(run_id)
    read_to = runs.events_offset(lab.db.reader(), run_id)
    if read_to is None:
        return None
    ended = read_facts(paths.exit)  # before the events: those of an ended run are complete
    given_up = read_facts(paths.end) if ended is None else None
    try:
        lines, offset = all_lines(paths.events, read_to)  # all of them: an end is applied after everything else
    except (IsADirectoryError, PermissionError):  # the job replaced the file
        lines, offset = [], read_to
    if not lines and ended is None and given_up is None:
        return None
    with lab.db.transaction() as tx:
        if runs.events_offset(tx.connection, run_id) != read_to:
            return None  # another thread was faster
        run = runs.get(tx.connection, run_id)
        for line in lines:
            run = _apply_line(tx, run, line)
        is_provisional = ended and run.is_on_slurm and run.is_active and may_be_ended_by_slurm(ended)
        if ended is not None and not is_provisional and _belongs_to(run, ended, paths):
            run = apply_exit(tx, run, ended)
        elif given_up is not None and given_up["attempt"] == run.attempt:
            run = apply_exit(tx, run, given_up)
            raise_end_alert(lab, tx, run)
        runs.set_events_offset(tx, run_id, offset)
    return run


def _apply_line(tx: Transaction, run: Run, line: bytes) -> Run:
    try:
        event = json.loads(line)
        apply = _APPLY[event["event"]]
        return apply(tx, run, event)
    except (ValueError, KeyError, TypeError, ArithmeticError, IllegalMove):  # a job can write there too
        why = f"is longer than {LONGEST_LINE >> 20} MB" if isinstance(line, TooLong) else "could not be used"
        runs.notice(tx, run, _ACTOR, f"A line of its event log {why}: {line[:200]!r}")
        return run


def _waiting(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    # The alert about contention already says why the run waits, with the same choices.
    if alerts.open_of_rule(tx.connection, run.id, GPU_CONTENTION_RULE) is None:
        message = f"Waiting for a GPU: {event['reason']}"
        raise_alert(tx, run, GPU_WAIT_RULE, message, Severity.INFO, ("ignore", "stop"), at=event["time"])
    if run.status is RunStatus.WAITING:
        return runs.change(tx, run, run.evolve(status_reason=event["reason"]), _ACTOR)
    return _move(tx, run, RunStatus.WAITING, status_reason=event["reason"])


def _started(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    clear_alerts(tx, run, GPU_WAIT_RULE)
    clear_alerts(tx, run, SLURM_HELD_RULE)
    return _move(
        tx,
        run,
        RunStatus.RUNNING,
        started_at=rfc3339(event["time"]),
        gpu_uuids=tuple(event["gpu_uuids"]),
        pid=event["job"]["pid"],
        node=event.get("node") or event["job"]["host"],
        slurm_job_id=event.get("slurm_job_id") or run.slurm_job_id,
        slurm_partition=event.get("slurm_partition") or run.slurm_partition,
    )


def _leased(_tx: Transaction, run: Run, _event: dict[str, Any]) -> Run:
    """Do nothing: the event `started` has the same facts. `recover` uses it for a job without its supervisor."""
    return run


def _requeued(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    until = event.get("last_seen") or event["time"]  # the time in Slurm's queue does not count as work
    return begin_attempt(tx, run, event["attempt"], "requeued by Slurm", until=until)


def begin_attempt(tx: Transaction, run: Run, attempt: int, reason: str, *, until: float) -> Run:
    """Start a new attempt of a run that Slurm requeued. It passes our queue at once, as it waits in Slurm's.

    `until` is when the previous attempt was last active.
    """
    if attempt <= run.attempt or run.status in (RunStatus.FINISHED, RunStatus.FAILED, RunStatus.STOPPED):
        return run
    if run.status is RunStatus.RUNNING:
        seconds = max(0.0, until - epoch_seconds(run.started_at)) if run.started_at else 0.0
        facts = {"earlier_seconds": run.earlier_seconds + seconds, "started_at": None, "queued_at": now()}
        run = _move(tx, run, RunStatus.QUEUED, status_reason=reason, **facts)
        return _move(tx, run, RunStatus.LAUNCHING, status_reason=reason, attempt=attempt, launched_at=now())
    return runs.change(tx, run, run.evolve(attempt=attempt, status_reason=reason), _ACTOR)


def _warned(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    runs.notice(tx, run, _ACTOR, f"Slurm will end it soon; signal {event['signal']} was passed on.")
    return run


def _warning(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    return runs.change(tx, run, run.evolve(warnings=(*run.warnings, event["text"])), _ACTOR)


def _alert(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    severity, choices = Severity(event["severity"]), tuple(event["choices"])
    raise_alert(tx, run, event["rule"], event["message"], severity, choices, at=event["time"])
    return run


def _stopping(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    runs.notice(tx, run, _ACTOR, f"Ending the process tree: {event['why']}.")
    return run


def _foreign_use(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    message = f"Processes of another user are on this run's GPU: {event['processes']}."
    runs.notice(tx, run, _ACTOR, message if event["processes"] else "The foreign processes have left this run's GPU.")
    return run


_APPLY: dict[str, Callable[[Transaction, Run, dict[str, Any]], Run]] = {
    "waiting": _waiting,
    "leased": _leased,
    "started": _started,
    "warning": _warning,
    "alert": _alert,
    "stopping": _stopping,
    "foreign_use": _foreign_use,
    "requeued": _requeued,
    "warned": _warned,
}


def _belongs_to(run: Run, facts: dict[str, Any], paths: RunPaths) -> bool:
    """Return whether an exit file belongs to this attempt.

    The exit of an earlier attempt counts too if Slurm gave up its node too early and no other attempt has started.
    """
    if facts["attempt"] == run.attempt:
        return True
    is_unclaimed = run.status is RunStatus.LAUNCHING and not os.path.exists(paths.claim(run.attempt))
    return run.is_on_slurm and facts["attempt"] < run.attempt and is_unclaimed


def _move(tx: Transaction, run: Run, to: RunStatus, **facts: Any) -> Run:
    return runs.change(tx, run, run.move(to, **facts), _ACTOR)
