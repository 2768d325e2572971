"""Find earlier failures of runs that are similar to a new one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.command_line import may_fail_alike, params_of, shape
from labwright.domain.failure import Params, are_near, signature
from labwright.domain.run import Run, RunStatus
from labwright.services.runs import logs
from labwright.store import runs

_RUNS_CHECKED = 300  # newest failed runs, and newest finished ones
_LOGS_READ = 20
_CONFIGURATIONS = 500  # of a sweep
PastFailure = dict[str, Any]


def like(lab: Lab, command: str, params: Params, *, ended_before: str) -> PastFailure | None:
    """Return the newest failed run with the same command and similar parameters, and the runs that failed like it.

    Return None if the same configuration has finished since.
    """
    return _Past(lab, shape(command), ended_before).like(command, params)


def among(lab: Lab, configurations: Iterable[tuple[str, Params]], *, ended_before: str) -> list[PastFailure]:
    """Return the failures that `like` finds for many configurations, each failure once."""

    @cache
    def past(form: tuple[str, ...]) -> _Past:
        return _Past(lab, form, ended_before)

    checked = list(configurations)[:_CONFIGURATIONS]
    failures = [past(shape(command)).like(command, params) for command, params in checked]
    return list({failure["run_id"]: failure for failure in failures if failure}.values())


def signature_of(lab: Lab, run_id: str) -> str:
    """Return the signature of a failure, equal for the same cause; empty if the output has no error."""
    error = logs.digest(lab, runs.get(lab.db.reader(), run_id))["first_error"]
    return signature(error) if error else ""


class _Past:
    """The failed and finished runs of one command."""

    def __init__(self, lab: Lab, form: tuple[str, ...], ended_before: str) -> None:
        self._lab = lab
        self._form = form
        self._before = ended_before
        self._failed = self._runs(RunStatus.FAILED)
        self._finished = self._runs(RunStatus.FINISHED) if self._failed else []
        self._signature = cache(lambda run_id: signature_of(lab, run_id))

    def like(self, command: str, params: Params) -> PastFailure | None:
        own = params_of(command, params)
        near = [run for run in self._failed if are_near(own, params_of(run.command, run.params))]
        if not near:
            return None
        failed_at = near[0].ended_at or ""
        same = (run for run in self._finished if params_of(run.command, run.params) == own)
        if any((run.ended_at or "") > failed_at for run in same):
            return None
        read = {run.id: (kind, run.command) for run in near[:_LOGS_READ] if (kind := self._signature(run.id))}
        kinds = {run_id: kind for run_id, (kind, failed) in read.items() if may_fail_alike(kind, failed, command)}
        newest = next((run for run in near if run.id in kinds), None)
        if newest is None:
            return None  # no error in its output, so the cause may be outside of the run
        return {
            "run_id": newest.id,
            "name": newest.name,
            "params": params_of(newest.command, newest.params),
            "error": newest.error or newest.status_reason,
            "signature": kinds[newest.id],
            "failed_the_same_way": [run_id for run_id, kind in kinds.items() if kind == kinds[newest.id]],
        }

    def _runs(self, status: RunStatus) -> list[Run]:
        records, _ = runs.page(self._lab.db.reader(), runs.Filter(status=(status,), archived=None), _RUNS_CHECKED, None)
        newest = (Run.from_dict(json.loads(record)) for record in records)
        return [run for run in newest if shape(run.command) == self._form and (run.ended_at or "") < self._before]
