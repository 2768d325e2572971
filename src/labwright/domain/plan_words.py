"""Small rules about words in a plan: sentences, concrete values, what a reader cannot see.

Each looks at a text once: a hostile one of any length costs time in proportion to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What shows nothing, or shows another order than there is: who approves a plan must see what it says.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]|\r(?!\n|$)"
)
_PLACEHOLDER = re.compile(r"<[^<>]{1,100}>")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[%kKMG]?"
_RANGE = re.compile(rf"{_NUMBER}\s*(?:-|–|—|~|to|through|until|\.\.+|…)\s*{_NUMBER}(?:\s*\(.*\))?", re.DOTALL)
_PAIR = re.compile(rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]")
_RANGE_WORDS = (
    "between ", "from ", "up to ", "at least ", "at most ", "range", "linspace", "logspace", "np.", "uniform",
    "loguniform", "log-uniform", "log uniform", "<", ">", "≤", "≥",
)  # fmt: skip
_VAGUE = frozenset(
    {"tbd", "todo", "various", "several", "multiple", "etc", "etc.", "...", "…", "?", "and so on", "n/a", "-"}
)
_ABBREVIATIONS = frozenset({"e.g.", "i.e.", "vs.", "cf.", "approx.", "resp.", "fig.", "eq.", "no.", "dr.", "incl."})
_CLOSING = "\"')]}*_`”’»"
_OPENING, _ENDING = "([{", ")]}"


def hidden_characters(text: str) -> Iterator[tuple[int, str]]:
    """Where, and which."""
    return ((match.start(), match.group()) for match in _HIDDEN.finditer(text))


def is_placeholder(text: str) -> bool:
    """As the template has it, not filled in."""
    return _PLACEHOLDER.fullmatch(text) is not None


def count_sentences(text: str) -> int:
    words = text.split()
    ends = 0
    for word, following in zip(words, [*words[1:], ""], strict=False):
        ends += sum(word.count(mark) for mark in "。！？")
        ends += not word.endswith(tuple("。！？")) and _ends_sentence(word, following)
    return ends


def _ends_sentence(word: str, following: str) -> bool:
    """The last word always does, with or without a full stop."""
    if not following:
        return True
    bare = word.rstrip(_CLOSING)
    if not bare.endswith((".", "!", "?")) or bare.lstrip("(\"'").lower() in _ABBREVIATIONS:
        return False
    return not following.lstrip("(\"'*_`").startswith(tuple("abcdefghijklmnopqrstuvwxyz"))


def split_values(cell: str) -> list[str]:
    """The values of a table's cell: parted by commas, but not by those in brackets, quotes or code."""
    values, start, depth, quote = [], 0, 0, ""
    for position, character in enumerate(cell):
        if quote:
            quote = "" if character == quote else quote
        elif character in '`"':
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _ENDING:
            depth = max(0, depth - 1)
        elif character == "," and depth == 0:
            values.append(cell[start:position])
            start = position + 1
    return [without_code(value.strip()) for value in (*values, cell[start:])]


def without_brackets(cell: str) -> str:
    """A list written as one: `[1, 2, 3]`."""
    inside = cell[1:-1]
    bracketed = cell.startswith(("[", "{")) and cell.endswith(("]", "}")) and not set(inside) & set("[]{}")
    return inside if bracketed else cell


def without_code(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1] else text


def why_not_concrete(value: str) -> str:
    """What is wrong with a value of a sweep, or nothing."""
    low = value.strip().lower()
    if not low:
        return "is empty"
    if is_placeholder(value) or low in _VAGUE or low.endswith(("...", "…", " etc", " etc.")):
        return "names no value"
    if _RANGE.fullmatch(value.strip()) or low.startswith(_RANGE_WORDS):
        return "is a range"
    return ""


def is_interval(cell: str) -> bool:
    """`[1e-4, 1e-1]`: two values, or all between them? A reader cannot tell."""
    return _PAIR.fullmatch(without_code(cell)) is not None
