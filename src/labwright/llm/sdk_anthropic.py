"""Anthropic's wire by its SDK. Imported with `sdk.py`, when a model that speaks it is first asked."""

from __future__ import annotations

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from labwright.llm.choice import Target

LONGEST_ANSWER = 16_000  # this wire wants a number
# Marks in the blocks themselves: gateways understand these, too.
CACHED: ModelSettings = AnthropicModelSettings(
    anthropic_cache_instructions=True, anthropic_cache_tool_definitions=True, anthropic_cache_messages=True
)


def make_model(target: Target, key: str, client: httpx2.AsyncClient) -> Model:
    provider = AnthropicProvider(api_key=key, base_url=target.endpoint.base_url, http_client=client)
    return AnthropicModel(target.model, provider=provider)
