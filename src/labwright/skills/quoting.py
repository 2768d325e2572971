"""Put text from others into a prompt safely: bounded, on one line, inside a fence that it cannot close.

Run names, messages and reasons can come from anyone. Quoted here, they cannot start a heading, end a code block, hide
in invisible characters or fill pages.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable

LONGEST_VALUE = 160
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}  # controls, direction marks, tags, line ends


def quoted(text: object, limit: int = LONGEST_VALUE) -> str:
    """Return the text as a JSON string, so that its start and end are clear."""
    return json.dumps(plain(text, limit), ensure_ascii=False)


def plain(text: object, limit: int = LONGEST_VALUE) -> str:
    """Return the visible characters on one line."""
    head = str(text)[: 4 * limit]
    seen = "".join(" " if unicodedata.category(letter) in _INVISIBLE else letter for letter in head)
    line = " ".join(seen.split()).replace("`", "'").replace("~~~", "---")
    return line if len(line) <= limit and len(head) == len(str(text)) else f"{line[: limit - 1]}…"


def fenced(lines: Iterable[str], limit: int) -> str:
    """Return a code block of at most `limit` characters. It says how many lines were left out."""
    kept: list[str] = []
    left_out, room = 0, limit
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            left_out += 1
        else:
            kept.append(line)
    if left_out:
        kept.append(f"({left_out} more lines left out)")
    return "\n".join(["```text", *kept, "```"])
