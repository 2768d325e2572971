"""IngestReport: the request as it came, kept in `report/original.md`."""

from __future__ import annotations

from labwright.planning.nodes.planning import Planning


def ingest_report(planning: Planning) -> str:
    text = "\n\n".join(part for part in (planning.goal, planning.plan) if part)
    return planning.keep("report/original.md", text)
