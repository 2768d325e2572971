"""Names of runs, sweeps and plans: a name, the beginning of an id or `last` works wherever an id does."""

from __future__ import annotations

from labwright.compute.lab import Lab
from labwright.domain.ids import is_id
from labwright.store import references


def full_id(lab: Lab, kind: str, reference: str) -> str:
    """Return the id of the run, sweep or plan. A full id is returned as it is, without a query."""
    return reference if is_id(reference, kind) else references.find(lab.db.reader(), kind, reference)
