"""Generated code does not touch what decides the meaning of a result: evaluation code and held-out data."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject

_HINT = "A task is given the metrics; it has no business with the files that they come from."


def check_evaluation_files(subject: Subject) -> Iterator[Found]:
    protected = [file.path for file in subject.scan.evaluation_files]
    for module in subject.modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for path in [path for path in protected if _means(node.value, path)]:
                    words = f"{module.path} names {path}, which decides what a result means."
                    yield Found(code="touches_evaluation", place=module.at(node), message=words, hint=_HINT)


def _means(text: str, path: str) -> bool:
    """The path itself, from another folder, or its name alone."""
    named = posixpath.normpath(text) if text else ""
    return named == path or named.endswith(f"/{path}") or named == posixpath.basename(path)
