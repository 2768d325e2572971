"""Whether something like a new run has failed before, and how."""

from __future__ import annotations

import json
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.failure import Params, are_near, params_of, shape, signature
from labwright.domain.run import Run, RunStatus
from labwright.services import logs
from labwright.store import runs

_LOOKED_AT = 300  # newest failed runs
_READ = 20  # logs of them


def like(lab: Lab, command: str, params: Params) -> dict[str, Any] | None:
    """The newest failed run of the same command in the same region, and how many failed as it did.

    Nothing if the very same configuration has finished since: then it is known to work.
    """
    wanted = params_of(command, params)
    near = [
        run for run in _runs(lab, RunStatus.FAILED, command) if are_near(wanted, params_of(run.command, run.params))
    ]
    if not near or _finished_since(lab, command, wanted, near[0]):
        return None
    kinds = [(run, _signature(lab, run)) for run in near[:_READ]]
    newest, kind = next(((run, kind) for run, kind in kinds if kind), (near[0], ""))
    if not kind:
        return None  # it failed without saying why: perhaps not by its own doing
    same = [run.id for run, other in kinds if other == kind]
    return {
        "run_id": newest.id,
        "name": newest.name,
        "params": params_of(newest.command, newest.params),
        "error": newest.error or newest.status_reason,
        "signature": kind,
        "failed_the_same_way": same,
    }


def _finished_since(lab: Lab, command: str, wanted: dict[str, Any], failed: Run) -> bool:
    return any(
        params_of(run.command, run.params) == wanted and (run.ended_at or "") > (failed.ended_at or "")
        for run in _runs(lab, RunStatus.FINISHED, command)
    )


def _runs(lab: Lab, status: RunStatus, command: str) -> list[Run]:
    wanted = runs.Filter(status=(status,), archived=None)
    found, _ = runs.page(lab.db.reader(), wanted, _LOOKED_AT, None)
    every = (Run.from_dict(json.loads(record)) for record in found)
    form = shape(command)
    return [run for run in every if shape(run.command) == form]


def _signature(lab: Lab, run: Run) -> str:
    error = logs.digest(lab, run)["first_error"]
    return signature(error) if error else ""
