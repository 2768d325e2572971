"""How far a line says that it is: `Epoch 1/3`, `iter 50:`, `Step [100/600]`."""

from __future__ import annotations

import re
from typing import NamedTuple

_PARTING = r"['\"]?[\s:=#\[(]+"
_TOTAL = r"(?P<total>\s*/\s*\d+)?"
_STEP = re.compile(
    rf"(?<![\w./?&@-])(?<!best )(?P<name>global_step|step|iteration|iter|epoch)"
    rf"{_PARTING}(?P<number>\d+)(?![\w%]|[.,:-]\d){_TOTAL}[\])]?(?:\s*[:-](?=\s))?",
    re.IGNORECASE,
)
_OF_MANY = r"(?:^|[^\w\s:=.(%-])\s*\d+\s*/\s*\d+(?![\d/])"  # `[640/60000`, `| 200/ 2983 batches`; not `acc: 95/100`
_PLACE = re.compile(rf"{_OF_MANY}|\bbatch{_PARTING}\d", re.IGNORECASE)


class Progress(NamedTuple):
    said: dict[str, str]  # by the names of steps
    is_inside_epoch: bool  # one of many lines of its epoch, so that the epoch tells it from no other


def without_steps(text: str) -> str:
    return _STEP.sub(" | ", text)  # no space alone: what stood before and after it is not one name


class PrintedSteps:
    """Of one output. Only its lines together tell whether `Epoch 2, Step 100` counts on or begins anew."""

    def __init__(self, reached: int) -> None:
        self._epoch: str | None = None
        self._highest = reached
        self._begin_anew = False

    def progress_in(self, text: str) -> Progress:
        """For lines with metrics alone: `Loaded the weights of epoch 3, step 500` says nothing of this run."""
        found: dict[str, re.Match[str]] = {}
        for match in _STEP.finditer(text):
            found.setdefault(match["name"].lower(), match)
        inside = False
        if "epoch" in found:
            inner = self._inner_steps(found)
            inside = bool(inner) or _PLACE.search(without_steps(text)) is not None
            found = {name: match for name, match in found.items() if name not in inner}
        return Progress({name: match["number"] for name, match in found.items()}, inside)

    def _inner_steps(self, found: dict[str, re.Match[str]]) -> list[str]:
        """Those of an epoch: `Step [100/600]`, and all that were as high in an epoch before."""
        names = [name for name in found if name not in ("epoch", "global_step")]
        for name in names:
            self._watch(found["epoch"]["number"], int(found[name]["number"]))
        return [name for name in names if found[name]["total"] or self._begin_anew]

    def _watch(self, epoch: str, step: int) -> None:
        if epoch != self._epoch and step <= self._highest:
            self._begin_anew = True
        self._epoch, self._highest = epoch, max(self._highest, step)
