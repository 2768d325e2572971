"""What others wrote, on its way into a prompt: bounded, on one line, inside of a fence that it cannot close.

Names of runs, messages and reasons come from anybody. Here they become data: they cannot begin a heading, end a code
block, hide in invisible characters or run on for pages.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable

LONGEST_VALUE = 160
_UNSEEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}  # controls, direction marks, tags, line ends


def quoted(text: object, limit: int = LONGEST_VALUE) -> str:
    """As a JSON string: where it begins and ends is plain to see."""
    return json.dumps(plain(text, limit), ensure_ascii=False)


def plain(text: object, limit: int = LONGEST_VALUE) -> str:
    """One line of what can be seen."""
    head = str(text)[: 4 * limit]
    seen = "".join(" " if unicodedata.category(letter) in _UNSEEN else letter for letter in head)
    line = " ".join(seen.split()).replace("`", "'").replace("~~~", "---")
    return line if len(line) <= limit and len(head) == len(str(text)) else f"{line[: limit - 1]}…"


def fenced(lines: Iterable[str], limit: int) -> str:
    """A block of data of at most so many characters; what does not fit is counted, not passed over in silence."""
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
