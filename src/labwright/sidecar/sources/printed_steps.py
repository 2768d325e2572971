"""How far a line says that it is: `Epoch 1/3`, `iter 50:`, `Step [100/600]`."""

from __future__ import annotations

import re
from typing import NamedTuple

_PARTING = r"['\"]?[\s:=#\[(]+"
_TOTAL = r"(?P<total>\s*/\s*\d+)?"
_STEP = re.compile(
    rf"(?<![\w./?&@-])(?<!best )(?P<name>global_step|step|iteration|iter|epoch)"
    rf"{_PARTING}(?P<number>\d+)(?![\w%]|[.,:-]\d){_TOTAL}[\])]?",
    re.IGNORECASE,
)
_OF_MANY = r"(?:^|[^\w\s:=.(%-])\s*\d+\s*/\s*\d+(?![\d/])"  # `[640/60000`, `| 200/ 2983 batches`; not `acc: 95/100`
_PLACE = re.compile(rf"{_OF_MANY}|\bbatch{_PARTING}\d", re.IGNORECASE)


class Progress(NamedTuple):
    said: dict[str, str]  # by the names of steps
    rest: str  # of the line
    is_inside_epoch: bool  # one of many lines of its epoch, so that the epoch tells it from no other


def progress_in(text: str) -> Progress:
    found: dict[str, re.Match[str]] = {}
    for match in _STEP.finditer(text):
        found.setdefault(match["name"].lower(), match)
    rest = _STEP.sub(" | ", text)  # no space alone: what stood before and after it is not one name
    inside = False
    if "epoch" in found:  # then `Step [100/600]` begins anew with each epoch
        inner = [name for name, match in found.items() if match["total"] and name != "epoch"]
        inside = bool(inner) or _PLACE.search(rest) is not None
        found = {name: match for name, match in found.items() if name not in inner}
    return Progress({name: match["number"] for name, match in found.items()}, rest, inside)
