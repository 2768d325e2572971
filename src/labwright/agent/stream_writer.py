"""A model's answer as it arrives: written to the log in few pieces, and returned whole at the end."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from labwright.agent.conversation.turn_log import TurnLog
from labwright.domain.session import PieceKind
from labwright.llm.chat import CallPiece, ChatPiece, EndPiece, TextPiece, ThinkingPiece, ToolCall
from labwright.llm.faults import AnswerCut
from labwright.llm.model import Usage
from labwright.store.sessions import NewPiece

_GATHER_SECONDS = 0.1
_GATHER_CHARACTERS = 2000


@dataclass(slots=True, kw_only=True)
class ModelMessage:
    text: str
    calls: list[ToolCall]
    model: str
    usage: Usage
    why: str

    def rename_calls(self, prefix: str) -> None:
        """Give calls ids that are unique in the session: an approval is for one call, and providers may repeat ids."""
        self.calls = [replace(call, id=f"{prefix}_{place}") for place, call in enumerate(self.calls)]

    def to_dict(self, marks: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "text": self.text,
            "calls": [asdict(call) for call in self.calls],
            "marks": marks,
            "model": self.model,
            "usage": asdict(self.usage),
        }


@dataclass(slots=True)
class StreamWriter:
    """Writes about ten pieces a second into the log, however fast the model is."""

    log: TurnLog
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    end: EndPiece | None = None
    waiting: list[tuple[PieceKind, str]] = field(default_factory=list)
    written_at: float = 0.0

    def take(self, piece: ChatPiece) -> None:
        if isinstance(piece, TextPiece):
            self.text.append(piece.text)
            self.waiting.append((PieceKind.TEXT, piece.text))
        elif isinstance(piece, ThinkingPiece):
            self.waiting.append((PieceKind.THINKING, piece.text))
        elif isinstance(piece, CallPiece):
            self.calls.append(piece.call)
        else:
            self.end = piece
        length = sum(len(text) for _, text in self.waiting)
        if time.monotonic() - self.written_at >= _GATHER_SECONDS or length >= _GATHER_CHARACTERS:
            self._flush()

    def add(self, text: str) -> None:
        """Add Labwright's own text after the model's."""
        if text:
            self.text.append(text)
            self.waiting.append((PieceKind.TEXT, text))

    def done(self) -> ModelMessage:
        self._flush()
        if self.end is None:
            raise AnswerCut
        return ModelMessage(
            text="".join(self.text), calls=self.calls, model=self.end.model, usage=self.end.usage, why=self.end.why
        )

    def _flush(self) -> None:
        gathered: list[NewPiece] = []
        for kind, text in self.waiting:
            if gathered and gathered[-1][0] is kind:
                gathered[-1][1]["text"] += text
            else:
                gathered.append((kind, {"text": text}))
        self.waiting.clear()
        if gathered:
            self.log.write(*gathered)
            self.written_at = time.monotonic()
