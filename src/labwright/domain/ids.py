"""Ids: the kind and ten random characters, short enough to type and safe in a path or a shell."""

from __future__ import annotations

import hashlib
import re
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: without i, l, o and u, which are easy to confuse
_LENGTH = 10
_SHAPE = re.compile(rf"[a-z]{{2,5}}-[{_ALPHABET}]{{{_LENGTH}}}")

SUGGESTION = "idea"
RUN, SWEEP, ALERT, ARRAY, PLAN = "run", "sweep", "alert", "array", "plan"
SESSION, APPROVAL, MEMORY, WILD = "chat", "ask", "note", "wild"


def new_id(kind: str) -> str:
    return f"{kind}-{''.join([_ALPHABET[byte & 31] for byte in secrets.token_bytes(_LENGTH)])}"


def id_of(kind: str, content: bytes) -> str:
    """Return the id of this content. Equal content gets an equal id."""
    return f"{kind}-{''.join([_ALPHABET[byte & 31] for byte in hashlib.sha256(content).digest()[:_LENGTH]])}"


def is_id(text: str, kind: str) -> bool:
    return text.startswith(f"{kind}-") and _SHAPE.fullmatch(text) is not None
