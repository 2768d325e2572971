"""The verbs of plans beyond their text. Each records what is to be done and returns; `planning/keeper.py` does it.

All that is refused is refused before that record: nothing is half done.
"""

from labwright.planning.verbs.compiling import Wanted, compile_plan, create, validate
from labwright.planning.verbs.editing import edit, settle, withdraw_approval
from labwright.planning.verbs.executing import execute, stop
from labwright.planning.verbs.reviewing import approve, reject
from labwright.planning.verbs.standing import get

__all__ = [
    "Wanted", "approve", "compile_plan", "create", "edit", "execute", "get", "reject", "settle", "stop", "validate",
    "withdraw_approval",
]  # fmt: skip
