"""Where models are served: the known providers, and what `[endpoints.NAME]` in `labwright.toml` adds.

A project's file may come from anybody. So it can say where a model is, but never which secret goes there: a known
provider's key goes to that provider's own address, or to one that the user's environment names; an endpoint of the
file has a key of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from labwright.domain.errors import Invalid
from labwright.paths import CONFIG_FILE
from labwright.settings import load_table, nearest

TABLE = "endpoints"
_KEYS = ("wire", "base_url")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_SECRET_KEYS = {"key", "api_key", "token", "key_env", "key_file"}


class Wire(StrEnum):
    """The format that a server speaks."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"  # chat completions, as very many speak them


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    name: str
    wire: Wire
    base_url: str
    key_variable: str
    needs_key: bool = False


def _known(name: str, wire: Wire, base_url: str, *, needs_key: bool) -> Endpoint:
    return Endpoint(
        name=name, wire=wire, base_url=base_url, key_variable=f"{name.upper()}_API_KEY", needs_key=needs_key
    )


KNOWN: Mapping[str, Endpoint] = {
    endpoint.name: endpoint
    for endpoint in (
        _known("anthropic", Wire.ANTHROPIC, "https://api.anthropic.com", needs_key=True),
        _known("openai", Wire.OPENAI, "https://api.openai.com/v1", needs_key=True),
        _known("openrouter", Wire.OPENAI, "https://openrouter.ai/api/v1", needs_key=True),
        _known("ollama", Wire.OPENAI, "http://127.0.0.1:11434/v1", needs_key=False),
        _known("vllm", Wire.OPENAI, "http://127.0.0.1:8000/v1", needs_key=False),
        _known("llamacpp", Wire.OPENAI, "http://127.0.0.1:8080/v1", needs_key=False),
    )
}


def load_endpoints(project: Path, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """By name; a known one moves only where the user's own environment says so."""
    found = {name: _as_environment_says(endpoint, environ) for name, endpoint in KNOWN.items()}
    for name, table in load_table(project, TABLE).items():
        found[name] = _from_table(f"{project / CONFIG_FILE}: [{TABLE}.{name}]", name, table)
    return found


def _as_environment_says(endpoint: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    variable = f"{endpoint.name.upper()}_BASE_URL"
    address = environ.get(variable, "")
    if not address:
        return endpoint
    # Whether a server of one's own wants a key, only it knows; most do not.
    return replace(endpoint, base_url=checked_url(address, variable), needs_key=False)


def _from_table(where: str, name: str, table: object) -> Endpoint:
    if not _NAME.fullmatch(name):
        raise Invalid(f"{where}: a name is lower-case letters, digits, - and _.", hint="Rename it.")
    if name in KNOWN:
        hint = f"Give it a name of its own, or set {name.upper()}_BASE_URL where the server is started."
        raise Invalid(f"{where}: {name} is a known provider, whose key goes to its own address.", hint=hint)
    if not isinstance(table, dict):
        raise Invalid(f"{where} must be a table.")
    _check_keys(where, name, table)
    wire = table.get("wire", Wire.OPENAI)
    if wire not in list(Wire):
        raise Invalid(f"{where}: wire knows no {str(wire)[:40]!r}.", hint=f"Choose: {', '.join(Wire)}.")
    return Endpoint(
        name=name,
        wire=Wire(wire),
        base_url=checked_url(table.get("base_url"), f"{where}: base_url"),
        key_variable=_key_variable(name),
    )


def _check_keys(where: str, name: str, table: dict[str, Any]) -> None:
    if _SECRET_KEYS & table.keys():
        hint = f"Set {_key_variable(name)} where the server is started, or write the key into a private file."
        raise Invalid(f"{where}: a key does not belong into this file, nor where it is kept.", hint=hint)
    for key in table:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            raise Invalid(
                f"{where}: unknown {key}.",
                hint=f"Did you mean {near}?" if near else f"Known: {', '.join(sorted(_KEYS))}.",
            )


def _key_variable(name: str) -> str:
    return f"LABWRIGHT_KEY_{name.upper().replace('-', '_')}"


def checked_url(text: object, where: str) -> str:
    """Without a password in it: it is shown to everybody who may look."""
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text:
        raise Invalid(f"{where} must be an http or https address.")
    try:
        address = urlsplit(text)
        usable = address.scheme in ("http", "https") and address.hostname and (address.port or 1)
    except ValueError:
        usable = None
    if not usable:
        raise Invalid(f"{where} must be an http or https address.", hint="For example http://127.0.0.1:8000/v1")
    if address.username or address.password or address.query or address.fragment:
        raise Invalid(f"{where} must be an address alone, without a name, a password or a query.")
    return text.rstrip("/")
