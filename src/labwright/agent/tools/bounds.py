"""Limit the size of results. Lists lose their ends and long texts their middles; the result says so."""

from __future__ import annotations

import json
from typing import Any

_LONGEST_TEXT = 4000
_SHORTEST_TEXT = 200


def bounded(result: dict[str, Any], most: int) -> str:
    """Return the result as JSON of at most `most` characters."""
    text = _encoded(_clipped(result, _LONGEST_TEXT))
    limit, length = 100, _LONGEST_TEXT
    while len(text) > most and (limit > 1 or length > _SHORTEST_TEXT):
        limit, length = max(1, limit // 2), max(_SHORTEST_TEXT, length // 2)
        text = _encoded({**_shorter(_clipped(result, length), limit), "left_out": "too much to show; ask for less"})
    return text if len(text) <= most else f"{text[: most - 40]}… (cut; ask for less)"


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _clipped(value: Any, length: int) -> Any:
    if isinstance(value, str) and len(value) > length:
        half = length // 2
        return f"{value[:half]} … ({len(value) - length} characters left out) … {value[-half:]}"
    if isinstance(value, dict):
        return {key: _clipped(item, length) for key, item in value.items()}
    return [_clipped(item, length) for item in value] if isinstance(value, list | tuple) else value


def _shorter(value: Any, limit: int) -> Any:
    if isinstance(value, dict):
        return {key: _shorter(item, limit) for key, item in list(value.items())[: max(limit, 20)]}
    if isinstance(value, list) and len(value) > limit:
        return [*(_shorter(item, limit) for item in value[:limit]), f"… {len(value) - limit} more"]
    return [_shorter(item, limit) for item in value] if isinstance(value, list) else value
