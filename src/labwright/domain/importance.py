"""Which parameters mattered: how much of the spread of results one parameter alone explains.

For each parameter the configurations are put into groups by its value (a range into parts of equal size), the results
into ranks, and the share of the ranks' variance between the groups is taken, corrected for the number of groups
(epsilon squared). Ranks, so that one diverged run does not decide; corrected, so that pure noise comes out near 0.
What two parameters do only together is not seen: that would need a model, and more configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labwright.domain.space import canonical

METHOD = "share of rank variance explained by each parameter alone (epsilon squared)"
LEAST_CONFIGURATIONS = 10
_MANY_VALUES = 8
_PARTS = 6
_LEAST_PARTS = 3  # two would not show that the best lies in between


def importance(params: Sequence[dict[str, Any]], values: Sequence[float]) -> dict[str, float] | None:
    """By parameter, largest first; None where there are too few configurations to say."""
    if len(values) < LEAST_CONFIGURATIONS:
        return None
    ranks = _ranks(values)
    names = dict.fromkeys(name for config in params for name in config)
    found = {name: _explained([config.get(name) for config in params], ranks) for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _ranks(values: Sequence[float]) -> list[float]:
    """Equal values share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2
        start = end + 1
    return ranks


def _explained(column: Sequence[Any], ranks: Sequence[float]) -> float:
    groups: dict[Any, list[float]] = {}
    for label, rank in zip(_labels(column), ranks, strict=True):
        groups.setdefault(label, []).append(rank)
    count, mean = len(ranks), sum(ranks) / len(ranks)
    total = sum((rank - mean) ** 2 for rank in ranks)
    if len(groups) < 2 or len(groups) >= count or total == 0:
        return 0.0
    between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values())
    share = 1 - (1 - between / total) * (count - 1) / (count - len(groups))
    return round(max(0.0, share), 4)


def _labels(column: Sequence[Any]) -> list[Any]:
    """The values themselves where they are few, else in which part of the sorted numbers each lies."""
    if not all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column):
        return [canonical(value) for value in column]
    numbers = [value for value in column if value is not None]
    if len(set(numbers)) <= _MANY_VALUES:
        return list(column)
    ranks = _ranks(numbers)
    parts = max(_LEAST_PARTS, min(_PARTS, len(numbers) // 4))
    placed = iter(int(rank * parts / len(numbers)) for rank in ranks)
    return [None if value is None else next(placed) for value in column]
