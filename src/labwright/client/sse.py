"""Server-sent events, read line by line as they come."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    event: str
    data: Any
    id: str = ""


def frames(lines: Iterable[bytes]) -> Iterator[Frame]:
    """Whole events only: one that was cut off by a broken connection is dropped, and sent again after it."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\r\n")
        if not text:
            if "data" in fields:
                yield Frame(
                    event=fields.get("event", "message"), data=json.loads(fields["data"]), id=fields.get("id", "")
                )
            fields = {}
            continue
        name, _, value = text.partition(":")
        if name:  # a line that begins with a colon only says that the server is still there
            fields[name] = value.removeprefix(" ")
