"""The verbs of plans: one function per verb, called by HTTP, chat and the plan worker.

Verbs that start background work only record it in the database and return; `planning/worker.py` does the work. A verb
refuses before it records anything. The planner itself is imported inside functions: it takes several megabytes, and
many servers never plan.
"""

from labwright.planning.plans.compilation import CompileOptions, compile_plan, create, validate
from labwright.planning.plans.documents import (
    archive,
    change,
    check_format,
    create_document,
    delete,
    folder_of,
    get_document,
    page,
    settle_folders,
    update_document,
    versions,
)
from labwright.planning.plans.edits import edit, settle_approval, withdraw_approval
from labwright.planning.plans.execution import execute, stop
from labwright.planning.plans.history import changes_view, compilations_view
from labwright.planning.plans.review import approve, reject
from labwright.planning.plans.views import get
from labwright.planning.plans.workspace import read_file, rehearsal_view, results_view, workspace_view, write_file

__all__ = [
    "CompileOptions", "approve", "archive", "change", "changes_view", "check_format", "compilations_view",
    "compile_plan", "create", "create_document", "delete", "edit", "execute", "folder_of", "get", "get_document",
    "page", "read_file", "rehearsal_view", "reject", "results_view", "settle_approval", "settle_folders", "stop",
    "update_document", "validate", "versions", "withdraw_approval", "workspace_view", "write_file",
]  # fmt: skip
