"""Our conversation in the SDK's words, and its answer in ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby

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
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from labwright.llm.chat import CallPiece, ChatRequest, Message, TextPiece, ThinkingPiece, ToolCall, ToolSpec, Why
from labwright.llm.faults import AnswerCut, AnswerWithheld
from labwright.llm.model import Usage
from labwright.llm.received import Characters, no_object, read_object, tool_name

_LONGEST_ANSWER = 1_000_000  # characters; none of use comes near it
_WHY: dict[FinishReason, Why] = {"stop": "end", "tool_call": "calls", "length": "length"}


def parameters(request: ChatRequest) -> ModelRequestParameters:
    tools = [_tool(spec) for spec in request.tools]
    system = [InstructionPart(content=request.system)] if request.system else None
    if request.must_call:
        return ModelRequestParameters(
            output_mode="tool", output_tools=tools, allow_text_output=False, instruction_parts=system
        )
    return ModelRequestParameters(function_tools=tools, instruction_parts=system)


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=spec.name, description=spec.description, parameters_json_schema=spec.schema)


def messages(request: ChatRequest) -> list[ModelMessage]:
    """What stands on one side between two turns of the other is one message: providers want them to alternate."""
    names = {call.id: call.name for message in request.messages for call in message.calls}
    sides = groupby(request.messages, lambda message: message.role == "assistant")
    return [
        ModelResponse(parts=[part for message in side for part in _answered(message)])
        if is_answer
        else ModelRequest(parts=[_asked(message, names) for message in side])
        for is_answer, side in sides
    ]


def _asked(message: Message, names: dict[str, str]) -> UserPromptPart | ToolReturnPart:
    if message.role == "user":
        return UserPromptPart(content=message.text)
    return ToolReturnPart(
        tool_name=names.get(message.call_id, "unknown"), content=message.text, tool_call_id=message.call_id
    )


def _answered(message: Message) -> Iterator[ModelResponsePart]:
    if message.text:
        yield TextPart(content=message.text)
    for call in message.calls:
        yield ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)


class Words:
    """Words as they come; calls are read from the whole answer."""

    def __init__(self) -> None:
        self._said, self._thought = Characters(), Characters()
        self._length = 0

    def pieces(self, event: ModelResponseStreamEvent) -> Iterator[TextPiece | ThinkingPiece]:
        if not isinstance(event, PartStartEvent | PartDeltaEvent):
            return
        match event.part if isinstance(event, PartStartEvent) else event.delta:
            case TextPart(content=text) | TextPartDelta(content_delta=text):
                self._count(text)
                if said := self._said.whole(text):
                    yield TextPiece(said)
            case ThinkingPart(content=text) | ThinkingPartDelta(content_delta=str(text)):
                self._count(text)
                if thought := self._thought.whole(text):
                    yield ThinkingPiece(thought)

    def _count(self, text: str) -> None:
        self._length += len(text)
        if self._length > _LONGEST_ANSWER:
            raise AnswerCut  # by us

    def rest(self) -> Iterator[TextPiece | ThinkingPiece]:
        """Half a character that nothing followed."""
        if thought := self._thought.rest():
            yield ThinkingPiece(thought)
        if said := self._said.rest():
            yield TextPiece(said)


def calls_of(response: ModelResponse) -> list[CallPiece]:
    return [CallPiece(_call(part)) for part in response.parts if isinstance(part, ToolCallPart)]


def _call(part: ToolCallPart) -> ToolCall:
    raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    name, arguments = tool_name(part.tool_name), read_object(raw or "{}")
    if arguments is None:
        return ToolCall(id=part.tool_call_id, name=name, malformed=no_object(raw))
    return ToolCall(id=part.tool_call_id, name=name, arguments=arguments)


def why_of(response: ModelResponse) -> Why:
    if response.finish_reason == "content_filter":
        raise AnswerWithheld
    if response.finish_reason not in _WHY:
        raise AnswerCut
    if _WHY[response.finish_reason] == "length":
        return "length"
    return "calls" if response.tool_calls else "end"  # not every server names the reason rightly


def usage_of(usage: RequestUsage) -> Usage:
    return Usage(
        tokens_in=usage.input_tokens,
        tokens_out=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
    )
