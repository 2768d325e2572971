"""A real HTTP receiver for notifications, which can fail, hang or redirect."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str]]


class Receiver:
    def __init__(self, answer: Callable[[int], Answer]) -> None:
        self.got: list[tuple[str, dict[str, str], dict[str, Any]]] = []  # path, headers, body
        self.free = threading.Event()  # set when the test ends, so that hanging responses end too
        self._answer = answer
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, secret: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{secret}"

    def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.got.append((self.path, dict(self.headers), body))
                status, headers = receiver._answer(len(receiver.got))
                if status == 0:
                    receiver.free.wait(20)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_words: object) -> None:
                pass

        return Handler

    def close(self) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiver(answer: Callable[[int], Answer] = lambda _count: (200, {})) -> Iterator[Receiver]:
    """Start a receiver. `answer(n)` is the status and headers of the n-th response; status 0 hangs."""
    made = Receiver(answer)
    try:
        yield made
    finally:
        made.close()
