"""IngestReport: the request as it came, kept in `report/original.md`. Its hash is what the later nodes rest on."""

from __future__ import annotations

from labwright.planning.nodes.planning import Planning


def ingest_report(planning: Planning) -> str:
    parts = (planning.goal, planning.report, planning.plan)
    return planning.keep("report/original.md", "\n\n".join(part for part in parts if part))
