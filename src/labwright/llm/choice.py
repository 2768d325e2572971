"""Which model answers which tier: `LABWRIGHT_MODEL` or `labwright.toml`. With none configured there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.llm.endpoints import Endpoint, load_endpoints
from labwright.llm.model import Tier
from labwright.llm.prices import Prices, load_prices
from labwright.settings import Settings, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One model at one endpoint."""

    endpoint: Endpoint
    model: str
    prices: Prices | None = None  # as the user gave them; else the public list is asked

    @property
    def name(self) -> str:
        return f"{self.endpoint.name}:{self.model}"


Choice = Mapping[Tier, Target]
_NO_MODEL = ("", "offline")  # the word, so that a variable can switch off what the file sets


def load_choice(project: Path, settings: Settings, environ: Mapping[str, str] = os.environ) -> Choice:
    """Empty where no model is configured: then nothing leaves the machine, whatever keys lie about."""
    endpoints = load_endpoints(project, environ)
    prices = load_prices(project)
    if settings.model.strip() in _NO_MODEL:
        _refuse_tier_alone(settings)
        return {}
    wanted = {Tier.CHEAP: "model_cheap", Tier.DEFAULT: "model", Tier.HEAVY: "model_heavy"}
    chosen = {tier: setting if getattr(settings, setting) else "model" for tier, setting in wanted.items()}
    return {tier: _target(setting, getattr(settings, setting), endpoints, prices) for tier, setting in chosen.items()}


def _refuse_tier_alone(settings: Settings) -> None:
    for setting in ("model_cheap", "model_heavy"):
        if getattr(settings, setting):
            raise Invalid(f"{setting} is set and model is not.", hint="Set model too: it answers most questions.")


def _target(setting: str, text: str, endpoints: Mapping[str, Endpoint], prices: Mapping[str, Prices]) -> Target:
    provider, _, model = text.strip().partition(":")
    if not model or not text.isprintable():
        set_by = f"LABWRIGHT_{setting.upper()} or {setting} in labwright.toml sets it"
        hint = f"Write provider:model, for example anthropic:claude-sonnet-5-5 or ollama:qwen3:8b; {set_by}."
        raise Invalid(f"{setting} is {text[:80]!r}, which names no provider and model.", hint=hint)
    if provider not in endpoints:
        near = nearest(provider, endpoints)
        known = f"Known: {', '.join(sorted(endpoints))}; more by [endpoints.NAME] in labwright.toml."
        hint = f"Did you mean {near}:{model}?" if near else known
        raise Invalid(f"{setting} names the provider {provider[:40]!r}, which is not known.", hint=hint)
    return Target(endpoint=endpoints[provider], model=model, prices=prices.get(text.strip()))
