"""Where the server listens, and what others call that address."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from labwright.domain.errors import Conflict, Invalid
from labwright.paths import ProjectPaths
from labwright.settings import Settings

USUAL_PORT = Settings().port


@dataclass(slots=True, kw_only=True)
class Listener:
    socket: socket.socket
    port: int
    url: str
    node_url: str = ""  # the same for other machines, if they can reach it


def listen(host: str, port: int, *, chosen: bool, before: int = 0) -> Listener:
    """A port that somebody chose must be free. One that is set gives way to the one before and to any free one. The
    usual one comes after the one before: open pages and tunnels know that, and those of other projects the usual."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [before, port, 0] if before and port in (0, USUAL_PORT) else [port, before, 0]
    try:
        listener = _first_free(family, host, [port] if chosen else tried)
    except (OSError, OverflowError) as error:
        raise _cannot_listen(host, port, error) from error
    address, port = listener.getsockname()[:2]
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)  # noqa: S104
    there = name_for_others(shown, address)
    node_url = f"http://{there}:{port}" if there else ""
    return Listener(socket=listener, port=port, url=f"http://{here}:{port}", node_url=node_url)


def last_port(paths: ProjectPaths) -> int:
    """Of the server before; 0 where there was none, or where its note is no port."""
    try:
        found = int(paths.port.read_text())
    except (OSError, ValueError):
        return 0
    return found if 0 < found < 1 << 16 else 0


def name_for_others(shown: str, address: str) -> str:
    """What another machine calls us; nothing if we listen to this one alone."""
    if ip_address(address).is_unspecified:
        return socket.gethostname()
    return "" if ip_address(address).is_loopback else shown


def _first_free(family: socket.AddressFamily, host: str, ports: list[int]) -> socket.socket:
    first, *others = ports
    try:
        return _listen_on(family, host, first)
    except OSError as error:
        if not others or error.errno != errno.EADDRINUSE:
            raise
        return _first_free(family, host, others)


def _listen_on(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    """A socket for this port alone: who was faster may show only after it is bound, and then it takes no other."""
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for an ACK
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> Conflict | Invalid:
    if isinstance(error, OverflowError):
        return Invalid(f"{port} is no port.", hint="Choose one between 1 and 65535, or leave --port out.")
    if error.errno == errno.EADDRINUSE:
        return Conflict(f"Port {port} on {host} is taken.", hint="Choose another with --port, or leave --port out.")
    return Invalid(f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="Check --host and --port.")
