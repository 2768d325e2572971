"""Nothing lies in `src` and `tests` but the package and its tests: a file there could stand before another's module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from labwright.planning.checks.subject import Found, Subject

_HINT = "Move it into src/experiment, or take it out."


def check_stray_files(subject: Subject) -> Iterator[Found]:
    for top in ("src", "tests"):
        for path in sorted(file for file in (subject.folder / top).rglob("*") if file.is_file()):
            relative = path.relative_to(subject.folder).as_posix()
            reason = _why_stray(PurePosixPath(relative))
            if reason:
                yield Found(code="stray_file", place=relative, message=f"{relative} {reason}.", hint=_HINT)


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
