"""Every Python file is Python."""

from __future__ import annotations

from collections.abc import Iterator

from labwright.planning.checks.subject import Found, Subject


def check_compiles(subject: Subject) -> Iterator[Found]:
    for module in subject.modules.values():
        if module.fault:
            words = f"{module.path} is no Python: {module.fault}."
            yield Found(code="does_not_compile", place=module.path, message=words, hint="Mend it, or generate it anew.")
