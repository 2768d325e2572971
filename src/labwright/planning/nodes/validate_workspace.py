"""ValidateWorkspace: every check, a few attempts at mending what a model wrote, and at last the rehearsal.

A failure is a result: the workspace stays for review, and is not runnable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from labwright.planning.checks import check_workspace
from labwright.planning.checks.subject import Found
from labwright.planning.nodes.planning import Planning, as_yaml
from labwright.planning.nodes.repair import repair
from labwright.planning.project.digest import current_digest
from labwright.planning.record.state import RepairDone, change_state, read_state
from labwright.planning.rehearsal import rehearsed
from labwright.sandbox import Containment, containment
from labwright.workspace import Digest

# It needs these to run at all.
_ALWAYS = ("reading the system's programs, the project's interpreter with its packages, and the workspace itself",)


def validate_workspace(planning: Planning) -> str:
    digest, found = _checked(planning)
    while found and repair(planning, found):
        digest, found = _checked(planning)
    tried = _rehearsed(planning, digest, sound=not found)
    found += tried
    _write_report(planning, digest, found)
    failed = tried[0].message if tried else ""
    change_state(planning.handle, validated=not found, validated_digest=digest.value, rehearsal_failed=failed)
    return digest.value


def _checked(planning: Planning) -> tuple[Digest, list[Found]]:
    digest = current_digest(planning.handle, planning.scan)
    return digest, check_workspace(planning.handle, planning.scan, digest)


def _rehearsed(planning: Planning, digest: Digest, *, sound: bool) -> list[Found]:
    """Return a finding if the rehearsal failed, or if the plan's runs cannot run on this machine."""
    tried = rehearsed(planning.rehearse, planning.handle, planning.scan, digest.value, sound=sound)
    if tried.cannot_run:
        hint = "Plan it on a machine that has it, or name another device in the goal, such as device=cpu."
        return [Found(code="cannot_run_here", place="rehearsal", message=tried.reason, hint=hint)]
    if tried.outcome != "failed":
        return []
    hint = "See validation/rehearsal.yaml for the last words of each run."
    return [Found(code="rehearsal_failed", place="rehearsal", message=tried.reason, hint=hint)]


def _write_report(planning: Planning, digest: Digest, found: list[Found]) -> None:
    held, repairs = containment(), read_state(planning.handle).repairs
    report = {
        "digest": digest.value,
        "passed": not found,
        "findings": [finding.to_dict() for finding in found],
        "repairs": [done.model_dump(mode="json") for done in repairs],
        "containment": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(held).items()},
    }
    planning.keep("validation/report.yaml", as_yaml(report))
    lines = ["# Validation", "", *_findings(found), *_mended(repairs), *_contained(held)]
    planning.keep("validation/report.md", "\n".join(lines) + "\n")


def _findings(found: list[Found]) -> Iterator[str]:
    if not found:
        yield "Nothing was found."
    for finding in found:
        yield f"- `{finding.code}` {finding.place}: {finding.message} {finding.hint}".rstrip()


def _mended(repairs: tuple[RepairDone, ...]) -> Iterator[str]:
    if repairs:
        yield from ("", "## Mended by the model", "")
    for done in repairs:
        codes, files = ", ".join(done.findings), ", ".join(done.changed) or "nothing"
        yield f"- Round {done.round}, `{done.task}` ({codes}): {done.diagnosis} Changed: {files}"


def _contained(held: Containment) -> Iterator[str]:
    yield from ("", "## What the generated code could reach while it was checked", "")
    yield f"- How: {held.kind}" + (f", since {held.reason}" if held.reason else "")
    yield f"- Held back: {', '.join(held.contained)}"
    yield f"- Not held back: {', '.join((*held.not_contained, *_ALWAYS))}"
