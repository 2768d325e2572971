"""Resolve a reference to a run, sweep or plan: an id, a name, the beginning of an id, or `last`."""

from __future__ import annotations

import sqlite3

from labwright.domain.errors import Invalid, NotFound
from labwright.domain.ids import PLAN, RUN, SWEEP
from labwright.store.statements import PLANS, RUNS, SWEEPS

_STATEMENTS = {RUN: RUNS, SWEEP: SWEEPS, PLAN: PLANS}
_HINTS = {
    RUN: "List runs with GET /runs or `labwright ps --all`.",
    SWEEP: "List sweeps with GET /sweeps or `labwright sweep ls`.",
    PLAN: "List plans with GET /plans or `labwright plan ls`.",
}
_SHOWN = 5  # candidates


def find(connection: sqlite3.Connection, kind: str, reference: str) -> str:
    """Return the id of the run, sweep or plan. If several have the same name, the newest one counts."""
    sql = _STATEMENTS[kind]
    if reference == "last" and (row := connection.execute(sql["newest"]).fetchone()):
        return str(row[0])
    prefix = reference if reference.startswith(f"{kind}-") else f"{kind}-{reference}"
    found = connection.execute(sql["find_by_prefix"], {"prefix": prefix}) if prefix != f"{kind}-" else ()
    candidates = [str(row[0]) for row in found]
    if prefix in candidates:
        return prefix
    if row := connection.execute(sql["find_by_name"], {"name": reference}).fetchone():
        return str(row[0])
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        shown = ", ".join(candidates[:_SHOWN]) + (", …" if len(candidates) > _SHOWN else "")
        raise Invalid(f"{reference!r} matches more than one {kind}: {shown}.", hint="Type more of the id.")
    raise NotFound(f"There is no {kind} {reference}.", hint=_HINTS[kind])
