"""What people see at a terminal: colours, tables that fit, questions, a run's own window."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.test_cli import LABWRIGHT, answer, begin
from tests.support.children import end_with_test
from tests.support.live_server import LiveServer
from tests.support.model_server import Turn, model_server
from tests.support.waiting import wait_until

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
YES_OR_NO = "[y/N]"


class Terminal:
    """A command at a terminal of this width."""

    def __init__(
        self, server: LiveServer, *arguments: str, columns: int = 80, env: dict[str, str] | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: value for name, value in server.environment.items() if name not in ("NO_COLOR", "COLUMNS")}
        self._process = end_with_test(
            subprocess.Popen(
                [*LABWRIGHT, *arguments],
                cwd=server.project,
                env={**environment, "TERM": "xterm-256color", **(env or {})},
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
                start_new_session=True,
            )
        )
        os.close(theirs)
        self._unread = b""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, words: str) -> str:
        """Return what appears up to this text."""
        wanted, shown = words.encode(), self._unread
        while wanted not in shown:
            more = _read(self._ours)
            assert more, f"it ended without {words!r}: {shown.decode()}"
            shown += more
        before, _, self._unread = shown.partition(wanted)
        return before.decode().replace("\r\n", "\n")

    def rest(self) -> str:
        shown = self._unread + b"".join(iter(lambda: _read(self._ours), b""))
        os.close(self._ours)
        self._process.wait(timeout=60)
        return shown.decode().replace("\r\n", "\n")


def at_terminal(server: LiveServer, *arguments: str, typed: str = "", question: str = "", **more: Any) -> str:
    """Return everything that appears. Input is typed at once, or when the question appears."""
    terminal = Terminal(server, *arguments, **more)
    before = terminal.until(question) if question else ""
    terminal.type(typed)
    return before + question + terminal.rest()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a pty reports that the other side has closed
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


def test_table_fits_the_terminal_and_status_has_text_and_colour(lab: LiveServer) -> None:
    shown = at_terminal(lab, "ps")
    assert "\x1b[32mfinished\x1b[0m" in shown
    assert max(len(COLOUR.sub("", line)) for line in shown.splitlines()) <= 80
    assert "would ever show in one of its lines" in at_terminal(lab, "ps", columns=160)


def test_no_color_is_respected(lab: LiveServer) -> None:
    shown = at_terminal(lab, "ps", env={"NO_COLOR": "1"})
    assert "finished" in shown and "\x1b" not in shown


def test_last_line_is_the_next_step(lab: LiveServer) -> None:
    assert "labwright rerun run-" in at_terminal(lab, "show").splitlines()[-1]


def test_delete_asks_first(lab: LiveServer) -> None:
    run = answer(lab, "run", "--wait", "--json", "--", "true")["id"]
    assert "permanently?" in at_terminal(lab, "delete", run, typed="n\n", question=YES_OR_NO)
    assert lab.run(run)["id"] == run
    at_terminal(lab, "delete", run, typed="y\n", question=YES_OR_NO)
    assert lab.call("GET", f"/runs/{run}").status == 404


def test_text_typed_before_a_question_does_not_answer_it(lab: LiveServer) -> None:
    run = answer(lab, "run", "--wait", "--json", "--", "true")["id"]
    terminal = Terminal(lab, "delete", run)
    terminal.type("y\n")
    terminal.until(YES_OR_NO)
    terminal.type("n\n")
    terminal.rest()
    assert lab.run(run)["id"] == run


def test_typed_lines_reach_the_run_without_tmux(lab: LiveServer) -> None:
    run = lab.submit('read x; echo "got $x"')
    lab.wait_for_status(run["id"], "running")
    attached = begin(lab, "attach", run["id"])
    output, said = attached.communicate("hello there\n", timeout=60)
    assert (output, attached.returncode) == ("got hello there\n", 0), said


def test_attached_terminal_shows_and_types_only_into_its_run(make_server: Callable[..., LiveServer]) -> None:
    server = make_server(LABWRIGHT_TMUX="1", LABWRIGHT_MAX_PARALLEL="2").start()
    in_tmux = ["tmux", "-L", f"labwright-test-{os.getpid()}", "-f", "/dev/null"]
    environment = {**server.environment, "TERM": "xterm-256color"}

    def tmux(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*in_tmux, *arguments], env=environment, capture_output=True, text=True, check=False)

    def shows(name: str, text: str) -> bool:
        return text in tmux("capture-pane", "-p", "-t", f"{name}:").stdout

    def attach(name: str) -> str:
        run: str = server.submit(
            f'echo {name} ready; while read x; do echo "{name} got $x"; [ "$x" = bye ] && exit; done'
        )["id"]
        target = wait_until(lambda: server.run(run)["tmux_target"], "the run's window")
        sockets.add(target.partition(":")[0])
        attached = [*LABWRIGHT, "attach", run, "--project", str(server.project)]
        tmux("new-session", "-d", "-s", name, "-x", "100", "-y", "20", "--", *attached)
        wait_until(lambda: shows(name, f"{name} ready"), "the run on the terminal")
        return run

    sockets: set[str] = set()
    try:
        first, second = attach("first"), attach("second")
        assert shows("first", "first ready") and not shows("first", "second ready")
        tmux("send-keys", "-t", "first:", "hello there", "Enter")
        wait_until(lambda: shows("first", "first got hello there"), "the answer to show")
        tmux("send-keys", "-t", "first:", "bye", "Enter")
        wait_until(lambda: tmux("has-session", "-t", "=first").returncode, "the terminal to be left with its run")
        assert server.wait_for_end(first)["status"] == "finished"
        tmux("send-keys", "-t", "second:", "still here", "Enter")
        wait_until(lambda: shows("second", "second got still here"), "the other run")
        assert server.output(second) == "second ready\nsecond got still here\n"
        (socket,) = sockets
        tmux("send-keys", "-t", "second:", "C-b", "d")
        wait_until(lambda: tmux("has-session", "-t", "=second").returncode, "the terminal to be left alone")
        left = subprocess.run(["tmux", "-L", socket, "list-sessions", "-F", "#S"], capture_output=True, text=True)
        assert left.stdout.split() == [socket] and server.run(second)["status"] == "running"
    finally:
        tmux("kill-server")
        for socket in sockets:
            subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, check=False)


def test_chat_edits_lines_and_survives_ctrl_c(
    make_server: Callable[..., LiveServer],
) -> None:
    with model_server("openai", Turn(text=("Half ", "an answer"), hang_after=2), Turn(text=("Whole.",))) as provider:
        address = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-test"}
        server = make_server(LABWRIGHT_MODEL="openai:fake", **address).start()
        terminal = Terminal(server, "chat")
        terminal.until("› ")
        terminal.type("tell me mote\x1b[D\x1b[D\x1b[3~r\n")  # move back two, delete one, insert another
        terminal.until("Half ")
        terminal.type("\x03")
        terminal.until("Stopped.")
        terminal.until("› ")
        terminal.type("\x1b[A\n")  # the previous line
        terminal.until("Whole.")
        terminal.until("› ")
        terminal.type("\x04")
        assert "Continue: labwright chat --session" in terminal.rest()
        assert [asked.body["messages"][-1]["content"] for asked in provider.asked] == ["tell me more"] * 2


def test_approval_answered_elsewhere_does_not_end_the_chat(server: LiveServer) -> None:
    run_id = server.post("/runs", {"command": "true", "name": "mine"})["id"]
    terminal = Terminal(server, "chat")
    terminal.until("› ")
    terminal.type("stop mine\n")
    terminal.until("Allow this? [y/N]")
    (asked,) = server.get("/approvals?status=pending")
    server.post(f"/approvals/{asked['id']}/respond", {"approved": False, "reason": "not yet"})
    terminal.type("y\n")
    assert f"Approval {asked['id']} is already denied." in terminal.until("so nothing was done.")
    terminal.until("› ")
    terminal.type("\x04")
    assert "Continue: labwright chat --session" in terminal.rest()
    assert server.run(run_id)["status"] == "ready"
