"""Numbers and foreign text as they stand in a report. Names and output are anybody's: they stay text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from labwright.domain.command_line import as_text
from labwright.domain.search.results import ConfigurationResult

_CODE_LENGTH = 120
_UNSEEN = re.compile(r"[^\S ]+|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_MEANS_SOMETHING = re.compile(r"([\\`*_\[\]<>|#&~!])")


def amount(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.4g}"


def spread(found: ConfigurationResult) -> str:
    """Mean ± standard deviation, and over how many seeds."""
    if found.mean is None:
        return "–"
    return f"{mean_and_std(found)} ({'1 run' if found.n == 1 else f'n {found.n}'})"


def mean_and_std(found: ConfigurationResult) -> str:
    """To the digits that the deviation leaves certain. One run has no deviation."""
    if found.mean is None or found.std is None:
        return amount(found.mean)
    digits = 1 - math.floor(math.log10(found.std)) if found.std else -1
    if not 0 <= digits <= 12:
        return f"{found.mean:.5g} ± {found.std:.2g}"
    return f"{found.mean:.{digits}f} ± {found.std:.{digits}f}"


def value_text(value: Any) -> str:
    return as_text(value)


def params_text(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value_text(value)}" for name, value in params.items()) or "as it is"


def plain(text: str) -> str:
    """Foreign text inside of a paragraph: one line, nothing of it Markdown or HTML."""
    return _MEANS_SOMETHING.sub(r"\\\1", _UNSEEN.sub(" ", text)).strip()


def code(text: str) -> str:
    """Foreign text as a code span, also inside of a table."""
    shown = _UNSEEN.sub(" ", text).replace("`", "'").replace("|", "¦").strip()
    return f"`{shown[:_CODE_LENGTH]}`" if shown else "` `"


def block(text: str) -> list[str]:
    """Foreign lines, indented: nothing in them can end the block."""
    lines = ("".join(letter if letter.isprintable() else " " for letter in line) for line in text.splitlines())
    return [f"    {line}" for line in lines]


def table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
