"""Files of the project and packages of its environment among the facts that an approval names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

CODE_CHANGED = "code_changed"  # why a run of a plan does not begin
_MARK, _PACKAGES = "project's ", "packages in "
_CODE = (".py", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh")


def is_code(path: str) -> bool:
    """Code and settings that no run writes; JSON and other text may be results as well."""
    return path.endswith(_CODE) or PurePath(path).name.startswith("requirements")


def fact_of(path: str) -> str:
    return f"{_MARK}{path}"


def is_project_file(fact: str) -> bool:
    return fact.startswith(_MARK)


def may_be_written(fact: str) -> bool:
    """By a run: of no use any more for telling what was approved, once one has begun."""
    return is_project_file(fact) and not is_code(fact.removeprefix(_MARK))


def project_code(facts: Mapping[str, str]) -> dict[str, str]:
    """Relative path: SHA-256."""
    return {
        name.removeprefix(_MARK): value
        for name, value in facts.items()
        if is_project_file(name) and not may_be_written(name)
    }


def packages_fact(folder: str) -> str:
    return f"{_PACKAGES}{folder}"


def package_folders(facts: Mapping[str, str]) -> dict[str, str]:
    """Absolute path: what is installed there, by name and version."""
    return {name.removeprefix(_PACKAGES): value for name, value in facts.items() if name.startswith(_PACKAGES)}
