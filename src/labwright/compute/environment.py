"""The environment of jobs, and which of its values are secrets that must not be stored."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from labwright.processes import METRIC_FILES_VARIABLE

_SECRET_PARTS = frozenset(
    [
        "KEY",
        "APIKEY",
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASS",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "COOKIE",
        "PAT",
        "WEBHOOK",
    ]
)
_SECRET_ENDINGS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "MYSQL_PWD")  # PGPASSWORD
_URL_WITH_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_MODEL_KEYS = frozenset({"ANTHROPIC_API_KEY", "OPENAI_API_KEY"})
_SIMULATED = "LABWRIGHT_SIM_"  # runs need the simulated driver too
_SESSION_ONLY = frozenset({"TMUX", "TMUX_PANE", "_", "OLDPWD", "SHLVL"})


def is_secret(name: str, value: str) -> bool:
    name = name.upper()
    named = name.endswith(_SECRET_ENDINGS) or bool(_SECRET_PARTS & set(name.split("_")))
    return named or _URL_WITH_PASSWORD.search(value) is not None


def split_secrets(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that may be stored, and the secrets."""
    plain = {name: value for name, value in environment.items() if not is_secret(name, value)}
    return plain, {name: value for name, value in environment.items() if name not in plain}


def for_jobs(environ: Mapping[str, str], project: Path, own_prefix: str, *, keep_keys: bool = False) -> dict[str, str]:
    """Return an environment without Labwright's own variables, model keys and venv. A venv that belongs to the project
    or that the user activated stays."""
    kept = {name: value for name, value in environ.items() if _may_pass(name, keep_keys)}
    is_chosen = Path(own_prefix).is_relative_to(project) or kept.get("VIRTUAL_ENV") == own_prefix
    if own_prefix != sys.base_prefix and not is_chosen and "PATH" in kept:
        own_bin = os.path.join(own_prefix, "bin")
        kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if part != own_bin)
    return kept


def _may_pass(name: str, keep_keys: bool) -> bool:
    if name.startswith("LABWRIGHT_"):
        return name == METRIC_FILES_VARIABLE or name.startswith(_SIMULATED)
    return name not in _SESSION_ONLY and (keep_keys or name not in _MODEL_KEYS)
