"""The verbs of sweeps: so far the wild kind, which runs join one by one."""

from __future__ import annotations

import json
from typing import Any

from labwright.compute.lab import Lab
from labwright.domain.actor import Actor
from labwright.domain.clock import now
from labwright.domain.ids import SWEEP, new_id
from labwright.domain.sweep import Sweep, SweepMethod
from labwright.files import write_json
from labwright.store import runs, sweeps
from labwright.store.idempotency import IdempotencyKey, recall, remember


def create_wild(
    lab: Lab,
    *,
    name: str,
    goal: str,
    chat_session_id: str | None,
    parallel: int | None,
    actor: Actor,
    key: IdempotencyKey | None = None,
) -> Sweep:
    sweep = Sweep(
        id=new_id(SWEEP),
        name=name,
        goal=goal,
        method=SweepMethod.WILD,
        chat_session_id=chat_session_id,
        parallel=parallel,
        created_at=now(),
        created_by=str(actor),
    )
    with lab.db.transaction() as tx:
        if answer := recall(tx, key):
            return Sweep.from_dict(json.loads(answer))
        sweeps.insert(tx, sweep, str(actor))
        remember(tx, key, sweep.to_dict())
        write_json(lab.paths.sweep(sweep.id), sweep.to_dict(), sync=False)
    return sweep


def view(lab: Lab, sweep: Sweep) -> dict[str, Any]:
    """The sweep with how far it is: runs by status, and in total."""
    counts = runs.count_by_status(lab.db.reader(), sweep.id)
    return {**sweep.to_dict(), "progress": {"total": sum(counts.values()), **counts}}


def get(lab: Lab, sweep_id: str) -> dict[str, Any]:
    return view(lab, sweeps.get(lab.db.reader(), sweep_id))


def page(lab: Lab, limit: int, before: int | None) -> tuple[list[dict[str, Any]], int | None]:
    found, more = sweeps.page(lab.db.reader(), limit, before)
    return [view(lab, sweep) for sweep in found], more
