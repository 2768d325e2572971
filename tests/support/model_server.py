"""Fake providers of language models: real HTTP in the formats of Anthropic and OpenAI, with scripted answers.

A turn says how one request is answered, or computes that from the request. Requests after the last turn get the last
turn again. Point a server under test here with `LABWRIGHT_MODEL=openai:x` and `OPENAI_BASE_URL`, or with the same
variables for Anthropic.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Turn:
    text: tuple[str, ...] = ()  # the text, in these pieces
    thinking: str = ""
    calls: tuple[tuple[str, str], ...] = ()  # a tool's name, and its arguments as text: valid JSON or not
    stop: str = ""  # the stop reason in the provider's own word; derived by default
    tokens: tuple[int, int] = (100, 20)
    cached: int = 0  # input tokens read from a cache
    status: int = 200
    error: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # close the connection after this many events
    cut_cleanly: bool = False  # end normally instead of breaking the connection
    hang_after: int | None = None  # stay silent after this many events, until the test ends
    drip_seconds: float = 0.0  # delay between two bytes
    garble: bool = False  # send an event that is not JSON
    fails: bool = False  # end with an event that reports an overload


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Json


Script = Turn | Callable[[Asked], Turn]


class ModelServer:
    """One fake provider."""

    def __init__(self, events: Callable[[Turn], list[str]], turns: list[Script]) -> None:
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self._events = events
        self._turns = turns
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, asked: Asked) -> Turn:
        with self._lock:
            self.asked.append(asked)
            turn = self._turns[min(len(self.asked), len(self._turns)) - 1]
        return turn if isinstance(turn, Turn) else turn(asked)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(fake: ModelServer) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                turn = fake.take(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.close_connection = True
                if turn.status != 200:
                    self._refuse(turn)
                else:
                    self._say(turn)

            def _refuse(self, turn: Turn) -> None:
                data = json.dumps(turn.error).encode()
                self.send_response(turn.status)
                for name, value in {**turn.headers, "Content-Type": "application/json"}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _say(self, turn: Turn) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                if not turn.cut_cleanly:
                    self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for number, event in enumerate(fake._events(turn)):
                    if number == turn.cut_after:
                        self.connection.shutdown(socket.SHUT_RDWR)
                        return
                    if number == turn.hang_after:
                        fake.over.wait(60)
                        return
                    self._write(turn, event)
                if not turn.cut_cleanly:
                    self.wfile.write(b"0\r\n\r\n")

            def _write(self, turn: Turn, event: str) -> None:
                steps = event if turn.drip_seconds else (event,)
                for step in steps:
                    data = step.encode()
                    if turn.drip_seconds and fake.over.wait(turn.drip_seconds):
                        return
                    self.wfile.write(data if turn.cut_cleanly else b"%x\r\n%s\r\n" % (len(data), data))

            def log_message(self, *_words: object) -> None:
                pass

        return Handler


def _anthropic_events(turn: Turn) -> list[str]:
    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    tokens_in, tokens_out = turn.tokens
    usage = {
        "input_tokens": tokens_in - turn.cached,
        "output_tokens": 1,
        "cache_read_input_tokens": turn.cached,
        "cache_creation_input_tokens": 0,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []}
    found = [
        event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage}),
        event("ping"),
    ]
    blocks: list[tuple[Json, list[Json]]] = []
    if turn.thinking:
        start = {"type": "thinking", "thinking": "", "signature": ""}
        blocks.append((start, [{"type": "thinking_delta", "thinking": turn.thinking}]))
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in turn.text]))
    for number, (name, arguments) in enumerate(turn.calls):
        half = len(arguments) // 2
        start = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        parts = [{"type": "input_json_delta", "partial_json": part} for part in (arguments[:half], arguments[half:])]
        blocks.append((start, parts))
    for index, (start, deltas) in enumerate(blocks):
        found.append(event("content_block_start", index=index, content_block=start))
        found += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        found.append(event("content_block_stop", index=index))
    if turn.garble:
        found.append("event: content_block_delta\ndata: {not json\n\n")
    if turn.fails:
        return [*found, event("error", error={"type": "overloaded_error", "message": "Overloaded"})]
    stop = turn.stop or ("tool_use" if turn.calls else "end_turn")
    found.append(
        event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": tokens_out})
    )
    return [*found, event("message_stop")]


def _openai_events(turn: Turn) -> list[str]:
    def event(delta: Json | None, stop: str | None = None, **more: Any) -> str:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": stop}]
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
        return f"data: {json.dumps({**base, 'choices': choices, **more})}\n\n"

    found = [event({"role": "assistant", "content": ""})]
    if turn.thinking:
        found.append(event({"reasoning_content": turn.thinking}))
    found += [event({"content": piece}) for piece in turn.text]
    for index, (name, arguments) in enumerate(turn.calls):
        half = len(arguments) // 2
        head = {"index": index, "id": f"call_{index}", "type": "function"}
        found.append(event({"tool_calls": [{**head, "function": {"name": name, "arguments": arguments[:half]}}]}))
        found.append(event({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}))
    if turn.garble:
        found.append("data: {not json\n\n")
    if turn.fails:
        error = {"type": "server_error", "code": "server_error", "message": "Overloaded"}
        return [*found, f"data: {json.dumps({'error': error})}\n\n"]
    found.append(event({}, turn.stop or ("tool_calls" if turn.calls else "stop")))
    tokens_in, tokens_out = turn.tokens
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    found.append(event(None, usage={**usage, "prompt_tokens_details": {"cached_tokens": turn.cached}}))
    return [*found, "data: [DONE]\n\n"]


_EVENTS = {"anthropic": _anthropic_events, "openai": _openai_events}


@contextmanager
def model_server(wire: str, *turns: Script) -> Iterator[ModelServer]:
    made = ModelServer(_EVENTS[wire], list(turns) or [Turn(text=("Hello",))])
    try:
        yield made
    finally:
        made.close()
