"""What runs wrote, as digests and matching lines: never a whole log."""

from __future__ import annotations

from labwright.agent.tools.tool import Deed, Json, Tool, text
from labwright.domain.failure import signature
from labwright.services.runs import logs
from labwright.services.runs import verbs as runs

_LINES = 40


def log_digest(deed: Deed, run: str) -> Json:
    found = runs.find(deed.lab, run)
    digest = logs.digest(deed.lab, found)
    kept = {name: value for name, value in digest.items() if value not in (None, [], "")}
    failed = signature(digest["first_error"]) if digest["first_error"] else ""
    return {**kept, "signature": failed, "evidence": deed.cite("log", run_id=found.id)}


def grep_log(deed: Deed, run: str, pattern: str) -> Json:
    found = runs.find(deed.lab, run)
    lines = logs.grep(deed.lab, found, pattern)["content"].splitlines()
    return {
        "run_id": found.id,
        "lines": lines[-_LINES:],
        "left_out_before": max(0, len(lines) - _LINES),
        "evidence": deed.cite("log", run_id=found.id, grep=pattern),
    }


_RUN = text("the run's id, its beginning, its name, or `last`")
TOOLS = (
    Tool(
        name="log_digest",
        description="What matters of a run's output: how it ended, the first error with its traceback, the last lines.",
        do=log_digest,
        takes={"run": _RUN},
        needs=("run",),
    ),
    Tool(
        name="grep_log",
        description="The newest lines of a run's output that contain a text.",
        do=grep_log,
        takes={"run": _RUN, "pattern": text("plain text to look for")},
        needs=("run", "pattern"),
    ),
)
