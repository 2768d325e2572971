"""Nothing lies in `src` and `tests` but the package and its tests, and no task that is not in the workflow.

A file there could stand before another's module.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from labwright.planning.checks.subject import TASKS, Found, Subject

_HINT = "Move it into src/experiment, or take it out."


def check_stray_files(subject: Subject) -> Iterator[Found]:
    for top in ("src", "tests"):
        for path in sorted(file for file in (subject.folder / top).rglob("*") if file.is_file()):
            relative = path.relative_to(subject.folder).as_posix()
            reason = _why_stray(PurePosixPath(relative))
            if reason:
                yield Found(code="stray_file", place=relative, message=f"{relative} {reason}.", hint=_HINT)
    yield from _orphans(subject)


def _orphans(subject: Subject) -> Iterator[Found]:
    """What is approved as a task is one that runs."""
    known = {"__init__", *(step.id for step in subject.ir.workflow.steps)}
    files = [*(subject.folder / "ir/tasks").glob("*"), *(subject.folder / TASKS).glob("*.py")]
    for path in sorted(file for file in files if file.stem not in known):
        relative = path.relative_to(subject.folder).as_posix()
        words = f"{relative} belongs to no task of the workflow."
        yield Found(code="orphan", place=relative, message=words, hint="Wire it up in the IR, or take it out.")


def _why_stray(path: PurePosixPath) -> str:
    if path.suffix != ".py":
        return "is no Python file"
    if not path.stem.isidentifier():
        return "has a name that nobody can import"
    if path.parts[0] == "src" and (len(path.parts) < 3 or path.parts[1] != "experiment"):
        return "lies outside of the package, where it hides a module of the same name"
    if path.parts[0] == "tests" and (len(path.parts) > 2 or not path.name.startswith("test_")):
        return "is no test file"
    return ""
