"""ValidateWorkspace: every check. A failure is a result: the workspace stays for review, and is not runnable."""

from __future__ import annotations

from labwright.planning.checks import check_workspace
from labwright.planning.digest_facts import current_digest
from labwright.planning.nodes.planning import Planning, as_yaml
from labwright.planning.state import change_state


def validate_workspace(planning: Planning) -> str:
    digest = current_digest(planning.handle, planning.scan)
    found = check_workspace(planning.handle, planning.scan, digest)
    report = {"digest": digest.value, "passed": not found, "findings": [finding.to_dict() for finding in found]}
    planning.keep("validation/report.yaml", as_yaml(report))
    lines = [f"- `{f.code}` {f.place}: {f.message} {f.hint}".rstrip() for f in found] or ["Nothing was found."]
    planning.keep("validation/report.md", "\n".join(["# Validation", "", *lines, ""]))
    change_state(planning.handle, validated=not found, validated_digest=digest.value)
    return digest.value
