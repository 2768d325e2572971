"""One question to a model by its SDK, and every fault in our own words.

`sdk*.py` are the only imports of a language model's SDK. They take seconds, so they are loaded when a model is asked.
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.settings import ModelSettings, merge_model_settings

from labwright.llm import faults
from labwright.llm.chat import ChatPiece, ChatRequest, EndPiece
from labwright.llm.choice import Target
from labwright.llm.endpoints import Wire
from labwright.llm.patience import Patience
from labwright.llm.sdk_messages import Words, calls_of, messages, parameters, usage_of, why_of

_CONNECT_SECONDS = 10.0
_NO_KEY = "none-needed"  # the SDKs want one, also for a server that does not
_MOST_WORDS = 300
_SHORTEST_KEY = 8
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
    sdk = load(target.endpoint.wire)
    with _in_our_words(target, key):
        async with (
            _client(patience) as client,
            model_request_stream(
                sdk.make_model(target, key or _NO_KEY, client),
                messages(request),
                model_settings=_settings(sdk, request, patience, max_tokens),
                model_request_parameters=parameters(request),
                instrument=False,
            ) as stream,
        ):
            words = Words()
            async for event in stream:
                for piece in words.pieces(event):
                    yield piece
            for piece in words.rest():
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


def load(wire: Wire) -> ModuleType:
    """Blocks for seconds the first time."""
    _trust()
    return import_module(f"labwright.llm.sdk_{wire}")


def _settings(sdk: ModuleType, request: ChatRequest, patience: Patience, max_tokens: int) -> ModelSettings | None:
    # Trying again is our own business: the SDK's would multiply with it.
    found = ModelSettings(timeout=patience.silence_seconds, request_timeout=patience.answer_seconds, max_retries=0)
    if longest := request.max_tokens or max_tokens or sdk.LONGEST_ANSWER:
        found["max_tokens"] = longest
    # What is asked only once would cost more to write into a cache than it saves.
    return found if request.must_call else merge_model_settings(found, sdk.CACHED)


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
        raise kind(model=target.name, said=_without(key, said), wait_seconds=wait) from None


def _without(key: str, words: str) -> str:
    """Some providers repeat it. A word of few letters is no key, and may stand in any sentence."""
    return words.replace(key, "…") if len(key) >= _SHORTEST_KEY else words


def _said(error: Exception) -> str:
    """The provider's own words, on one line: they are shown, never followed."""
    body = getattr(error, "body", None)
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    first: BaseException = error
    while isinstance(error, exceptions.ModelConnectionError) and first.__cause__:
        first = first.__cause__  # the SDK says no more than that there was one
    text = str(body or first) or type(first).__name__
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]}…"
