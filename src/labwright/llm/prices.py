"""What a call costs: by the prices that `labwright.toml` gives, else by the public list that comes with pydantic-ai.

A price that nobody knows stays unknown: nothing is guessed, and nothing counts as free by accident.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labwright.domain.errors import Invalid
from labwright.llm.model import Usage
from labwright.paths import CONFIG_FILE
from labwright.settings import load_table

if TYPE_CHECKING:
    from labwright.llm.choice import Target

TABLE = "prices"
_KEYS = ("in", "out", "cache_read", "cache_write")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars a million tokens."""

    fresh: float
    out: float
    cache_read: float
    cache_write: float

    def cost(self, usage: Usage) -> float:
        fresh = usage.tokens_in - usage.cache_read - usage.cache_write
        dollars = (
            fresh * self.fresh
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
            + usage.tokens_out * self.out
        )
        return dollars / _MILLION


def load_prices(project: Path) -> dict[str, Prices]:
    return {
        name: _from_table(f'{project / CONFIG_FILE}: [{TABLE}."{name}"]', table)
        for name, table in load_table(project, TABLE).items()
    }


def _from_table(where: str, table: object) -> Prices:
    if not isinstance(table, dict) or "in" not in table or "out" not in table:
        raise Invalid(f"{where} needs in and out.", hint="In US dollars a million tokens: { in = 3.0, out = 15.0 }")
    for key, value in table.items():
        if key not in _KEYS:
            raise Invalid(f"{where}: unknown {key}.", hint=f"Known: {', '.join(_KEYS)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MILLION:
            raise Invalid(f"{where}: {key} must be a number of US dollars a million tokens.")
    fresh = float(table["in"])
    return Prices(
        fresh=fresh,
        out=float(table["out"]),
        cache_read=float(table.get("cache_read", fresh)),
        cache_write=float(table.get("cache_write", fresh)),
    )


def cost_of(target: Target, usage: Usage) -> float | None:
    if target.prices is not None:
        return target.prices.cost(usage)
    return _by_the_list(target, usage)


def is_priced(target: Target) -> bool:
    return cost_of(target, Usage(tokens_in=_MILLION, tokens_out=_MILLION)) is not None


def _by_the_list(target: Target, usage: Usage) -> float | None:
    """The list is looked up by the address that is really called: a proxy under a known name has its own prices."""
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        return float(calc_price(counted, target.model, provider_api_url=target.endpoint.base_url).total_price)
    except LookupError:
        return None
