"""The address of the server: the port that it listens on, and its URLs."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from labwright.domain.errors import Conflict, Invalid
from labwright.paths import ProjectPaths
from labwright.settings import Settings

DEFAULT_PORT = Settings().port


@dataclass(slots=True, kw_only=True)
class Listener:
    socket: socket.socket
    port: int
    url: str
    node_url: str = ""  # URL for other machines, if they can reach the server


def listen(host: str, port: int, *, chosen: bool, before: int = 0) -> Listener:
    """Open a port. A `chosen` port must be free; otherwise the previous port and any free port are fallbacks.

    The previous port comes before the default one, since open pages and tunnels use it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [before, port, 0] if before and port in (0, DEFAULT_PORT) else [port, before, 0]
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
    """Return the port of the previous server, or 0 if unknown."""
    try:
        found = int(paths.port.read_text())
    except (OSError, ValueError):
        return 0
    return found if 0 < found < 1 << 16 else 0


def name_for_others(shown: str, address: str) -> str:
    """Return the host name for other machines, or nothing if only this machine can connect."""
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
    """Return a socket that listens on this port. A conflict may show only at listen()."""
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each response waits 40 ms for an ACK
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> Conflict | Invalid:
    if isinstance(error, OverflowError):
        return Invalid(f"{port} is not a valid port.", hint="Choose a port between 1 and 65535, or omit --port.")
    if error.errno == errno.EADDRINUSE:
        return Conflict(f"Port {port} on {host} is in use.", hint="Choose another port with --port, or omit --port.")
    return Invalid(f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="Check --host and --port.")
