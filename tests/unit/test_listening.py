"""The address that a server gives to runs: only one that they can reach."""

from __future__ import annotations

import socket

import pytest

from labwright.server.listening import listen, name_for_others


def test_loopback_server_has_no_address_for_other_machines() -> None:
    listener = listen("127.0.0.1", 0, chosen=False)
    listener.socket.close()
    assert listener.url.startswith("http://127.0.0.1:")
    assert listener.node_url == ""


@pytest.mark.parametrize(
    ("shown", "address", "name"),
    [
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("login1", "10.1.2.3", "login1"),
        ("0.0.0.0", "0.0.0.0", socket.gethostname()),
        ("[::]", "::", socket.gethostname()),
        ("localhost", "127.0.0.1", ""),
        ("[::1]", "::1", ""),
    ],
)
def test_other_machines_get_a_reachable_address(shown: str, address: str, name: str) -> None:
    assert name_for_others(shown, address) == name
