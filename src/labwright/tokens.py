"""Tokens: one secret per project, and signed tokens with a scope that are derived from it.

Changing the secret invalidates all of them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import time
from pathlib import Path

from labwright.domain.actor import Actor, Scope
from labwright.files import write_whole

_LETTER = {Scope.RUN: "r", Scope.AGENT: "a", Scope.PLANNER: "p", Scope.VIEWER: "v", Scope.ANSWER: "q"}
_SCOPE = {letter: scope for scope, letter in _LETTER.items()}


def load_or_make(path: Path) -> str:
    """Return the person's token. Create it at the first start, readable only by its owner."""
    with contextlib.suppress(FileNotFoundError):
        if token := path.read_text().strip():
            return token
    write_whole(path, f"lw_{secrets.token_urlsafe(32)}\n".encode())
    return path.read_text().strip()


def mint(secret: str, scope: Scope, subject: str, ttl_seconds: float | None = None) -> str:
    """Return a token for one run, agent, viewer or answer. Without `ttl_seconds` it is valid as long as the secret."""
    expires = "" if ttl_seconds is None else str(int(time.time() + ttl_seconds))
    body = f"lw{_LETTER[scope]}.{subject}.{expires}"
    return f"{body}.{_signature(secret, body)}"


def verify(secret: str, token: str) -> Actor | None:
    if hmac.compare_digest(token.encode(), secret.encode()):
        return Actor(Scope.PERSON)
    body, _, signature = token.rpartition(".")
    parts = body.split(".")
    if len(parts) != 3 or not hmac.compare_digest(signature.encode(), _signature(secret, body).encode()):
        return None
    kind, subject, expires = parts
    if expires and int(expires) < time.time():
        return None
    return Actor(_SCOPE[kind.removeprefix("lw")], subject)


def has_expired(token: str) -> bool:
    """Return whether the token's own expiry time has passed. The signature is not checked."""
    parts = token.split(".")
    return len(parts) == 4 and parts[2].isdecimal() and int(parts[2]) < time.time()


def _signature(secret: str, body: str) -> str:
    digest = hmac.new(secret.encode(), body.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:24]).decode()


_HEADER_FIELD = "X-Auth-Token: "


def write_header_file(folder: Path, name: str, token: str) -> Path:
    """Write the token to a private file for `curl -H @file`: every user of a machine can see its command lines.

    A later token with the same name replaces the file, so the path stays valid.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    for old in folder.glob("*.header"):
        with contextlib.suppress(FileNotFoundError):  # another process removed it first
            if has_expired(old.read_text().strip().removeprefix(_HEADER_FIELD)):
                old.unlink()
    path = folder / f"{name}.header"
    write_whole(path, f"{_HEADER_FIELD}{token}\n".encode())  # creates it with mode 0600
    return path
