"""Which model serves which tier, from `LABWRIGHT_MODEL` or `labwright.toml`, and what its calls cost.

Prices come from `labwright.toml`, else from the public list that pydantic-ai ships. An unknown price stays unknown:
it is never guessed and never counts as free.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.llm.endpoints import Endpoint, load_endpoints
from labwright.llm.model import Tier, Usage
from labwright.paths import CONFIG_FILE
from labwright.settings import Settings, load_table, nearest

PRICE_TABLE = "prices"
_PRICE_KEYS = ("in", "out", "cache_read", "cache_write")
_MILLION = 1_000_000
_NO_MODEL = ("", "offline")  # "offline" lets a variable switch off the model that the file sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One model at one endpoint."""

    endpoint: Endpoint
    model: str
    prices: Prices | None = None  # from labwright.toml; None: use the public list

    @property
    def name(self) -> str:
        return f"{self.endpoint.name}:{self.model}"


TierTargets = Mapping[Tier, Target]


def load_targets(project: Path, settings: Settings, environ: Mapping[str, str] = os.environ) -> TierTargets:
    """Return the model of each tier, or nothing if no model is configured. Keys alone never select a model."""
    endpoints = load_endpoints(project, environ)
    prices = load_prices(project)
    if settings.model.strip() in _NO_MODEL:
        for setting in ("model_cheap", "model_heavy"):
            if getattr(settings, setting):
                raise Invalid(f"{setting} is set but model is not.", hint="Set model as well: it serves most requests.")
        return {}
    of_tier = {Tier.CHEAP: "model_cheap", Tier.DEFAULT: "model", Tier.HEAVY: "model_heavy"}
    chosen = {tier: setting if getattr(settings, setting) else "model" for tier, setting in of_tier.items()}
    return {tier: _target(setting, getattr(settings, setting), endpoints, prices) for tier, setting in chosen.items()}


def _target(setting: str, text: str, endpoints: Mapping[str, Endpoint], prices: Mapping[str, Prices]) -> Target:
    provider, _, model = text.strip().partition(":")
    if not model or not text.isprintable():
        set_by = f"LABWRIGHT_{setting.upper()} or {setting} in labwright.toml sets it"
        hint = f"Write provider:model, for example anthropic:claude-sonnet-5-5 or ollama:qwen3:8b; {set_by}."
        raise Invalid(f"{setting} is {text[:80]!r}, which does not name a provider and a model.", hint=hint)
    if provider not in endpoints:
        near = nearest(provider, endpoints)
        known = f"Known: {', '.join(sorted(endpoints))}; add more with [endpoints.NAME] in labwright.toml."
        hint = f"Did you mean {near}:{model}?" if near else known
        raise Invalid(f"{setting} names an unknown provider: {provider[:40]!r}.", hint=hint)
    return Target(endpoint=endpoints[provider], model=model, prices=prices.get(text.strip()))


def load_prices(project: Path) -> dict[str, Prices]:
    return {
        name: _prices_from_table(f'{project / CONFIG_FILE}: [{PRICE_TABLE}."{name}"]', table)
        for name, table in load_table(project, PRICE_TABLE).items()
    }


def _prices_from_table(where: str, table: object) -> Prices:
    if not isinstance(table, dict) or "in" not in table or "out" not in table:
        raise Invalid(f"{where} needs in and out.", hint="In US dollars per million tokens: { in = 3.0, out = 15.0 }")
    for key, value in table.items():
        if key not in _PRICE_KEYS:
            raise Invalid(f"{where}: unknown key {key}.", hint=f"Known: {', '.join(_PRICE_KEYS)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MILLION:
            raise Invalid(f"{where}: {key} must be a number of US dollars per million tokens.")
    fresh = float(table["in"])
    return Prices(
        fresh=fresh,
        out=float(table["out"]),
        cache_read=float(table.get("cache_read", fresh)),
        cache_write=float(table.get("cache_write", fresh)),
    )


def cost_of(target: Target, usage: Usage) -> float | None:
    """Return the cost in US dollars, or None if the price is unknown."""
    if target.prices is not None:
        return target.prices.cost(usage)
    from genai_prices import Usage as ListedUsage
    from genai_prices import calc_price

    listed = ListedUsage(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        # Look up by the address that is called: a proxy under a known name has its own prices.
        return float(calc_price(listed, target.model, provider_api_url=target.endpoint.base_url).total_price)
    except LookupError:
        return None


def is_priced(target: Target) -> bool:
    return cost_of(target, Usage(tokens_in=_MILLION, tokens_out=_MILLION)) is not None
