"""Which configurations to try so that every way through the script is taken once: few, chosen by rules."""

from __future__ import annotations

from typing import Any

from labwright.planning.ir.model import GridIR, ParameterIR

MOST = 8
Config = dict[str, Any]


def paths_to_try(grid: GridIR, most: int = MOST) -> tuple[list[Config], list[str]]:
    """Each value of a choice or switch and both ends of a number, in as few configurations as that takes.

    Also, in words, what they leave out: values that found no room, and that combinations are not all tried.
    """
    needed = {parameter.name: telling_values(parameter) for parameter in grid.parameters}
    rows = max((len(values) for values in needed.values()), default=1)
    tried = [{name: values[row % len(values)] for name, values in needed.items()} for row in range(rows)]
    if grid.baseline is not None and grid.baseline_apart:
        tried.append(dict(grid.baseline))
    kept = _different(tried)[:most]
    return kept, _left_out(needed, kept)


def telling_values(parameter: ParameterIR) -> list[Any]:
    """Numbers between the two ends take the same way; any other value may take its own."""
    values = list(parameter.values)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values) or len(values) < 3:
        return values
    return [min(numbers), max(numbers)]


def _different(tried: list[Config]) -> list[Config]:
    found: list[Config] = []
    for config in tried:
        if config not in found:
            found.append(config)
    return found


def _left_out(needed: dict[str, list[Any]], kept: list[Config]) -> list[str]:
    words = []
    for name, values in needed.items():
        missing = [str(value) for value in values if not any(config.get(name) == value for config in kept)]
        if missing:
            words.append(f"{name} was not tried with {', '.join(missing[:10])}")
    return words
