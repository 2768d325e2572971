"""Whether something like a new run has failed before, and how."""

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

_LOOKED_AT = 300  # newest failed runs, and newest finished ones
_READ = 20  # logs of them
_CONFIGURATIONS = 500  # of a sweep that are looked for
Found = dict[str, Any]


def like(lab: Lab, command: str, params: Params, *, ended_before: str) -> Found | None:
    """The newest failed run of the same command in the same region, and which failed as it did.

    Nothing if the very same configuration has finished since: then it is known to work.
    """
    return _Past(lab, shape(command), ended_before).like(command, params)


def among(lab: Lab, wanted: Iterable[tuple[str, Params]], *, ended_before: str) -> list[Found]:
    """The same for many configurations, each earlier failure once."""

    @cache
    def past(form: tuple[str, ...]) -> _Past:
        return _Past(lab, form, ended_before)

    found = [past(shape(command)).like(command, params) for command, params in list(wanted)[:_CONFIGURATIONS]]
    return list({one["run_id"]: one for one in found if one}.values())


def signature_of(lab: Lab, run_id: str) -> str:
    """How a run failed, the same for runs that did so for the same reason; empty where its output does not say."""
    error = logs.digest(lab, runs.get(lab.db.reader(), run_id))["first_error"]
    return signature(error) if error else ""


class _Past:
    """The runs of one command that have failed or finished."""

    def __init__(self, lab: Lab, form: tuple[str, ...], ended_before: str) -> None:
        self._lab = lab
        self._form = form
        self._before = ended_before
        self._failed = self._runs(RunStatus.FAILED)
        self._finished = self._runs(RunStatus.FINISHED) if self._failed else []
        self._signature = cache(self._read_signature)

    def like(self, command: str, params: Params) -> Found | None:
        wanted = params_of(command, params)
        near = [run for run in self._failed if are_near(wanted, params_of(run.command, run.params))]
        if not near or self._has_finished_since(wanted, near[0]):
            return None
        read = {run.id: (kind, run.command) for run in near[:_READ] if (kind := self._signature(run.id))}
        kinds = {run_id: kind for run_id, (kind, failed) in read.items() if may_fail_alike(kind, failed, command)}
        newest = next((run for run in near if run.id in kinds), None)
        if newest is None:
            return None  # it failed without saying why: perhaps not by its own doing
        return {
            "run_id": newest.id,
            "name": newest.name,
            "params": params_of(newest.command, newest.params),
            "error": newest.error or newest.status_reason,
            "signature": kinds[newest.id],
            "failed_the_same_way": [run_id for run_id, kind in kinds.items() if kind == kinds[newest.id]],
        }

    def _has_finished_since(self, wanted: dict[str, Any], failed: Run) -> bool:
        return any(
            params_of(run.command, run.params) == wanted and (run.ended_at or "") > (failed.ended_at or "")
            for run in self._finished
        )

    def _runs(self, status: RunStatus) -> list[Run]:
        wanted = runs.Filter(status=(status,), archived=None)
        found, _ = runs.page(self._lab.db.reader(), wanted, _LOOKED_AT, None)
        every = (Run.from_dict(json.loads(record)) for record in found)
        return [run for run in every if shape(run.command) == self._form and (run.ended_at or "") < self._before]

    def _read_signature(self, run_id: str) -> str:
        return signature_of(self._lab, run_id)
