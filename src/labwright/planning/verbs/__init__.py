"""The verbs of plans beyond their text. Each records what is to be done and returns; `planning/keeper.py` does it.

All that is refused is refused before that record: nothing is half done. Each is imported when it is first called: the
planner is a good part of the server's memory, and most days nobody plans.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labwright.planning.compilations import changes_view, compilations_view
    from labwright.planning.verbs.compiling import Wanted, compile_plan, create, validate
    from labwright.planning.verbs.editing import edit, settle, withdraw_approval
    from labwright.planning.verbs.executing import execute, stop
    from labwright.planning.verbs.reviewing import approve, reject
    from labwright.planning.verbs.standing import get
    from labwright.planning.workspace_files import read_file, rehearsal_view, results_view, workspace_view, write_file

_HOMES = {
    "Wanted": "verbs.compiling",
    "approve": "verbs.reviewing",
    "changes_view": "compilations",
    "compilations_view": "compilations",
    "compile_plan": "verbs.compiling",
    "create": "verbs.compiling",
    "edit": "verbs.editing",
    "execute": "verbs.executing",
    "get": "verbs.standing",
    "read_file": "workspace_files",
    "rehearsal_view": "workspace_files",
    "reject": "verbs.reviewing",
    "results_view": "workspace_files",
    "settle": "verbs.editing",
    "stop": "verbs.executing",
    "validate": "verbs.compiling",
    "withdraw_approval": "verbs.editing",
    "workspace_view": "workspace_files",
    "write_file": "workspace_files",
}
__all__ = [
    "Wanted", "approve", "changes_view", "compilations_view", "compile_plan", "create", "edit", "execute", "get",
    "read_file", "rehearsal_view", "reject", "results_view", "settle", "stop", "validate", "withdraw_approval",
    "workspace_view", "write_file",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"labwright.planning.{_HOMES[name]}"), name)
