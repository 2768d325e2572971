"""Each project has one server, at a free address."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labwright.client.address import read_server
from labwright.domain.errors import Conflict, Invalid
from labwright.paths import ProjectPaths
from labwright.processes import identity
from labwright.server.listening import last_port, listen
from labwright.server.opening import prepare_state
from labwright.server.server_lock import take_lock
from tests.support.live_server import LiveServer
from tests.support.storage import try_to_start
from tests.support.waiting import wait_until


def test_second_server_is_refused_and_told_the_first_address(
    make_server: Callable[..., LiveServer],
) -> None:
    server = make_server().start()
    said = (server.state / "server.json").read_bytes()
    done = try_to_start(server)
    assert server.url in done.stderr
    assert json.loads((server.state / "server.json").read_text())["pid"] == json.loads(said)["pid"]
    assert server.wait_for_end(server.submit("true")["id"])["status"] == "finished"


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"url": "http://127.0.0.1:1", "pid": 1, "start_time": 1, "heartbeat": 1}',
        b'{"host": "elsewhere", "heartbeat": 1}',
        b'{"host": "elsewhere", "heartbeat": "soon"}',
        b'{"host": "elsewhere", "heartbeat": null}',
        b'{"host": "elsewhere"}',
    ],
)
def test_leftovers_of_an_old_server_do_not_stop_the_next(tmp_path: Path, left: bytes) -> None:
    paths = prepare_state(tmp_path)
    paths.server.write_bytes(left)
    os.close(take_lock(paths))


def left_locked(paths: ProjectPaths) -> tuple[int, int]:
    """Lock the project as an ended process whose child still has the lock, with its pid."""
    held = take_lock(paths)
    with subprocess.Popen(["true"]) as gone:
        killed = identity(gone.pid)
    os.pwrite(held, json.dumps(killed.to_dict()).encode().ljust(500), 0)
    return held, killed.pid


def test_start_waits_for_a_lock_held_by_a_killed_servers_last_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = prepare_state(tmp_path)
    held, _ = left_locked(paths)
    monkeypatch.setattr(time, "sleep", lambda _: os.close(held))  # until it reaches its exec
    os.close(take_lock(paths))


def test_start_gives_up_on_a_lock_that_stays_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = prepare_state(tmp_path)
    held, killed = left_locked(paths)
    monkeypatch.setattr("labwright.server.server_lock._LAST_CHILD_SECONDS", 0.0)
    with pytest.raises(Conflict, match=f"process {killed}"):
        take_lock(paths)
    os.close(held)


def test_live_server_on_another_machine_is_respected(tmp_path: Path) -> None:
    paths = prepare_state(tmp_path)
    told = {"host": "elsewhere", "url": "http://elsewhere:1", "pid": 7, "heartbeat": time.time()}
    paths.server.write_text(json.dumps(told))
    with pytest.raises(Conflict, match="http://elsewhere:1 on elsewhere"):
        take_lock(paths)


def test_requested_port_must_be_free(make_server: Callable[..., LiveServer]) -> None:
    server = make_server()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        done = try_to_start(server, "--port", number)
        assert f"Port {number}" in done.stderr
        assert "--port" in done.stderr
        server.environment["LABWRIGHT_PORT"] = number  # the default port is replaced by a free one
        server.start()
        assert not server.url.endswith(f":{number}")


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 99999), ("127.0.0.1", -1), ("no.such.host.invalid", 0)])
def test_invalid_address_is_reported(host: str, port: int) -> None:
    with pytest.raises(Invalid) as caught:
        listen(host, port, chosen=True)
    assert "--port" in caught.value.hint


def test_restarted_server_keeps_its_port_though_the_default_is_taken() -> None:
    first, taken = listen("127.0.0.1", 0, chosen=False), listen("127.0.0.1", 0, chosen=False)
    first.socket.close()
    again = listen("127.0.0.1", taken.port, chosen=False, before=first.port)
    third = listen("127.0.0.1", taken.port, chosen=False, before=first.port)
    assert again.port == first.port and third.port not in (first.port, taken.port)
    for listener in (taken, again, third):
        listener.socket.close()


@pytest.mark.parametrize("nobody_set_it", [True, False])
def test_server_keeps_its_port_though_the_default_is_free_again(
    nobody_set_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its open pages know that port, and those of another project the default one."""
    before, free = listen("127.0.0.1", 0, chosen=False), listen("127.0.0.1", 0, chosen=False)
    before.socket.close()
    free.socket.close()
    if nobody_set_it:
        monkeypatch.setattr("labwright.server.listening.DEFAULT_PORT", free.port)
    again = listen("127.0.0.1", free.port, chosen=False, before=before.port)
    again.socket.close()
    assert again.port == (before.port if nobody_set_it else free.port)


def test_port_taken_at_the_same_moment_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both may bind the port; the first to listen gets it."""
    rival = socket.socket()
    rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    rival.bind(("127.0.0.1", 0))

    class Slow(socket.socket):
        def listen(self, backlog: int = 1024, /) -> None:
            rival.listen()
            super().listen(backlog)

    monkeypatch.setattr(socket, "socket", Slow)
    taken = rival.getsockname()[1]
    listener = listen("127.0.0.1", taken, chosen=False)
    assert listener.port != taken
    with pytest.raises(Conflict, match="is in use"):
        listen("127.0.0.1", taken, chosen=True)
    listener.socket.close()
    rival.close()


@pytest.mark.parametrize("note", ["", "none", "-3", "99999999"])
def test_invalid_note_of_the_last_port_does_not_stop_the_start(tmp_path: Path, note: str) -> None:
    paths = prepare_state(tmp_path)
    assert last_port(paths) == 0
    paths.port.write_text(note)
    assert last_port(paths) == 0


def test_server_notes_its_address(make_server: Callable[..., LiveServer]) -> None:
    server = make_server().start()
    assert server.url.endswith(f":{last_port(ProjectPaths(server.project))}")


def deleted(folder: Path) -> bool:
    """Delete the folder while the server writes there."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


@pytest.mark.parametrize("all_of_it", [True, False])
def test_server_with_deleted_lock_ends_and_leaves_the_next_alone(
    make_server: Callable[..., LiveServer], all_of_it: bool
) -> None:
    """For example after `git clean -fdx`: nobody would find the server, and there would be two."""
    server = make_server().start()
    if all_of_it:
        wait_until(lambda: deleted(server.state), "all of it to be gone at once")
    else:
        (server.state / "server.lock").unlink()
    following = LiveServer(server.project).start()
    try:
        assert server.process is not None
        wait_until(lambda: server.process.poll() is not None, "the first to end")
        assert following.wait_for_end(following.submit("true")["id"])["status"] == "finished"
        assert read_server(ProjectPaths(server.project)).process.pid == following.process.pid
    finally:
        following.stop()
