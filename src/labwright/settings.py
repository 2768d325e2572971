"""Every setting: a `LABWRIGHT_…` variable, else `labwright.toml`, else the default."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid
from labwright.paths import CONFIG_FILE, DEFAULT_LEASE_DIR


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each comment documents its setting. A test checks `docs/reference/settings.md` against this list."""

    host: str = "127.0.0.1"  # address to listen on
    port: int = 8484  # 0, or the default port in use: a free port is chosen
    allowed_hosts: str = ""  # additional names for the Host header, comma-separated
    max_parallel: int = 0  # max parallel runs without GPUs; 0: detection decides
    lease_dir: str = DEFAULT_LEASE_DIR  # folder of the GPU leases, one per machine
    gpu_busy_memory_mb: int = 1024  # a GPU with more memory in use than this is busy
    gpu_busy_utilization: int = 10  # a GPU with a higher utilization than this percentage is busy
    ageing_seconds: float = 30.0  # a wide run that has waited this long goes before narrow ones
    grace_seconds: float = 10.0  # seconds between TERM and KILL
    log_cap_mb: int = 1024  # a larger output keeps only its start and its end
    backup_minutes: float = 30.0  # between online backups of the database
    backups_kept: int = 5  # how many of the newest backups to keep
    snapshot_file_mb: int = 20  # larger files are recorded by size and time, not copied
    keep_days: int = 90  # `labwright gc`: logs and snapshots of ended runs older than this
    keep_archived_days: int = 30  # `labwright gc`: archived runs older than this are deleted
    tmux: bool = True  # open a viewer window for each run if tmux is installed
    notify_timeout_seconds: float = 10.0  # timeout of a notification channel
    notify_retry_seconds: float = 2.0  # before the first retry of a notification; later retries wait longer
    notify_answer_hours: float = 24.0  # how long an approval can be answered from a channel
    metrics_key_value: bool = False  # read `key=value` pairs in the output as metrics, not only JSON lines
    system_metrics_seconds: float = 5.0  # between samples of processor, memory and disk; 0: no samples
    agent_token_hours: float = 12.0  # how long the token of a rendered skill is valid
    server_log_json: bool = False  # write the server log as one JSON object per line
    state_dir: str = ""  # local folder for the database when the project is on a network file system
    model: str = ""  # `provider:model`; empty or `offline`: offline rules, nothing leaves the machine
    model_cheap: str = ""  # model for simple requests; empty: `model`
    model_heavy: str = ""  # model for hard requests; empty: `model`
    model_max_tokens: int = 0  # max tokens per response; 0: the provider's limit
    model_silence_seconds: float = 120.0  # timeout without data from a model
    model_answer_seconds: float = 900.0  # timeout per response
    model_retries: int = 4  # retries after a temporary error
    model_requests_per_minute: int = 0  # rate limit per provider; 0: no limit
    session_token_limit: int = 5_000_000  # a session pauses and asks after this many tokens; 0: no limit
    session_usd_limit: float = 10.0  # or after this cost, if prices are known; 0: no limit
    agent_max_rounds: int = 25  # max responses of a model per turn
    agent_result_chars: int = 12_000  # max length of a tool result
    shell_seconds: float = 300.0  # timeout of a command in an agent's shell
    shell_cpu_seconds: int = 60  # its processor time limit, over all processes
    shell_memory_mb: int = 4096  # its memory limit
    agent_history_chars: int = 150_000  # in longer conversations the model gets a summary of the older turns


BOUNDS: dict[str, tuple[float, float]] = {
    "port": (0, 65_535),
    "max_parallel": (0, 10_000),
    "gpu_busy_memory_mb": (0, 1_000_000),
    "gpu_busy_utilization": (0, 100),
    "ageing_seconds": (0, 604_800),
    "grace_seconds": (0, 3_600),
    "log_cap_mb": (0, 1_000_000),
    "backup_minutes": (0.001, 10_080),
    "backups_kept": (1, 1_000),
    "snapshot_file_mb": (0, 10_000),
    "keep_days": (0, 36_500),
    "keep_archived_days": (0, 36_500),
    "notify_timeout_seconds": (0.01, 600),
    "notify_retry_seconds": (0.001, 3_600),
    "notify_answer_hours": (0.001, 720),
    "system_metrics_seconds": (0, 3_600),
    "agent_token_hours": (0.01, 720),
    "model_max_tokens": (0, 1_000_000),
    "model_silence_seconds": (0.01, 3_600),
    "model_answer_seconds": (0.01, 86_400),
    "model_retries": (0, 20),
    "model_requests_per_minute": (0, 100_000),
    "session_token_limit": (0, 1e12),
    "session_usd_limit": (0, 1_000_000),
    "agent_max_rounds": (1, 1_000),
    "agent_result_chars": (1_000, 200_000),
    "agent_history_chars": (10_000, 10_000_000),
    "shell_seconds": (1, 3_600),
    "shell_cpu_seconds": (1, 3_600),
    "shell_memory_mb": (64, 1_000_000),
}
TABLES = {
    "slurm": "[slurm]",
    "metrics": "[metrics]",
    "alerts_builtin": "[alerts_builtin]",
    "alerts": "[[alerts]]",
    "notify": "[[notify]]",
    "endpoints": "[endpoints.NAME]",
    "prices": '[prices."PROVIDER:MODEL"]',
}
_LARGEST = 1e15
_NEVER_EMPTY = ("host", "lease_dir")


# Read only at start: a change takes effect after a restart.
AT_START = frozenset(
    {
        "host",
        "port",
        "allowed_hosts",
        "lease_dir",
        "state_dir",
        "grace_seconds",
        "snapshot_file_mb",
        "tmux",
        "server_log_json",
    }
)


def load_settings(project: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    path = project / CONFIG_FILE
    return settings_of(path, _parsed(path), environ)


def settings_of(path: Path, data: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings that follow from this content of the file at `path`."""
    values = _from_data(path, data)
    for field in fields(Settings):
        variable = variable_of(field.name)
        if variable in environ:
            given = _from_text(environ[variable], type(field.default))
            values[field.name] = checked_value(variable, field.name, given, "Fix or unset the variable")
    return Settings(**values)


def variable_of(name: str) -> str:
    return f"LABWRIGHT_{name.upper()}"


def unknown_tables(project: Path) -> list[str]:
    """Return a message for each unknown table of `labwright.toml`: it is probably misspelled."""
    path = project / CONFIG_FILE
    tables = [key for key, value in _parsed(path).items() if isinstance(value, dict) or _is_tables(value)]
    return [f"{path}: [{name}] has no effect: {_unknown(name)}" for name in tables if name not in TABLES]


def _unknown(table: str) -> str:
    near = nearest(table, TABLES)
    return f"did you mean {TABLES[near]}?" if near else f"the tables are {', '.join(TABLES.values())}."


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar, or an empty text."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), "")


def load_tables(project: Path, name: str) -> list[dict[str, Any]]:
    """Return the `[[name]]` tables of `labwright.toml`. The caller validates their content."""
    path = project / CONFIG_FILE
    found = _parsed(path).get(name, [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise Invalid(f"{path}: {name} must be written as [[{name}]] tables.")
    return found


def load_table(project: Path, name: str) -> dict[str, Any]:
    """Return the `[name]` table of `labwright.toml`. The caller validates its content."""
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
        raise Invalid(f"{path} is not valid TOML: {error}.", hint="Fix that line and try again.") from error
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.", hint="Make the file readable.") from error


def _from_data(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(Settings)}
    values: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict) or _is_tables(value):
            continue  # other modules read the tables
        if key not in known:
            near = nearest(key, known)
            hint = f"Did you mean {near}?" if near else f"Known: {', '.join(sorted(known))}."
            raise Invalid(f"{path}: unknown setting {key!r}.", hint=hint)
        values[key] = checked_value(f"{path}: {key}", key, value, "Fix or remove the line")
    return values


def _from_text(text: str, kind: type) -> object:
    """Parse the text as this type. Text that cannot be parsed is returned and refused later like a wrong value."""
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        return kind(text)
    except (ValueError, KeyError):
        return text


def checked_value(where: str, name: str, value: object, remedy: str) -> Any:
    """Return the value in the type of the setting, or raise Invalid with its place and a remedy."""
    default = getattr(Settings(), name)
    if isinstance(default, float) and type(value) is int:
        value = float(value) if abs(value) < _LARGEST else math.inf
    if type(value) is type(default) and _is_in_bounds(name, value):
        return value
    raise Invalid(
        f"{where} must be {_expected(name, default)}, not {value!r}.",
        hint=f"{remedy}; the default is {_shown(default)}.",
    )


def _is_in_bounds(name: str, value: object) -> bool:
    """Return whether the value is allowed. NaN never is."""
    if name in BOUNDS and isinstance(value, int | float):
        low, high = BOUNDS[name]
        return low <= value <= high
    return name not in _NEVER_EMPTY or bool(str(value).strip())


def _expected(name: str, default: object) -> str:
    if name in BOUNDS:
        low, high = BOUNDS[name]
        return f"{'a whole number' if isinstance(default, int) else 'a number'} from {low:g} to {high:.15g}"
    if isinstance(default, bool):
        return "true or false"
    return "text that is not empty" if name in _NEVER_EMPTY else "text"


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else repr(default)
