"""One request to a model through its SDK. SDK messages and errors are translated to our own and back.

This is the only module that imports a language model's SDK. That takes seconds, so it is imported on first use.
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from itertools import groupby

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    FinishReason,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model as SdkModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from labwright.llm import faults
from labwright.llm.chat import (
    CallPiece,
    ChatMessage,
    ChatPiece,
    ChatRequest,
    EndPiece,
    StopReason,
    TextPiece,
    ThinkingPiece,
    ToolCall,
)
from labwright.llm.choice import Target
from labwright.llm.endpoints import KNOWN, Wire
from labwright.llm.model import Usage
from labwright.llm.received import CharacterJoiner, excerpt, read_object, valid_tool_name

_CONNECT_SECONDS = 10.0
_NO_KEY = "none-needed"  # the SDKs require a key, even for servers that need none
_LONGEST_MESSAGE = 300  # characters of a provider's error text
_SHORTEST_KEY = 8
_LONGEST_REPLY = 1_000_000  # characters; no useful reply comes near it
_ANTHROPIC_MAX_TOKENS = 16_000  # the Anthropic API requires a limit
_STOP_REASONS: dict[FinishReason, StopReason] = {"stop": "end", "tool_call": "calls", "length": "length"}
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
    target: Target,
    key: str,
    request: ChatRequest,
    *,
    silence_seconds: float,
    answer_seconds: float,
    max_tokens: int,
) -> AsyncGenerator[ChatPiece, None]:
    """Make one attempt. It has its own connection, so closing the generator ends the call in any event loop."""
    with _translated_faults(target, key):
        timeout = httpx2.Timeout(silence_seconds, connect=min(_CONNECT_SECONDS, silence_seconds))
        async with (
            # No redirects: the key goes only to the configured address.
            httpx2.AsyncClient(timeout=timeout, verify=_certificates(), follow_redirects=False) as client,
            model_request_stream(
                _make_model(target, key or _NO_KEY, client),
                sdk_messages(request),
                model_settings=_settings(target.endpoint.wire, request, silence_seconds, answer_seconds, max_tokens),
                model_request_parameters=_parameters(request),
                instrument=False,
            ) as stream,
        ):
            text = StreamedText()
            async for event in stream:
                for piece in text.pieces(event):
                    yield piece
            for piece in text.rest():
                yield piece
            response = stream.get()
            why = _stop_reason(response)
            for part in response.parts:
                if isinstance(part, ToolCallPart):
                    yield CallPiece(_tool_call(part))
            yield EndPiece(usage=_usage(stream.usage), model=target.name, why=why)


@cache
def _certificates() -> ssl.SSLContext:
    """Load the certificates once: it takes tens of milliseconds."""
    return httpx2.create_ssl_context()


def load(wire: Wire) -> None:
    """Import the SDK for this wire format. Blocks for seconds the first time."""
    _certificates()
    if wire is Wire.ANTHROPIC:
        import pydantic_ai.models.anthropic
    else:
        import pydantic_ai.models.openai  # noqa: F401


def _make_model(target: Target, key: str, client: httpx2.AsyncClient) -> SdkModel:
    if target.endpoint.wire is Wire.ANTHROPIC:
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        provider = AnthropicProvider(api_key=key, base_url=target.endpoint.base_url, http_client=client)
        return AnthropicModel(target.model, provider=provider)
    return _make_openai_model(target, key, client)


def _make_openai_model(target: Target, key: str, client: httpx2.AsyncClient) -> SdkModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    endpoint = target.endpoint
    # A stream that stops without a finish reason was cut off and must not count as complete.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if endpoint == KNOWN["openai"]:
        own = OpenAIProvider(api_key=key, base_url=endpoint.base_url, http_client=client)
        return OpenAIChatModel(target.model, provider=own, profile=profile)
    compatible = OpenAICompatibleProvider(
        endpoint.name,
        base_url=endpoint.base_url,
        api_key=key,
        http_client=client,
        # Other servers know the limit by its older name, and not all support strict schemas.
        profile=OpenAIModelProfile(
            openai_chat_supports_max_completion_tokens=False, openai_supports_strict_tool_definition=False
        ),
    )
    return OpenAIChatModel(target.model, provider=compatible, profile=profile)


def _settings(
    wire: Wire, request: ChatRequest, silence_seconds: float, answer_seconds: float, max_tokens: int
) -> ModelSettings | None:
    # We retry ourselves. The SDK's own retries would multiply with ours.
    found = ModelSettings(timeout=silence_seconds, request_timeout=answer_seconds, max_retries=0)
    default = _ANTHROPIC_MAX_TOKENS if wire is Wire.ANTHROPIC else 0
    if limit := request.max_tokens or max_tokens or default:
        found["max_tokens"] = limit
    # Caching costs more than it saves for a request that is sent only once.
    return found if request.must_call else merge_model_settings(found, _cache_settings(wire))


def _cache_settings(wire: Wire) -> ModelSettings:
    if wire is Wire.OPENAI:
        return ModelSettings(cache=True)
    from pydantic_ai.models.anthropic import AnthropicModelSettings

    # Marks in the blocks themselves: gateways understand these too.
    return AnthropicModelSettings(
        anthropic_cache_instructions=True, anthropic_cache_tool_definitions=True, anthropic_cache_messages=True
    )


@contextlib.contextmanager
def _translated_faults(target: Target, key: str) -> Iterator[None]:
    try:
        yield
    except tuple(kind for kind, _fault in _FAULTS) as error:
        kind = next(fault for kind, fault in _FAULTS if isinstance(error, kind))
        said = "" if kind is faults.KeyRefused else _error_text(error)  # some providers repeat the key in this text
        if len(key) >= _SHORTEST_KEY:  # a shorter "key" may be an ordinary word
            said = said.replace(key, "…")
        wait = getattr(error, "retry_after", None) or 0.0
        raise kind(model=target.name, said=said, wait_seconds=wait) from None


def _error_text(error: Exception) -> str:
    """Return the provider's own text on one line. It is shown, never followed."""
    body = getattr(error, "body", None)
    while isinstance(body, dict):
        body = body.get("message") or body.get("error")
    first: BaseException = error
    while isinstance(error, exceptions.ModelConnectionError) and first.__cause__:
        first = first.__cause__  # the SDK's own message says only that the connection failed
    text = str(body or first) or type(first).__name__
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"


def _parameters(request: ChatRequest) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=spec.name, description=spec.description, parameters_json_schema=spec.schema)
        for spec in request.tools
    ]
    system = [InstructionPart(content=request.system)] if request.system else None
    if request.must_call:
        return ModelRequestParameters(
            output_mode="tool", output_tools=tools, allow_text_output=False, instruction_parts=system
        )
    return ModelRequestParameters(function_tools=tools, instruction_parts=system)


def sdk_messages(request: ChatRequest) -> list[ModelMessage]:
    """Join neighbouring messages of one side: providers require the two sides to alternate."""
    names = {call.id: call.name for message in request.messages for call in message.calls}
    sides = groupby(request.messages, lambda message: message.role == "assistant")
    return [
        ModelResponse(parts=[part for message in side for part in _assistant_parts(message)])
        if is_assistant
        else ModelRequest(parts=[_user_part(message, names) for message in side])
        for is_assistant, side in sides
    ]


def _user_part(message: ChatMessage, names: dict[str, str]) -> UserPromptPart | ToolReturnPart:
    if message.role == "user":
        return UserPromptPart(content=message.text)
    return ToolReturnPart(
        tool_name=names.get(message.call_id, "unknown"), content=message.text, tool_call_id=message.call_id
    )


def _assistant_parts(message: ChatMessage) -> Iterator[ModelResponsePart]:
    if message.text:
        yield TextPart(content=message.text)
    for call in message.calls:
        yield ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)


class StreamedText:
    """Turn stream events into text and thinking pieces. Tool calls are read from the complete response."""

    def __init__(self) -> None:
        self._text, self._thinking = CharacterJoiner(), CharacterJoiner()
        self._length = 0

    def pieces(self, event: ModelResponseStreamEvent) -> Iterator[TextPiece | ThinkingPiece]:
        if not isinstance(event, PartStartEvent | PartDeltaEvent):
            return
        match event.part if isinstance(event, PartStartEvent) else event.delta:
            case TextPart(content=text) | TextPartDelta(content_delta=text):
                self._count(text)
                if complete := self._text.add(text):
                    yield TextPiece(complete)
            case ThinkingPart(content=text) | ThinkingPartDelta(content_delta=str(text)):
                self._count(text)
                if complete := self._thinking.add(text):
                    yield ThinkingPiece(complete)

    def _count(self, text: str) -> None:
        self._length += len(text)
        if self._length > _LONGEST_REPLY:
            raise faults.AnswerCut  # we cut it off

    def rest(self) -> Iterator[TextPiece | ThinkingPiece]:
        """Yield half a character that nothing followed."""
        if thinking := self._thinking.rest():
            yield ThinkingPiece(thinking)
        if text := self._text.rest():
            yield TextPiece(text)


def _tool_call(part: ToolCallPart) -> ToolCall:
    raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    name, arguments = valid_tool_name(part.tool_name), read_object(raw or "{}")
    if arguments is None:
        return ToolCall(id=part.tool_call_id, name=name, malformed=excerpt(raw))
    return ToolCall(id=part.tool_call_id, name=name, arguments=arguments)


def _stop_reason(response: ModelResponse) -> StopReason:
    if response.finish_reason == "content_filter":
        raise faults.AnswerWithheld
    if response.finish_reason not in _STOP_REASONS:
        raise faults.AnswerCut
    if _STOP_REASONS[response.finish_reason] == "length":
        return "length"
    return "calls" if response.tool_calls else "end"  # not every server reports the right reason


def _usage(usage: RequestUsage) -> Usage:
    return Usage(
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
    )
