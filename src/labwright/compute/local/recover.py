"""Recover runs whose sidecar has died: find the job again, watch it again, or mark it as lost. Never start it twice."""

from __future__ import annotations

import contextlib
import json
import os

from labwright.compute.lab import Lab
from labwright.compute.local.launcher import read_claim
from labwright.compute.runs.endings import end_and_alert, end_run
from labwright.compute.runs.folder import make_run_folder
from labwright.compute.runs.ingest import ingest
from labwright.compute.runs.launching import make_ready
from labwright.domain.clock import epoch_seconds, seconds_apart
from labwright.domain.run import Run, RunStatus
from labwright.files import all_lines
from labwright.paths import RunPaths
from labwright.processes import ProcessIdentity, boot_id, processes_of_run, read_identity
from labwright.store import runs

_CLAIM_PATIENCE_SECONDS = 10.0
_HEARTBEAT_PATIENCE_SECONDS = 10.0
_IN_DOUBT = (
    "Its sidecar was killed just before the command started, so it may or may not have run. "
    "Check its output before a rerun."
)
_UNSUPERVISED = "its supervisor was killed; the job continues, but its exit code will not be known"
_END_UNKNOWN = "Its supervisor was killed; how the command ended is not known."


def recover(lab: Lab, run: Run, *, at_start: bool = False) -> None:
    """Check one active run on this machine. Cheap while its sidecar lives. `slurm/reports.py` does this for Slurm."""
    if run.is_on_slurm:
        return
    claim = read_claim(lab.paths.run(run.id), run.attempt)
    if claim is None:
        _recover_unclaimed(lab, run, at_start)
    elif run.is_external and claim.is_here and claim.boot_id == boot_id():
        if _silent_seconds(lab, run) > _HEARTBEAT_PATIENCE_SECONDS:
            lab.local.watch_external(run)  # also if the process has ended: the watcher reports how
    elif claim.is_here and not claim.is_alive:
        _recover_orphan(lab, run, claim)


def _recover_unclaimed(lab: Lab, run: Run, at_start: bool) -> None:
    """Launch an unclaimed run again. If the first sidecar is only slow, the claim lets one of them start."""
    launched = epoch_seconds(run.launched_at) if run.launched_at else 0.0
    if not at_start and seconds_apart(launched) <= _CLAIM_PATIENCE_SECONDS:
        return
    if run.status is not RunStatus.LAUNCHING or processes_of_run(run.id):
        _recover_without_folder(lab, run)
        return
    if launch := make_ready(lab, run):
        lab.launcher_for(run).launch([launch])


def _recover_without_folder(lab: Lab, run: Run) -> None:
    """Handle a started run whose claim was deleted. It is never started again; a live job gets a new folder."""
    if not processes_of_run(run.id):
        _lose(lab, run.id, "Its folder was deleted while it ran; how it ended is not known.")
        return
    if not os.path.exists(lab.paths.run(run.id).spec):
        make_run_folder(lab, run)
    _keep_watched(lab, run, "its folder was deleted; the job continues, but its exit code may not be known")


def _recover_orphan(lab: Lab, run: Run, claim: ProcessIdentity) -> None:
    current = ingest(lab, run.id) or run  # it may have ended properly just now
    if current.is_terminal:
        return
    if claim.boot_id != boot_id():
        _lose(lab, run.id, "The machine was restarted while it ran; how it ended is not known.")
    elif processes_of_run(run.id):
        _keep_watched(lab, current, _UNSUPERVISED)
    else:
        _lose(lab, run.id, _END_UNKNOWN if current.started_at else _IN_DOUBT)


def _keep_watched(lab: Lab, run: Run, reason: str) -> None:
    """Give a job without a supervisor a watcher that obeys `stop` and the time limit."""
    if not _is_watched(lab, run):
        lab.local.adopt(run)
    if run.status_reason != reason:
        with lab.db.transaction() as tx:
            fresh = runs.get(tx.connection, run.id)
            if not fresh.is_terminal:
                runs.change(tx, fresh, fresh.evolve(status_reason=reason), "system")


def _is_watched(lab: Lab, run: Run) -> bool:
    """Return whether a live watcher has sent a heartbeat lately."""
    heartbeat = lab.paths.run(run.id).heartbeat
    watcher = read_identity(heartbeat)
    gone = not os.path.exists(heartbeat) if watcher is None else not watcher.is_alive
    return not gone and _silent_seconds(lab, run) <= _HEARTBEAT_PATIENCE_SECONDS


def _silent_seconds(lab: Lab, run: Run) -> float:
    """Return the seconds since the last heartbeat, or since the launch."""
    beat = epoch_seconds(run.launched_at) if run.launched_at else 0.0
    with contextlib.suppress(FileNotFoundError):
        beat = max(beat, os.path.getmtime(lab.paths.run(run.id).heartbeat))
    return seconds_apart(beat)


def _lose(lab: Lab, run_id: str, words: str) -> None:
    """End a run whose process is gone: stopped if that was requested, failed at its time limit, otherwise lost."""
    why = _why_ended(lab.paths.run(run_id))
    with lab.db.transaction() as tx:
        run = runs.get(tx.connection, run_id)
        if run.is_terminal:
            return
        if run.stop_requested or why == "stop":
            end_run(tx, run, RunStatus.STOPPED, reason="stopped on request", error=words)
        elif why == "time_limit":
            error = f"Time limit of {run.time_limit_seconds or 0:g} s reached. {words}"
            end_and_alert(lab, tx, run, RunStatus.FAILED, reason="time_limit", error=error)
        else:
            end_and_alert(lab, tx, run, RunStatus.LOST, reason="sidecar_lost", error=words)


def _why_ended(paths: RunPaths) -> str:
    """Return why its sidecar started to end it, or "". The job can write to this file too."""
    why = ""
    with contextlib.suppress(IsADirectoryError, PermissionError):
        for line in all_lines(paths.events)[0]:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                event = json.loads(line)
                why = str(event["why"]) if event["event"] == "stopping" else "" if event["event"] == "started" else why
    return why
