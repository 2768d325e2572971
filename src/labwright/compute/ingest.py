"""Read what sidecars wrote into run folders and make it the database's, each line exactly once.

The offset into `events.jsonl` is stored in the transaction of its effects, so a kill in between repeats nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import Any

from labwright.compute.lab import Lab
from labwright.compute.run_folder import alert_options
from labwright.domain.actor import SYSTEM
from labwright.domain.alert import Alert, Severity
from labwright.domain.clock import epoch_seconds, now, rfc3339
from labwright.domain.errors import IllegalMove, NotFound
from labwright.domain.ids import ALERT, id_of, new_id
from labwright.domain.interruption import may_be_slurms_doing
from labwright.domain.run import MOVES, Run, RunStatus
from labwright.files import LONGEST_LINE, TooLong, all_lines, read_json, write_json
from labwright.paths import RunPaths
from labwright.store import alerts, runs
from labwright.store.database import Transaction
from labwright.store.statements import REST, RUNS

_ACTOR = str(SYSTEM)
EXIT_RULE = "exit"
GPU_WAIT_RULE = "gpu_wait"
SLURM_HELD_RULE = "slurm_held"


def ingest(lab: Lab, run_id: str) -> Run | None:
    """Bring one run up to date. Answers it as it is now, or None if there was nothing new."""
    paths = lab.paths.run(run_id)
    row = lab.db.reader().execute(RUNS["events_offset"], {"id": run_id}).fetchone()
    if row is None:
        return None
    ended = read_exit(paths)  # before the events: those of an ended run are complete
    given_up = read_end(paths) if ended is None else None
    lines, offset = _new_lines(paths, row[0])
    if not lines and ended is None and given_up is None:
        return None
    with lab.db.transaction() as tx:
        if tx.execute(RUNS["events_offset"], id=run_id).fetchone() != row:
            return None  # another thread was faster
        run = runs.get(tx.connection, run_id)
        for line in lines:
            run = _apply_line(tx, run, line)
        if ended is not None and not is_provisional(run, ended) and _is_of(run, ended, paths):
            run = apply_exit(tx, run, ended)
        elif given_up is not None and given_up["attempt"] == run.attempt:
            run = apply_exit(tx, run, given_up)
            tell_end(lab, tx, run)
        tx.execute(RUNS["set_events_offset"], id=run_id, offset=offset)
    return run


def _new_lines(paths: RunPaths, offset: int) -> tuple[list[bytes], int]:
    """All of them: an end is told after everything else. None where the job put something else in the file's place."""
    try:
        return all_lines(paths.events, offset)
    except (IsADirectoryError, PermissionError):
        return [], offset


def read_exit(paths: RunPaths) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = read_json(paths.exit)
    except FileNotFoundError:
        return None
    return facts


def read_end(paths: RunPaths) -> dict[str, Any] | None:
    """What a server found out or decided before; only a database that was made anew does not know it."""
    try:
        facts: dict[str, Any] = read_json(paths.end)
    except FileNotFoundError:
        return None
    return facts


def _keep_end(run: Run) -> None:
    """In its folder and before the commit, so that a rebuilt database tells the same; unless the folder is gone."""
    facts = {
        "status": run.status,
        "reason": run.status_reason,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "attempt": run.attempt,
        "ended_at": epoch_seconds(run.ended_at or now()),
        "usage": run.usage,
    }
    with contextlib.suppress(FileNotFoundError):
        write_json(RunPaths(str(run.run_dir)).end, facts)


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
    words = f"Waiting for a GPU: {event['reason']}"
    raise_alert(tx, run, GPU_WAIT_RULE, words, Severity.INFO, ("ignore", "stop"), at=event["time"])
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
    """Told again when it starts; it is for whoever finds the job without its supervisor."""
    return run


def _requeued(tx: Transaction, run: Run, event: dict[str, Any]) -> Run:
    return begin_attempt(tx, run, event["attempt"], "requeued by Slurm", at=event["time"])


def begin_attempt(tx: Transaction, run: Run, attempt: int, reason: str, *, at: float) -> Run:
    """Slurm starts it again: back to the queue, and out of it at once, since that queue is Slurm's."""
    if attempt <= run.attempt or run.status in (RunStatus.FINISHED, RunStatus.FAILED, RunStatus.STOPPED):
        return run
    if run.status is RunStatus.RUNNING:
        facts = {"earlier_seconds": run.earlier_seconds + _at_work(run, at), "started_at": None, "queued_at": now()}
        run = _move(tx, run, RunStatus.QUEUED, status_reason=reason, **facts)
        return _move(tx, run, RunStatus.LAUNCHING, status_reason=reason, attempt=attempt, launched_at=now())
    return runs.change(tx, run, run.evolve(attempt=attempt, status_reason=reason), _ACTOR)


def _at_work(run: Run, until: float) -> float:
    return max(0.0, until - epoch_seconds(run.started_at)) if run.started_at else 0.0


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
    words = f"Somebody else's processes are on this run's GPU: {event['processes']}."
    runs.notice(tx, run, _ACTOR, words if event["processes"] else "This run's GPU is its own again.")
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


def is_provisional(run: Run, facts: dict[str, Any]) -> bool:
    return run.launcher == "slurm" and run.is_active and may_be_slurms_doing(facts)


def _is_of(run: Run, facts: dict[str, Any], paths: RunPaths) -> bool:
    """The end of this attempt; or of the one before, if Slurm gave its node up too early and no other has begun."""
    if facts["attempt"] == run.attempt:
        return True
    nobody_else = run.status is RunStatus.LAUNCHING and not os.path.exists(paths.claim(run.attempt))
    return run.launcher == "slurm" and facts["attempt"] < run.attempt and nobody_else


def apply_exit(tx: Transaction, run: Run, facts: dict[str, Any]) -> Run:
    to = RunStatus(facts["status"])
    if run.status is to or not MOVES[run.status]:  # told already; a later event may have brought us here again
        return run
    if run.status is RunStatus.LOST and to is RunStatus.STOPPED:
        to = RunStatus.FAILED  # it had been given up; the late evidence says how it ended, not that we stopped it
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
    """How a run ends that no sidecar tells the end of."""
    ended = _end_and_release(tx, run, to, actor, status_reason=reason, **facts)
    if ended.run_dir:
        _keep_end(ended)
    return ended


def _end_and_release(tx: Transaction, run: Run, to: RunStatus, actor: str = _ACTOR, **facts: Any) -> Run:
    """Its facts, its stale alerts, and what waited for it, however long the chain."""
    ended = _end(tx, run, to, actor, **facts)
    parents = [ended]
    while parents:
        parents += _release_children(tx, parents.pop())
    return ended


def _end(tx: Transaction, run: Run, to: RunStatus, actor: str, **facts: Any) -> Run:
    ended = runs.change(tx, run, run.move(to, **{"ended_at": now(), **facts}), actor)
    _settle_alerts(tx, run)
    return ended


def _settle_alerts(tx: Transaction, run: Run) -> None:
    """Its wait is over, and nobody is offered to stop what has ended."""
    for alert in alerts.pending_of_run(tx.connection, run.id):
        if alert.rule in (GPU_WAIT_RULE, SLURM_HELD_RULE):
            _clear(tx, alert)
        elif (changed := alert.after_end()) != alert:
            alerts.change(tx, changed, _ACTOR)


def _move(tx: Transaction, run: Run, to: RunStatus, **facts: Any) -> Run:
    return runs.change(tx, run, run.move(to, **facts), _ACTOR)


def _release_children(tx: Transaction, parent: Run) -> list[Run]:
    """A finished parent frees its children; any other end fails them with that reason. Answers those that failed."""
    failed = []
    for child_id in [row[0] for row in tx.execute(RUNS["children"], parent=parent.id)]:
        try:
            child = runs.get(tx.connection, child_id)
        except NotFound:
            continue  # deleted meanwhile
        if parent.status is RunStatus.FINISHED:
            tx.execute(RUNS["unblock"], id=child_id)
            if child.status_reason:
                runs.change(tx, child, child.evolve(status_reason=waits_for(tx, child)), _ACTOR)
        elif child.status in (RunStatus.READY, RunStatus.QUEUED):
            words = f"It was to run after {parent.id} ({parent.name}), which {_ENDED_AS[parent.status]}."
            failed.append(_end(tx, child, RunStatus.FAILED, _ACTOR, status_reason="dependency_failed", error=words))
    return failed


def waits_for(tx: Transaction, run: Run) -> str:
    """The parents it still has to wait for, in words; empty if there is none."""
    rows = tx.execute(RUNS["unfinished"], ids=json.dumps(run.after)).fetchall()
    return f"waits for {', '.join(row[0] for row in rows)}" if rows else ""


_ENDED_AS = {RunStatus.FAILED: "failed", RunStatus.STOPPED: "was stopped", RunStatus.LOST: "was lost"}


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


def tell_end(lab: Lab, tx: Transaction, ended: Run) -> None:
    """In place of a sidecar that no longer can. What somebody stopped is no news; what was told is not told twice."""
    is_news = ended.status in (RunStatus.FAILED, RunStatus.LOST)
    if is_news and alert_options(lab, ended)["builtin"].get("exit", True):
        at = epoch_seconds(ended.ended_at or now())
        raise_alert(tx, ended, EXIT_RULE, str(ended.error), Severity.CRITICAL, ("ignore", "rerun"), at=at)


def clear_alerts(tx: Transaction, run: Run, rule: str) -> None:
    """What the alert told of is over; nobody needs to answer it any more."""
    row = tx.execute(REST["open_alert"], run_id=run.id, rule=rule).fetchone()
    if row:
        _clear(tx, Alert.from_dict(json.loads(row[0])))


def _clear(tx: Transaction, alert: Alert) -> None:
    alerts.resolve(tx, alert.answered("cleared", _ACTOR, now()), _ACTOR)
