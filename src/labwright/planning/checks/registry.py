"""The checks, in order. What only reads comes first, and code is run only if reading found nothing.

What the loaded code says of itself is a claim. Whatever an approval rests on is therefore also derived from the text
and the IR (`ir_contract`, `skeleton`, `signatures`, `stubs`), where nothing that was generated runs.
"""

from __future__ import annotations

from labwright.planning.checks.activation import check_activation
from labwright.planning.checks.assertions import check_assertions
from labwright.planning.checks.compiles import check_compiles
from labwright.planning.checks.entrypoint import check_entrypoint
from labwright.planning.checks.evaluation_files import check_evaluation_files
from labwright.planning.checks.files import check_files
from labwright.planning.checks.flags import check_flags
from labwright.planning.checks.forbidden_calls import check_forbidden_calls
from labwright.planning.checks.forbidden_imports import check_forbidden_imports
from labwright.planning.checks.ir_contract import check_ir_contract
from labwright.planning.checks.metric import check_metric
from labwright.planning.checks.packages import check_packages
from labwright.planning.checks.patching import check_patching
from labwright.planning.checks.plan_document import check_plan_document
from labwright.planning.checks.reflection import check_reflection
from labwright.planning.checks.script import check_script
from labwright.planning.checks.signatures import check_signatures
from labwright.planning.checks.skeleton import check_skeleton
from labwright.planning.checks.stray_files import check_stray_files
from labwright.planning.checks.stubs import check_stubs
from labwright.planning.checks.subject import Check, Found, Subject
from labwright.planning.checks.tests import check_tests
from labwright.planning.checks.training import check_training
from labwright.planning.checks.undefined_names import check_undefined_names
from labwright.planning.ir.model import BadIR, read_ir
from labwright.planning.project.contained import child_for, project_python
from labwright.planning.scan import ProjectScan
from labwright.workspace import Digest, PlanWorkspaceHandle

# Broken ground: nothing else could be said of such files.
GROUND: tuple[Check, ...] = (check_files, check_compiles, check_stray_files)
READING: tuple[Check, ...] = (
    check_ir_contract,
    check_plan_document,
    check_activation,
    check_script,
    check_flags,
    check_metric,
    check_forbidden_imports,
    check_forbidden_calls,
    check_reflection,
    check_patching,
    check_training,
    check_evaluation_files,
    check_packages,
    check_undefined_names,
    check_stubs,
    check_assertions,
)
# The first two read, but of code that does not load they say less than the loader does.
LOADING: tuple[Check, ...] = (check_skeleton, check_signatures, check_entrypoint)
TESTING: tuple[Check, ...] = (check_tests,)  # the dearest, and of code that is wired wrongly it says nothing new


def check_workspace(handle: PlanWorkspaceHandle, scan: ProjectScan, digest: Digest) -> list[Found]:
    """Of the bytes that the digest names: they are copied first, and a change meanwhile is a Conflict."""
    with child_for(handle.paths.dir, digest, project_python(scan)) as child:
        try:
            ir = read_ir(PlanWorkspaceHandle(child.workspace))
        except BadIR as error:
            return [Found(code="bad_ir", place="ir", message=error.message, hint=error.hint)]
        subject = Subject(folder=child.workspace, ir=ir, scan=scan, child=child)
        for stage in (GROUND, READING, LOADING, TESTING):
            found = [finding for check in stage for finding in check(subject)]
            if found:
                return found
    return []
