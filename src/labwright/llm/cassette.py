"""Record what a model said, and play it back: tests and rehearsals with a real model's words, without the model.

A cassette is a JSON file that people can read and edit. Both kinds of calls end up in it, since structured answers go
over the chat too. Only the conversation is in it: keys and headers never come this far up.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labwright.domain.errors import Invalid, NotFound
from labwright.files import write_whole
from labwright.llm.chat import (
    CallPiece,
    ChatModel,
    ChatPiece,
    ChatRequest,
    EndPiece,
    TextPiece,
    ThinkingPiece,
    ToolCall,
)
from labwright.llm.model import Usage

_VERSION = 1
_BLOT = "[secret]"
Entry = dict[str, Any]


class NotOnCassette(NotFound):
    """The cassette holds no answer for this question."""

    code = "not_on_cassette"


class RecordingChat:
    """Passes everything on, and keeps every answer that came to its end."""

    def __init__(self, chat: ChatModel, path: Path, secrets: Iterable[str] = ()) -> None:
        """`secrets` are blotted out wherever they stand, should a tool have shown one to the model."""
        self._chat = chat
        self._secrets = [secret for secret in secrets if secret]
        self._path = path
        self._entries: list[Entry] = read_cassette(path) if path.exists() else []

    @property
    def name(self) -> str:
        return self._chat.name

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        said: list[ChatPiece] = []
        async with aclosing(self._chat.stream(request)) as pieces:
            async for piece in pieces:
                said.append(piece)
                yield piece
        self._entries.append({"asked": _asked(request), "said": [_to_dict(piece) for piece in said]})
        text = json.dumps({"cassette": _VERSION, "entries": self._entries}, ensure_ascii=False, indent=1)
        for secret in self._secrets:
            text = text.replace(secret, _BLOT)
        await asyncio.to_thread(write_whole, self._path, f"{text}\n".encode())


class ReplayingChat:
    """Answers the same question with the same words; asked again, with those of the next time it was asked."""

    name = "cassette"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left: dict[str, list[Entry]] = defaultdict(list)
        for entry in read_cassette(path):
            self._left[_question(entry["asked"])].append(entry)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        left = self._left[_question(_asked(request))]
        if not left:
            raise self._missing(request)
        for piece in left.pop(0)["said"]:
            yield _from_dict(piece)
            await asyncio.sleep(0)

    def _missing(self, request: ChatRequest) -> NotOnCassette:
        last = request.messages[-1].text[:120] if request.messages else ""
        return NotOnCassette(
            f"{self._path} has no answer left for a question of {len(request.messages)} messages, the last {last!r}.",
            hint="Record it anew with RecordingChat: a prompt, a tool or the order of the questions has changed.",
        )


def read_cassette(path: Path) -> list[Entry]:
    try:
        found = json.loads(path.read_bytes())
        entries: list[Entry] = found["entries"] if found["cassette"] == _VERSION else []
        for entry in entries:
            _question(entry["asked"])
            for piece in entry["said"]:
                _from_dict(piece)
    except FileNotFoundError:
        raise NotOnCassette(f"There is no cassette {path}.", hint="Record it first with RecordingChat.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Invalid(f"{path} is not a cassette: {error!r}.", hint="Record it anew.") from None
    return entries


def _asked(request: ChatRequest) -> dict[str, Any]:
    return asdict(request)


def _question(asked: dict[str, Any]) -> str:
    """All that may change the answer, in one form."""
    return json.dumps(asked, sort_keys=True)


def _to_dict(piece: ChatPiece) -> dict[str, Any]:
    match piece:
        case TextPiece(text):
            return {"text": text}
        case ThinkingPiece(text):
            return {"thinking": text}
        case CallPiece(call):
            return {"call": asdict(call)}
        case EndPiece(usage, model, why):
            return {"end": {"usage": asdict(usage), "model": model, "why": why}}


def _from_dict(found: dict[str, Any]) -> ChatPiece:
    match found:
        case {"text": str(text)}:
            return TextPiece(text)
        case {"thinking": str(text)}:
            return ThinkingPiece(text)
        case {"call": dict(call)}:
            return CallPiece(ToolCall(**call))
        case {"end": {"usage": dict(usage), "model": str(model), "why": ("end" | "calls" | "length") as why}}:
            return EndPiece(Usage(**usage), model, why)
    raise ValueError(f"unknown piece {sorted(found)}")
