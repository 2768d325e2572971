"""The checks, in order: what only reads comes first, and code is run only if reading found nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from labwright.planning.checks.agreement import check_agreement
from labwright.planning.checks.command import check_command
from labwright.planning.checks.entrypoint import check_entrypoint
from labwright.planning.checks.files import check_files
from labwright.planning.checks.source import check_source
from labwright.planning.checks.subject import Found, Subject
from labwright.planning.checks.tests import check_tests
from labwright.planning.contained import child_for, project_python
from labwright.planning.ir import BadIR, read_ir
from labwright.planning.scan import ProjectScan
from labwright.workspace import Digest, PlanWorkspaceHandle

READING: tuple[Callable[[Subject], Iterator[Found]], ...] = (check_files, check_source, check_command, check_agreement)
RUNNING: tuple[Callable[[Subject], Iterator[Found]], ...] = (check_entrypoint, check_tests)


def check_workspace(handle: PlanWorkspaceHandle, scan: ProjectScan, digest: Digest) -> list[Found]:
    try:
        ir = read_ir(handle)
    except BadIR as error:
        return [Found(code="bad_ir", place="ir", message=error.message, hint=error.hint)]
    with child_for(handle.paths.dir, digest, project_python(scan)) as child:
        subject = Subject(handle=handle, ir=ir, scan=scan, child=child)
        found = [finding for check in READING for finding in check(subject)]
        return found or [finding for check in RUNNING for finding in check(subject)]
