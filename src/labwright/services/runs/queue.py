"""Why queued runs wait. The reason is computed on request: a stored one would be outdated by every start and end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic_core import from_json, to_json

from labwright.compute.lab import Lab
from labwright.compute.queue_reasons import Look, keeps_cards, why_queued
from labwright.compute.scheduler import capacity_of
from labwright.domain.run import Run, RunStatus
from labwright.domain.sweep import Sweep, SweepStatus
from labwright.store import sweeps
from labwright.store.queue import first_in_queue, load_holders, load_queues, queue_of

_Reason = Callable[[str, str, int, tuple[str, ...]], str]
_MARK = f'"status":"{RunStatus.QUEUED}"'  # a quick filter; params may contain this text too


def with_reason(lab: Lab, run: Run) -> Run:
    """Return the run with the reason for its wait. A stored reason, such as a full disk, is kept."""
    if run.status is not RunStatus.QUEUED or run.status_reason:
        return run
    return run.evolve(status_reason=_reasons(lab)(run.id, run.sweep_id or "", run.gpus, run.named_gpus))


def with_reasons(lab: Lab, records: list[str]) -> list[str]:
    """Return the stored records, with a reason for each queued run. Shared facts are read once."""
    reason_for: _Reason | None = None
    shown = []
    for record in records:
        if _MARK in record:
            facts: dict[str, Any] = from_json(record)
            if facts["status"] == RunStatus.QUEUED and not facts["status_reason"]:
                reason_for = reason_for or _reasons(lab)
                named = tuple(facts.get("named_gpus", ()))
                facts["status_reason"] = reason_for(facts["id"], facts["sweep_id"] or "", facts["gpus"], named)
                record = to_json(facts).decode()
        shown.append(record)
    return shown


def _reasons(lab: Lab) -> _Reason:
    """Return a function that gives the reason for one run, based on one reading of the machine's state."""
    reader, settings, cluster = lab.db.reader(), lab.settings, lab.cluster.current
    look = Look(holders=load_holders(reader, cluster), capacity=capacity_of(cluster, settings.max_parallel))
    if look.free_gpus:
        heads = [head for queue in load_queues(reader, set(), 1).values() for head in queue[:1]]
        look = replace(look, kept_for=keeps_cards(heads, look, time.time(), settings.ageing_seconds))

    @cache
    def sweep_of(group: str) -> Sweep | None:
        return sweeps.get(reader, group) if group else None

    @cache
    def places(queue: str) -> dict[str, int]:
        return {run_id: place for place, run_id in enumerate(first_in_queue(reader, queue))}

    silence = lab.slurm_silence

    def reason_for(run_id: str, group: str, gpus: int, named: tuple[str, ...]) -> str:
        sweep = sweep_of(group)
        if silence and not (sweep and sweep.status is SweepStatus.PAUSED):
            return f"Slurm does not answer: {silence}"
        ahead = places(queue_of(group, gpus, named)).get(run_id)
        return why_queued(run_id, gpus, ahead, sweep, look, named)

    return reason_for
