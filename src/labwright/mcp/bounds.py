"""Limit the size of results. Each place where something is left out says how much."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

LONGEST_RESULT = 24_000  # characters of JSON
# The number of list entries and of characters per text that are kept, from many to few.
_STEPS = ((1000, 24_000), (200, 8_000), (50, 2_000), (20, 800), (8, 300), (3, 100), (1, 40))


def bounded_json(value: Any) -> str:
    """Return the value as JSON, shortened by the first step that fits; the last one cuts."""
    text = ""
    for entries, letters in _STEPS:
        text = json.dumps(_shortened(value, entries, letters), ensure_ascii=False, separators=(",", ":"))
        if len(text) <= LONGEST_RESULT:
            return text
    return bounded_text(text)


def bounded_text(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    return f"{text[:LONGEST_RESULT]}… [{len(text) - LONGEST_RESULT} more characters left out]"


def _shortened(value: Any, entries: int, letters: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= letters else f"{value[:letters]}… [{len(value) - letters} more characters]"
    if isinstance(value, list):
        kept = [_shortened(item, entries, letters) for item in value[:entries]]
        return kept if len(value) <= entries else [*kept, f"… [{len(value) - entries} more]"]
    if isinstance(value, dict):
        kept_fields = {key: _shortened(item, entries, letters) for key, item in islice(value.items(), max(entries, 60))}
        left_out = len(value) - len(kept_fields)
        return {**kept_fields, "…": f"[{left_out} more]"} if left_out else kept_fields
    return value
