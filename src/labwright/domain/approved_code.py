"""The project's files among the facts that an approval names: how they are spelled there."""

from __future__ import annotations

from collections.abc import Mapping

CODE_CHANGED = "code_changed"  # why a run of a plan does not begin
_MARK = "project's "


def fact_of(path: str) -> str:
    return f"{_MARK}{path}"


def is_project_file(fact: str) -> bool:
    return fact.startswith(_MARK)


def project_files(facts: Mapping[str, str]) -> dict[str, str]:
    """Relative path: SHA-256."""
    return {name.removeprefix(_MARK): value for name, value in facts.items() if is_project_file(name)}
