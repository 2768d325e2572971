"""The parent of warm processes: it imports what they need, and forks one for each request.

Only `warm.py` starts it. A child leaves the loop, closes everything that is not its own, and then behaves exactly
like the requested process, including its exit.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

SERVER = (
    "labwright.server.boot",
    "labwright.server.app",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
MOST_BYTES = 1 << 20  # a request has an environment and arguments


class Children:
    """The forked children, and for each the pipe that reports its end."""

    def __init__(self) -> None:
        self._by_watch: dict[int, tuple[int, int]] = {}

    @property
    def watches(self) -> list[int]:
        return list(self._by_watch)

    def add(self, pid: int, pipe: int) -> None:
        self._by_watch[os.pidfd_open(pid)] = (pid, pipe)

    def reap(self, watch: int) -> None:
        pid, pipe = self._by_watch.pop(watch)
        _, status = os.waitpid(pid, 0)
        try:
            os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
        except BrokenPipeError:
            pass  # the requester has ended
        os.close(pipe)
        os.close(watch)


def main() -> None:
    enter = {"server": warm_server, "command": warm_command}[sys.argv[1]]()
    gc.freeze()  # otherwise a garbage collection in a child would copy every page
    requests = socket.socket(fileno=int(sys.argv[2]))
    if fork_for(requests):
        enter()


def warm_server() -> Callable[[], None]:
    from labwright.server import __main__ as server

    server._start_small()
    for name in SERVER:
        import_module(name)
    return server.main


def warm_command() -> Callable[[], None]:
    from labwright.cli import main as cli

    for entries in cli.SECTIONS.values():
        for module, _, _ in entries.values():
            import_module(f"{cli.__package__}.{module}")
    return cli.main


def fork_for(requests: socket.socket) -> bool:
    """Return True in a child. Return False in the parent when no requester is left."""
    children = Children()
    while True:
        ready, _, _ = select.select([requests, *children.watches], [], [])
        for watch in set(ready) & set(children.watches):
            children.reap(watch)
        if requests not in ready:
            continue
        request, fds, _, _ = socket.recv_fds(requests, MOST_BYTES, 4)
        if not request:
            return False
        *streams, pipe = fds
        pid = os.fork()
        if pid == 0:
            requests.detach()
            become(json.loads(request), streams)
            return True
        children.add(pid, pipe)
        for fd in streams:
            os.close(fd)
        requests.send(str(pid).encode())


def become(asked: dict[str, Any], streams: list[int]) -> None:
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv[:] = ["labwright", *asked["arguments"]]


if __name__ == "__main__":
    main()
