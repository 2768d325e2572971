"""OpenAI's wire by its SDK: chat completions, as very many servers speak them. Imported like `sdk_anthropic.py`."""

from __future__ import annotations

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from labwright.llm.choice import Target
from labwright.llm.endpoints import KNOWN

LONGEST_ANSWER = 0
CACHED = ModelSettings(cache=True)
# An answer that just stops was cut: it must not pass for a whole one.
_ANY = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
# Servers other than OpenAI's own know the older name of the limit, and not all know strict schemas.
_COMPATIBLE = OpenAIModelProfile(
    openai_chat_supports_max_completion_tokens=False, openai_supports_strict_tool_definition=False
)


def make_model(target: Target, key: str, client: httpx2.AsyncClient) -> Model:
    endpoint = target.endpoint
    if endpoint == KNOWN["openai"]:
        own = OpenAIProvider(api_key=key, base_url=endpoint.base_url, http_client=client)
        return OpenAIChatModel(target.model, provider=own, profile=_ANY)
    compatible = OpenAICompatibleProvider(
        endpoint.name, base_url=endpoint.base_url, api_key=key, http_client=client, profile=_COMPATIBLE
    )
    return OpenAIChatModel(target.model, provider=compatible, profile=_ANY)
