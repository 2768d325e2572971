"""`up` and `down`: the server as a process of its own, in front or detached."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Annotated, Any
from urllib.parse import urlsplit

import typer

from labwright.cli.formatting import counted
from labwright.cli.options import AsJson, Project, present_folder, project_folder
from labwright.cli.screen import Screen, note
from labwright.client.address import RunningServer, lives_here, locate, read_server, read_token
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, LabwrightError, ServerUnreachable
from labwright.domain.run import ACTIVE, RunStatus
from labwright.files import passing_refusals, write_whole
from labwright.paths import ProjectPaths
from labwright.processes import ProcessIdentity, read_identity, start_time, terminate, user_name
from labwright.settings import unknown_tables
from labwright.version import __version__

_START_SECONDS = 120.0  # a database of many thousand runs may be restored first
_END_SECONDS = 20.0
_COUNT_SECONDS = 10.0  # for a word about runs, from a server that is to end anyway
_LOOK_SECONDS = 0.02
_WORDS_BYTES = 1 << 16
_NEXT = "Next: labwright run -- python train.py"


def up(
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Start it in the background.")] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on. Default: this machine alone.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="PORT", help="The port. Default: 8484 or a free one.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """It keeps its state in .labwright/ there. Runs outlive it: start it again and they are all back."""
    paths = ProjectPaths(project_folder(project))
    _refuse_second(paths)
    screen = Screen(as_json=as_json)
    command = _server_command(paths, host, port)
    if detach:
        with screen.working("starting the server"):
            server = _start_detached(paths, command)
        _greet(screen, paths, server, no_browser)
        return
    _in_background(lambda server: _greet(screen, paths, server, no_browser, in_front=True), paths, os.getpid())
    os.execv(command[0], command)  # noqa: S606


def url(project: Project = None, as_json: AsJson = False) -> None:
    """For scripts: curl $(labwright url)/health"""
    screen, server = Screen(as_json=as_json), locate(ProjectPaths(project_folder(project)))
    if as_json:
        screen.json({"url": server.url})
    else:
        screen.say(server.url)


def down(project: Project = None, as_json: AsJson = False) -> None:
    """It is asked to end and given time to; queued runs wait for the next `labwright up`."""
    paths = ProjectPaths(project_folder(project))
    screen = Screen(as_json=as_json)
    server = read_server(paths)
    if server is None:
        _end_unlisted(screen, paths)
        return
    if not server.is_here:
        raise Conflict(
            f"The server runs on {server.process.host}.", hint=f"Run labwright down on {server.process.host}."
        )
    if not server.is_alive:
        _forget(paths, server)
        _say_down(screen, paths, {"was_running": False}, "The server had ended already, without tidying up; done now.")
        return
    going, queued = _going_and_queued(paths.project)
    with screen.working("ending the server"):
        _end(server.process)
    _forget(paths, server)
    facts = {"was_running": True, "runs_going_on": going, "runs_queued": queued}
    _say_down(screen, paths, facts, f"The server has ended.{_left_behind(going, queued)}")


def _end_unlisted(screen: Screen, paths: ProjectPaths) -> None:
    """A server whose `server.json` is gone still holds the lock, and the lock's file says who it is."""
    if not lives_here(paths):
        _say_down(screen, paths, {"was_running": False}, "No server is running here.")
        return
    process = read_identity(paths.lock)
    if process is None or not process.is_alive:
        raise Conflict(
            f"Some process holds {paths.lock}, and it is not known which.",
            hint=f"Find it with `fuser -v {paths.lock}`; if it is a Labwright server, end it with kill. Runs go on.",
        )
    with screen.working("ending the server"):
        _end(process)
    words = f"The server (process {process.pid}) has ended; its server.json was missing. Runs go on."
    _say_down(screen, paths, {"was_running": True}, words)


def _forget(paths: ProjectPaths, server: RunningServer) -> None:
    """Its file, where it could not remove that itself; never that of one started meanwhile.

    On a read-only disk it stays: it names a process that is no more, so it misleads nobody.
    """
    left = read_server(paths)
    if left is not None and left.process == server.process:
        with passing_refusals():
            paths.server.unlink(missing_ok=True)


def _left_behind(going: int | None, queued: int | None) -> str:
    if going is None:
        return " Runs that were going go on."
    words = f" {counted(going, 'run')} still going." if going else " No run is going."
    return f"{words} {counted(queued, 'run')} queued until the next labwright up." if queued else words


def _say_down(screen: Screen, paths: ProjectPaths, facts: dict[str, Any], text: str) -> None:
    if screen.as_json:
        screen.json({"project": str(paths.project), **facts})
        return
    screen.say(text)
    screen.next("Start it again: labwright up -d")


def _refuse_second(paths: ProjectPaths) -> None:
    server = read_server(paths)
    if server is not None and server.is_here and server.is_alive:
        raise Conflict(
            f"A server for {paths.project} already runs at {server.url} (process {server.process.pid}).",
            hint=f"Use it as it is, or end it with: labwright down{_one_of_its_own(paths)}",
        )


def _one_of_its_own(paths: ProjectPaths) -> str:
    """For who stands below a project, and meant the folder that they are in."""
    is_below = paths.project in present_folder().parents
    return ". One for this folder alone: labwright up --project ." if is_below else ""


def _server_command(paths: ProjectPaths, host: str | None, port: int | None) -> list[str]:
    """-P: a project may hold files named like modules of the standard library."""
    command = [sys.executable, "-P", "-m", "labwright.server", "--project", str(paths.project)]
    command += ["--host", host] if host else []
    return command + (["--port", str(port)] if port is not None else [])


def _start_detached(paths: ProjectPaths, command: list[str]) -> RunningServer:
    with _turn_to_start(paths), _open_log(paths) as log:
        _refuse_second(paths)
        began = log.tell()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=paths.project
        )
        server = _await_start(paths, process.pid, lambda: process.poll() is not None)
        if server is None:
            log.seek(began)
            raise _own_words(log.read().decode(errors="replace"))
    process.returncode = 0  # it goes on without us
    return server


def _turn_to_start(paths: ProjectPaths) -> AbstractContextManager[Any]:
    """One start at a time: who comes second is told where the first is, and their words do not mix in one log.

    That is opened here once more, since the server keeps what it is given.
    """
    try:
        paths.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.state.chmod(0o700)
        log = open(_start_log(paths), "ab")  # noqa: SIM115
        fcntl.flock(log, fcntl.LOCK_EX)
    except OSError:  # the server says what is the matter
        return nullcontext()
    return log


def _start_log(paths: ProjectPaths) -> Path:
    return paths.logs / "start.log"


def _open_log(paths: ProjectPaths) -> IO[bytes]:
    """What the server says before its own log is open; in memory where the disk takes no words, not even why."""
    try:
        log = open(_start_log(paths), "ab+")  # noqa: SIM115
        _want_room(log.fileno())
    except OSError:
        return os.fdopen(os.memfd_create("start.log"), "wb+")
    log.seek(0, os.SEEK_END)
    return log


def _want_room(fd: int) -> None:
    size = os.fstat(fd).st_size
    try:
        os.posix_fallocate(fd, size, _WORDS_BYTES)
    finally:
        os.ftruncate(fd, size)


def _await_start(paths: ProjectPaths, pid: int, has_ended: Callable[[], bool]) -> RunningServer | None:
    """None once the process has ended instead."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        server = read_server(paths)
        if server is not None and server.process.pid == pid and server.is_alive and _answers(paths):
            return server
        if has_ended():
            return None
        time.sleep(_LOOK_SECONDS)
    raise ServerUnreachable(
        f"The server is still not up after {_START_SECONDS:.0f} s.", hint=f"See {paths.server_log}."
    )


def _answers(paths: ProjectPaths) -> bool:
    try:
        return bool(LabClient(paths.project).health())
    except ServerUnreachable:
        return False


def _own_words(text: str) -> LabwrightError:
    """The server's `error:` line and its hint; a traceback's last line where it had no words."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = next((index for index, line in enumerate(lines) if line.startswith("error: ")), None)
    if start is None:
        return LabwrightError(f"The server ended at once: {lines[-1] if lines else 'it said nothing'}")
    hint = " ".join(line.removeprefix("hint: ") for line in lines[start + 1 :])
    return LabwrightError(lines[start].removeprefix("error: "), hint=hint)


def _in_background(then: Callable[[RunningServer], None], paths: ProjectPaths, pid: int) -> None:
    """In a grandchild, so that the server, which takes our place, has no child to look after."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:
        began = start_time(pid)
        server = _await_start(paths, pid, lambda: start_time(pid) != began)
        if server is not None:
            then(server)
    os._exit(0)


def _greet(
    screen: Screen, paths: ProjectPaths, server: RunningServer, no_browser: bool, *, in_front: bool = False
) -> None:
    for words in unknown_tables(paths.project):
        note(f"warning: {words}")
    if screen.as_json:
        screen.json({"project": str(paths.project), "url": server.url, "pid": server.process.pid})
        return
    link = _sign_in_link(paths, server)
    screen.say(("Labwright ", "bold"), (f"{__version__} for {paths.project}", "dim"))
    screen.facts(
        [
            ("Address", (server.url, "blue")),
            ("Sign in", link if screen.is_terminal else ""),
            ("API", f"{server.url}/docs"),
            ("From your machine", _tunnel(server.url)),
        ]
    )
    if in_front:
        screen.next("Ctrl-C ends the server; runs go on.")
    screen.next(_NEXT)
    if link and screen.is_terminal and not no_browser and _on_desktop():
        _open_browser(paths, link)


def _sign_in_link(paths: ProjectPaths, server: RunningServer) -> str:
    """The token is behind a #, so that a browser never sends it as part of an address."""
    if not LabClient(paths.project).has_dashboard():
        return ""
    return f"{server.url}/#token={read_token(paths)}"


def _tunnel(url: str) -> str:
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) < 3:
        return ""
    address = urlsplit(url)
    return f"ssh -L {address.port}:{address.hostname}:{address.port} {user_name()}@{connection[2]}"


def _on_desktop() -> bool:
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(has_display) and "SSH_CONNECTION" not in os.environ


def _open_browser(paths: ProjectPaths, link: str) -> None:
    """By way of a file that only its owner can read: the link holds the token, and a process list is for everybody."""
    import html
    import webbrowser

    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_whole(paths.sign_in, page.encode())
    webbrowser.open(paths.sign_in.as_uri())


def _going_and_queued(project: Path) -> tuple[int, int] | tuple[None, None]:
    """How many runs. A server that hangs, or knows another token, is ended all the same: then nobody knows."""
    try:
        counts: dict[str, int] = LabClient(project, patience=_COUNT_SECONDS).cluster()["run_summary"]
    except LabwrightError as error:
        note(f"the server did not say what is running: {error.message}")
        return None, None
    return sum(counts.get(status, 0) for status in ACTIVE), counts.get(RunStatus.QUEUED, 0)


def _end(process: ProcessIdentity) -> None:
    terminate(process)
    deadline = time.monotonic() + _END_SECONDS
    while process.is_alive:
        if time.monotonic() > deadline:
            raise Conflict(
                f"The server (process {process.pid}) has not ended after {_END_SECONDS:.0f} s.",
                hint=f"kill -9 {process.pid} loses nothing: runs go on, and the next labwright up finds them.",
            )
        time.sleep(_LOOK_SECONDS)
