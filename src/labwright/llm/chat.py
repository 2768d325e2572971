"""What a conversation asks of a model, and the pieces in which the answer arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from labwright.llm.model import Tier, Usage

Role = Literal["user", "assistant", "tool"]
Why = Literal["end", "calls", "length"]


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
    malformed: str = ""  # what the model sent where it was no JSON object; not to be carried out, but answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""  # which call a tool message answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tier: Tier = Tier.DEFAULT
    max_tokens: int | None = None
    must_call: bool = False  # no words of its own: the answer has to be a call of one of the tools


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A call comes whole, once the answer has ended: half of one is never seen."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class EndPiece:
    """Always the last, and there is always one: an answer without it was cut off, and that is an error."""

    usage: Usage
    model: str
    why: Why


ChatPiece = TextPiece | ThinkingPiece | CallPiece | EndPiece


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """As people are shown it."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        """Closing it before its end stops the answer at once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer, for those who have no use for pieces."""

    text: str
    calls: tuple[ToolCall, ...]
    end: EndPiece

    @property
    def message(self) -> Message:
        """As it stands in the conversation that goes on."""
        return Message(role="assistant", text=self.text, calls=self.calls)


async def whole(model: ChatModel, request: ChatRequest) -> Reply:
    async with aclosing(model.stream(request)) as stream:
        pieces = [piece async for piece in stream]
    return Reply(
        text="".join(piece.text for piece in pieces if isinstance(piece, TextPiece)),
        calls=tuple(piece.call for piece in pieces if isinstance(piece, CallPiece)),
        end=next(piece for piece in pieces if isinstance(piece, EndPiece)),
    )
