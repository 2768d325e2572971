"""What a job's environment is made of, and which of its values are secrets that must not be written down."""

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
_SIMULATED = "LABWRIGHT_SIM_"  # the simulated driver must be seen by runs too
_SESSION_ONLY = frozenset({"TMUX", "TMUX_PANE", "_", "OLDPWD", "SHLVL"})


def is_secret(name: str, value: str) -> bool:
    name = name.upper()
    named = name.endswith(_SECRET_ENDINGS) or bool(_SECRET_PARTS & set(name.split("_")))
    return named or _URL_WITH_PASSWORD.search(value) is not None


def split_secrets(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What may be written down, and what may not."""
    plain = {name: value for name, value in environment.items() if not is_secret(name, value)}
    return plain, {name: value for name, value in environment.items() if name not in plain}


def for_jobs(environ: Mapping[str, str], project: Path, own_prefix: str, *, keep_keys: bool = False) -> dict[str, str]:
    """An environment without what is Labwright's own: its variables, its model keys, and its venv, unless that is the
    project's or was activated: then it is somebody's choice."""
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
