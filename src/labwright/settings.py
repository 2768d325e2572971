"""Every setting, read once at start: a `LABWRIGHT_…` variable, else `labwright.toml`, else the default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.paths import CONFIG_FILE, DEFAULT_LEASE_DIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The comment beside each is its documentation; `docs/reference/settings.md` is checked against this list."""

    host: str = "127.0.0.1"  # address to listen on
    port: int = 8484  # 0 or taken by default: a free one is chosen
    allowed_hosts: str = ""  # further names, comma-separated, that the Host header may carry
    max_parallel: int = 0  # runs at a time without GPUs; 0 lets detection decide
    lease_dir: str = DEFAULT_LEASE_DIR  # where GPU leases live; one for the whole machine
    gpu_busy_memory_mb: int = 1024  # a card with more memory in use than this is not free
    gpu_busy_utilization: int = 10  # nor one that is busier than this, in percent
    ageing_seconds: float = 30.0  # after this long a wide run is no longer passed by narrow ones
    grace_seconds: float = 10.0  # between TERM and KILL
    log_cap_mb: int = 1024  # an output larger than this keeps its head and its tail
    backup_minutes: float = 30.0  # between online backups of the database
    backups_kept: int = 5  # newest ones
    snapshot_file_mb: int = 20  # larger files are recorded by size and time, not copied
    keep_days: int = 90  # `labwright gc`: logs and snapshots of ended runs older than this
    keep_archived_days: int = 30  # `labwright gc`: archived runs older than this are deleted
    tmux: bool = True  # open a viewer window for each run where tmux is there
    notify_timeout_seconds: float = 10.0  # how long a channel may take to answer
    notify_retry_seconds: float = 2.0  # before the second try of a notification; later ones wait longer
    metrics_key_value: bool = False  # take `key=value` pairs in the output as metrics, not only JSON lines
    system_metrics_seconds: float = 5.0  # between samples of processor, memory and disk; 0 takes none
    state_dir: str = ""  # local folder for the database when the project is on a network file system


def load_settings(project: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    values = _from_file(project / CONFIG_FILE)
    for field in fields(Settings):
        variable = f"LABWRIGHT_{field.name.upper()}"
        if variable in environ:
            values[field.name] = _parse(variable, environ[variable], type(field.default))
    return Settings(**values)


def load_tables(project: Path, name: str) -> list[dict[str, Any]]:
    """The `[[name]]` tables of `labwright.toml`, for whoever knows what is in them."""
    path = project / CONFIG_FILE
    found = _parsed(path).get(name, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise Invalid(f"{path}: {name} must be written as [[{name}]] tables.")
    return found


def load_table(project: Path, name: str) -> dict[str, Any]:
    """The `[name]` table of `labwright.toml`, likewise."""
    path = project / CONFIG_FILE
    found = _parsed(path).get(name, {})
    if not isinstance(found, dict):
        raise Invalid(f"{path}: {name} must be written as a [{name}] table.")
    return found


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _parsed(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}.", hint="Mend the line it names, then try again.") from error


def _from_file(path: Path) -> dict[str, Any]:
    data = _parsed(path)
    known = {field.name: type(field.default) for field in fields(Settings)}
    values: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict) or _is_tables(value):
            continue  # tables belong to later readers
        if key not in known:
            raise Invalid(f"{path}: unknown setting {key!r}.", hint=f"Known: {', '.join(sorted(known))}.")
        values[key] = _checked(f"{path}: {key}", value, known[key])
    return values


def _checked(where: str, value: object, kind: type) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind or (isinstance(value, int | float) and value < 0):
        raise Invalid(f"{where} must be {_WORD[kind]}, not {value!r}.")
    return value


def _parse(where: str, text: str, kind: type) -> Any:
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        return _checked(where, kind(text), kind)
    except (ValueError, KeyError) as error:
        raise Invalid(f"{where} must be {_WORD[kind]}, not {text!r}.") from error


_WORD = {int: "a whole number, not negative", float: "a number, not negative", bool: "true or false", str: "text"}
