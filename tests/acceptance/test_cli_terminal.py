"""What people see at a terminal: colours, tables that fit, questions, a run's own window."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.test_cli import LABWRIGHT, answer, begin
from tests.support.children import ended_with_the_test
from tests.support.live_server import LiveServer
from tests.support.waiting import wait_until

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CANNOT_SEND_KEYS = shutil.which("tmux") is None


def at_terminal(
    server: LiveServer, *arguments: str, columns: int = 80, typed: str = "", env: dict[str, str] | None = None
) -> str:
    """What appears on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: value for name, value in server.environment.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = ended_with_the_test(
        subprocess.Popen(
            [*LABWRIGHT, *arguments],
            cwd=server.project,
            env={**environment, "TERM": "xterm-256color", **(env or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    process.wait(timeout=60)
    return shown.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # a pty says so when the other side is gone
        return b""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    project = tmp_path_factory.mktemp("lab") / "project"
    project.mkdir()
    server = LiveServer(project).start()
    name = "a name that is longer than a narrow terminal would ever show in one of its lines"
    answer(server, "run", "--wait", "--json", "--name", name, "--", "true")
    yield server
    server.stop()


def test_a_table_fits_the_terminal_and_status_has_a_word_and_a_colour(lab: LiveServer) -> None:
    shown = at_terminal(lab, "ps")
    assert "\x1b[32mfinished\x1b[0m" in shown
    assert max(len(COLOUR.sub("", line)) for line in shown.splitlines()) <= 80
    assert "would ever show in one of its lines" in at_terminal(lab, "ps", columns=160)


def test_no_color_is_respected(lab: LiveServer) -> None:
    shown = at_terminal(lab, "ps", env={"NO_COLOR": "1"})
    assert "finished" in shown and "\x1b" not in shown


def test_the_last_line_is_what_to_do_next(lab: LiveServer) -> None:
    assert "labwright rerun run-" in at_terminal(lab, "show").splitlines()[-1]


def test_deleting_asks_first(lab: LiveServer) -> None:
    run = answer(lab, "run", "--wait", "--json", "--", "true")["id"]
    assert "for ever?" in at_terminal(lab, "delete", run, typed="n\n")
    assert lab.run(run)["id"] == run
    at_terminal(lab, "delete", run, typed="y\n")
    assert lab.call("GET", f"/runs/{run}").status == 404


def test_without_tmux_typed_lines_still_reach_the_run(lab: LiveServer) -> None:
    run = lab.submit('read x; echo "got $x"')
    lab.wait_for_status(run["id"], "running")
    attached = begin(lab, "attach", run["id"])
    output, said = attached.communicate("hello there\n", timeout=60)
    assert (output, attached.returncode) == ("got hello there\n", 0), said


@pytest.mark.skipif(_CANNOT_SEND_KEYS, reason="tmux is not installed")
def test_keys_typed_in_an_attached_window_reach_the_run(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_TMUX="1").start()
    in_tmux = ["tmux", "-L", f"labwright-test-{os.getpid()}", "-f", "/dev/null"]

    def tmux(*arguments: str) -> str:
        return subprocess.run([*in_tmux, *arguments], capture_output=True, text=True, check=False).stdout

    run = answer(server, "run", "--json", "--", 'echo ready; read x; echo "got $x"; sleep 60')
    environment = {**server.environment, "TERM": "xterm-256color"}
    subprocess.run(
        [*in_tmux, "new-session", "-d", "-x", "100", "-y", "20", "--", *LABWRIGHT, "attach", run["id"]],
        env=environment,
        cwd=server.project,
        check=True,
    )
    try:
        wait_until(lambda: "ready" in tmux("capture-pane", "-p"), "the run's window")
        tmux("send-keys", "hello there", "Enter")
        wait_until(lambda: "got hello there" in server.output(run["id"]), "the keys to arrive")
        wait_until(lambda: "got hello there" in tmux("capture-pane", "-p"), "the answer to show")
    finally:
        tmux("kill-server")
        session = (server.run(run["id"])["tmux_target"] or "").partition(":")[0]
        subprocess.run(["tmux", "-L", session, "kill-server"], capture_output=True, check=False)
