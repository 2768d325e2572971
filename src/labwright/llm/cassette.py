"""Record a model's replies and replay them, so that tests and rehearsals can use real replies without the model.

A cassette is a JSON file that people can read and edit. Structured answers use the chat too, so it has both kinds of
calls. It has only the conversation: keys and headers do not reach this layer.
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
_REMOVED = "[secret]"
CassetteEntry = dict[str, Any]


class NotOnCassette(NotFound):
    """The cassette has no reply for this request."""

    code = "not_on_cassette"


class RecordingChat:
    """Pass every request on and record every complete reply."""

    def __init__(self, chat: ChatModel, path: Path, secrets: Iterable[str] = ()) -> None:
        """`secrets` are removed from the file, in case a tool showed one to the model."""
        self._chat = chat
        self._secrets = [secret for secret in secrets if secret]
        self._path = path
        self._entries: list[CassetteEntry] = read_cassette(path) if path.exists() else []

    @property
    def name(self) -> str:
        return self._chat.name

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        said: list[ChatPiece] = []
        async with aclosing(self._chat.stream(request)) as pieces:
            async for piece in pieces:
                said.append(piece)
                yield piece
        self._entries.append({"asked": asdict(request), "said": [_to_dict(piece) for piece in said]})
        text = json.dumps({"cassette": _VERSION, "entries": self._entries}, ensure_ascii=False, indent=1)
        for secret in self._secrets:
            text = text.replace(secret, _REMOVED)
        await asyncio.to_thread(write_whole, self._path, f"{text}\n".encode())


class ReplayingChat:
    """Answer each request with its recorded reply. A repeated request gets the next recorded one."""

    name = "cassette"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left: dict[str, list[CassetteEntry]] = defaultdict(list)
        for entry in read_cassette(path):
            self._left[_question(entry["asked"])].append(entry)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        left = self._left[_question(asdict(request))]
        if not left:
            raise self._missing(request)
        for piece in left.pop(0)["said"]:
            yield _from_dict(piece)
            await asyncio.sleep(0)

    def _missing(self, request: ChatRequest) -> NotOnCassette:
        last = request.messages[-1].text[:120] if request.messages else ""
        return NotOnCassette(
            f"{self._path} has no reply left for a request with {len(request.messages)} messages, the last {last!r}.",
            hint="Record it again with RecordingChat: a prompt, a tool or the order of the requests has changed.",
        )


def read_cassette(path: Path) -> list[CassetteEntry]:
    try:
        found = json.loads(path.read_bytes())
        entries: list[CassetteEntry] = found["entries"] if found["cassette"] == _VERSION else []
        for entry in entries:
            _question(entry["asked"])
            for piece in entry["said"]:
                _from_dict(piece)
    except FileNotFoundError:
        raise NotOnCassette(f"There is no cassette {path}.", hint="Record it first with RecordingChat.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Invalid(f"{path} is not a cassette: {error!r}.", hint="Record it again.") from None
    return entries


def _question(asked: dict[str, Any]) -> str:
    """Return a canonical key of everything that may change the reply."""
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
