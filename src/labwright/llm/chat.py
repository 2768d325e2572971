"""The chat interface: a request with messages and tools, and the pieces in which a reply arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from labwright.llm.model import Tier, Usage

Role = Literal["user", "assistant", "tool"]
StopReason = Literal["end", "calls", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    name: str
    description: str
    schema: dict[str, Any]  # JSON Schema of the arguments, an object


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    malformed: str = ""  # the raw text if it is not a JSON object; such a call gets an error result and is not executed


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""  # the call that a tool message answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    tier: Tier = Tier.DEFAULT
    max_tokens: int | None = None
    must_call: bool = False  # the reply must call one of the tools and contain no other text


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A complete tool call. Calls arrive after the text, never in parts."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class EndPiece:
    """The last piece of every complete reply. A reply without it was cut off, which is an error."""

    usage: Usage
    model: str
    why: StopReason


ChatPiece = TextPiece | ThinkingPiece | CallPiece | EndPiece


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """The name shown to people."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        """Yield the pieces of the reply. Closing the generator stops the reply immediately."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete reply, for callers that do not stream."""

    text: str
    calls: tuple[ToolCall, ...]
    end: EndPiece

    @property
    def message(self) -> ChatMessage:
        """The reply as a message of the conversation."""
        return ChatMessage(role="assistant", text=self.text, calls=self.calls)


async def read_reply(model: ChatModel, request: ChatRequest) -> Reply:
    async with aclosing(model.stream(request)) as stream:
        pieces = [piece async for piece in stream]
    return Reply(
        text="".join(piece.text for piece in pieces if isinstance(piece, TextPiece)),
        calls=tuple(piece.call for piece in pieces if isinstance(piece, CallPiece)),
        end=next(piece for piece in pieces if isinstance(piece, EndPiece)),
    )
