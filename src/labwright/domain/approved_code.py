"""Project files and environment packages among the facts that an approval covers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

CODE_CHANGED = "code_changed"  # the reason why a run of a plan does not start
_MARK, _PACKAGES = "project's ", "packages in "
_CODE = (".py", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh")


def is_code(path: str) -> bool:
    """Return whether the file is code or settings. JSON and other text may also be results of a run."""
    return path.endswith(_CODE) or PurePath(path).name.startswith("requirements")


def fact_of(path: str) -> str:
    return f"{_MARK}{path}"


def is_project_file(fact: str) -> bool:
    return fact.startswith(_MARK)


def may_be_written(fact: str) -> bool:
    """Return whether a run may write this file. After the first run such a file no longer shows what was approved."""
    return is_project_file(fact) and not is_code(fact.removeprefix(_MARK))


def project_code(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each approved code file by relative path."""
    return {
        name.removeprefix(_MARK): value
        for name, value in facts.items()
        if is_project_file(name) and not may_be_written(name)
    }


def packages_fact(folder: str) -> str:
    return f"{_PACKAGES}{folder}"


def package_folders(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the installed packages (name and version) of each environment folder by absolute path."""
    return {name.removeprefix(_PACKAGES): value for name, value in facts.items() if name.startswith(_PACKAGES)}
