"""The only import of a language model's SDK, with `sdk_messages.py`. It takes seconds: loaded when a model is asked."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Iterator
from functools import cache

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings, merge_model_settings

from labwright.llm import faults
from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece
from labwright.llm.choice import Target
from labwright.llm.endpoints import KNOWN, Wire
from labwright.llm.patience import Patience
from labwright.llm.sdk_messages import calls_of, messages, parameters, piece_of, usage_of, why_of

_CONNECT_SECONDS = 10.0
_NO_KEY = "none-needed"  # the SDKs want one, also for a server that does not
_LONGEST_ANSWER = 16_000  # where a provider wants a number and nobody gave one
_MOST_WORDS = 300
# An answer that just stops was cut: it must not pass for a whole one.
_OPENAI = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
# Servers other than OpenAI's own know the older name of the limit, and not all know strict schemas.
_COMPATIBLE = OpenAIModelProfile(
    openai_chat_supports_max_completion_tokens=False, openai_supports_strict_tool_definition=False
)
_FAULTS: list[tuple[type[Exception], type[faults.ModelFault]]] = [
    (exceptions.ModelRateLimitError, faults.RateLimited),
    (exceptions.ModelQuotaExceededError, faults.QuotaUsedUp),
    (exceptions.ModelUnavailableError, faults.Overloaded),
    (exceptions.ModelServerError, faults.Overloaded),
    (exceptions.ModelConnectionError, faults.Unreachable),
    (exceptions.ModelRequestTimeout, faults.TooSlow),
    (exceptions.ModelAuthenticationError, faults.KeyRefused),
    (exceptions.ModelNotFoundError, faults.NoSuchModel),
    (exceptions.ModelContextWindowExceededError, faults.ConversationTooLong),
    (exceptions.ModelRequestRejectedError, faults.Rejected),
    (exceptions.ContentFilterError, faults.AnswerWithheld),
    (exceptions.UnexpectedModelBehavior, faults.AnswerCut),
    (exceptions.ModelAPIError, faults.ModelFault),
    (exceptions.UserError, faults.Rejected),
    (json.JSONDecodeError, faults.AnswerCut),
    (httpx2.TimeoutException, faults.Unreachable),
    (httpx2.TransportError, faults.Unreachable),
]


async def pieces(
    target: Target, key: str, request: ChatRequest, patience: Patience, max_tokens: int
) -> AsyncGenerator[ChatPiece, None]:
    """One try. A connection of its own, so that closing the iterator ends the call at once, in any event loop."""
    with _in_our_words(target, key):
        async with (
            _client(patience) as client,
            model_request_stream(
                _model(target, key, client),
                messages(request),
                model_settings=_settings(target, request, patience, max_tokens),
                model_request_parameters=parameters(request),
                instrument=False,
            ) as stream,
        ):
            async for event in stream:
                if piece := piece_of(event):
                    yield piece
            response = stream.get()
            why = why_of(response)
            for call in calls_of(response):
                yield call
            yield EndPiece(usage=usage_of(stream.usage), model=target.name, why=why)


def _client(patience: Patience) -> httpx2.AsyncClient:
    """Without redirects: a key goes where it was meant for and nowhere else."""
    timeout = httpx2.Timeout(patience.silence_seconds, connect=min(_CONNECT_SECONDS, patience.silence_seconds))
    return httpx2.AsyncClient(timeout=timeout, verify=_trust(), follow_redirects=False)


@cache
def _trust() -> ssl.SSLContext:
    """Reading all certificates takes tens of milliseconds; once is enough."""
    return httpx2.create_ssl_context()


def _model(target: Target, key: str, client: httpx2.AsyncClient) -> Model:
    endpoint = target.endpoint
    key = key or _NO_KEY
    if endpoint.wire is Wire.ANTHROPIC:
        anthropic = AnthropicProvider(api_key=key, base_url=endpoint.base_url, http_client=client)
        return AnthropicModel(target.model, provider=anthropic)
    if endpoint == KNOWN["openai"]:
        own = OpenAIProvider(api_key=key, base_url=endpoint.base_url, http_client=client)
        return OpenAIChatModel(target.model, provider=own, profile=_OPENAI)
    compatible = OpenAICompatibleProvider(
        endpoint.name, base_url=endpoint.base_url, api_key=key, http_client=client, profile=_COMPATIBLE
    )
    return OpenAIChatModel(target.model, provider=compatible, profile=_OPENAI)


def _settings(target: Target, request: ChatRequest, patience: Patience, max_tokens: int) -> ModelSettings:
    # Trying again is our own business: the SDK's would multiply with it.
    common = ModelSettings(timeout=patience.silence_seconds, request_timeout=patience.answer_seconds, max_retries=0)
    is_anthropic = target.endpoint.wire is Wire.ANTHROPIC
    if longest := request.max_tokens or max_tokens or (_LONGEST_ANSWER if is_anthropic else 0):
        common["max_tokens"] = longest
    if request.must_call:
        return common  # asked once: writing it into a cache would cost more than it saves
    if not is_anthropic:
        common["cache"] = True
        return common
    cached = AnthropicModelSettings(
        anthropic_cache_instructions=True, anthropic_cache_tool_definitions=True, anthropic_cache_messages=True
    )
    return merge_model_settings(common, cached) or common


@contextlib.contextmanager
def _in_our_words(target: Target, key: str) -> Iterator[None]:
    try:
        yield
    except tuple(kind for kind, _fault in _FAULTS) as error:
        kind = next(fault for kind, fault in _FAULTS if isinstance(error, kind))
        said = _said(error)
        if kind is faults.KeyRefused:
            said = ""  # some providers repeat the key here
        wait = getattr(error, "retry_after", None) or 0.0
        raise kind(model=target.name, said=said.replace(key, "…") if key else said, wait_seconds=wait) from None


def _said(error: Exception) -> str:
    """The provider's own words, on one line: they are shown, never followed."""
    body = getattr(error, "body", None)
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    words = " ".join((str(body or error) or type(error).__name__).split())
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]}…"
