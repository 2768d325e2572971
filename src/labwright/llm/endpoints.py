"""Where models are served: the known providers, `[endpoints.NAME]` in `labwright.toml`, and the key of each.

A project's file may come from anyone. It can name an address, but it cannot choose which secret goes there. The key
of a known provider goes only to that provider's own address, or to one that the user's environment names. An endpoint
from the file has a key of its own name.

Keys come from the environment or from a file that only its owner can read. They are read when needed and not cached.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from labwright.domain.errors import Invalid, NotFound
from labwright.files import write_whole
from labwright.llm.faults import KeyMissing, KeyRefused
from labwright.paths import CONFIG_FILE, key_file
from labwright.settings import load_table, nearest

TABLE = "endpoints"
_KEYS = ("wire", "base_url")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_SECRET_KEYS = {"key", "api_key", "token", "key_env", "key_file"}


class Wire(StrEnum):
    """The API format of a server."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"  # chat completions, which most servers support


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
    """Return all endpoints by name. Only the user's environment can move a known one to another address."""
    found = {name: _at_address_of_environment(endpoint, environ) for name, endpoint in KNOWN.items()}
    for name, table in load_table(project, TABLE).items():
        found[name] = _from_table(f"{project / CONFIG_FILE}: [{TABLE}.{name}]", name, table)
    return found


def _at_address_of_environment(endpoint: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    variable = f"{endpoint.name.upper()}_BASE_URL"
    address = environ.get(variable, "")
    if not address:
        return endpoint
    # Most self-hosted servers need no key, and we cannot know which do.
    return replace(endpoint, base_url=checked_url(address, variable), needs_key=False)


def _from_table(where: str, name: str, table: object) -> Endpoint:
    if not _NAME.fullmatch(name):
        raise Invalid(f"{where}: a name has lower-case letters, digits, - and _ only.", hint="Rename it.")
    if name in KNOWN:
        hint = f"Choose another name, or set {name.upper()}_BASE_URL where the server is started."
        raise Invalid(f"{where}: {name} is a known provider, and its key goes only to its own address.", hint=hint)
    if not isinstance(table, dict):
        raise Invalid(f"{where} must be a table.")
    _check_keys(where, name, table)
    wire = table.get("wire", Wire.OPENAI)
    if wire not in list(Wire):
        raise Invalid(f"{where}: wire cannot be {str(wire)[:40]!r}.", hint=f"Choose: {', '.join(Wire)}.")
    return Endpoint(
        name=name,
        wire=Wire(wire),
        base_url=checked_url(table.get("base_url"), f"{where}: base_url"),
        key_variable=_key_variable(name),
    )


def _check_keys(where: str, name: str, table: dict[str, Any]) -> None:
    if _SECRET_KEYS & table.keys():
        hint = f"Set {_key_variable(name)} where the server is started, or write the key to a private file."
        raise Invalid(f"{where}: this file must not contain a key or the place of a key.", hint=hint)
    for key in table:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            raise Invalid(
                f"{where}: unknown key {key}.",
                hint=f"Did you mean {near}?" if near else f"Known: {', '.join(sorted(_KEYS))}.",
            )


def _key_variable(name: str) -> str:
    return f"LABWRIGHT_KEY_{name.upper().replace('-', '_')}"


def checked_url(text: object, where: str) -> str:
    """Return a valid address without a password: every viewer can see it."""
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
        raise Invalid(f"{where} must be a plain address, without a user name, a password or a query.")
    return text.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    value: str = field(repr=False)
    source: str  # where it was found; this may be shown


def find_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> Key | None:
    """Return the key, or None if there is none and none is needed."""
    path = key_file(environ, endpoint.name)
    if value := environ.get(endpoint.key_variable, "").strip():
        return Key(value=_one_word(value, endpoint.key_variable), source=endpoint.key_variable)
    if path.exists():
        return Key(value=_one_word(_read_private(path), str(path)), source=str(path))
    if endpoint.needs_key:
        hint = f"Set {endpoint.key_variable} where the server is started, or write the key to {path} (chmod 600)."
        raise KeyMissing(f"There is no key for {endpoint.name}.", hint=hint)
    return None


def save_key(endpoint: Endpoint, value: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Write the key to the file that `find_key` reads. The file is private from its first byte."""
    path = key_file(environ, endpoint.name)
    checked = _one_word(value.strip(), "The request")
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    write_whole(path, f"{checked}\n".encode())
    return path


def delete_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> None:
    path = key_file(environ, endpoint.name)
    if not path.exists():
        raise NotFound(f"There is no key file for {endpoint.name}.", hint=f"The file would be {path}.")
    path.unlink()


def _read_private(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise KeyRefused(f"The key file {path} cannot be read: {error.strerror}.", hint=f"chmod 600 {path}") from None
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise KeyRefused(f"The key file {path} is not a regular file.", hint="Write only the key to it.")
        if info.st_uid not in (os.getuid(), 0):
            raise KeyRefused(f"The key file {path} belongs to another user.", hint=f"Take it over: chown $USER {path}")
        if info.st_mode & 0o077:
            raise KeyRefused(f"Other users can read the key file {path}.", hint=f"Make it private: chmod 600 {path}")
        return file.read(10_000).decode(errors="replace").strip()


def _one_word(value: str, source: str) -> str:
    """Check the key without ever showing it, not even in an error."""
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise KeyRefused(f"{source} does not contain a key.", hint="It must be one word: the key and nothing else.")
    return value
