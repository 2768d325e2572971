"""`up`, `url` and `down`: start and stop the server, in the foreground or detached."""

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

from labwright.cli.command import AsJson, Project, current_folder, project_folder
from labwright.cli.formatting import plural
from labwright.cli.screen import Screen, note, warn
from labwright.client.address import RunningServer, lives_here, locate, read_server, read_token
from labwright.client.lab import LabClient
from labwright.domain.errors import Conflict, LabwrightError, ServerUnreachable
from labwright.domain.run import ACTIVE, RunStatus
from labwright.files import passing_refusals, write_whole
from labwright.paths import ProjectPaths
from labwright.processes import ProcessIdentity, read_identity, start_time, terminate, user_name
from labwright.settings import unknown_tables
from labwright.version import __version__

_START_SECONDS = 120.0  # a large database may be restored first
_STOP_SECONDS = 20.0
_COUNT_SECONDS = 10.0  # to count runs before the server stops
_POLL_SECONDS = 0.02
_LOG_BYTES = 1 << 16


def up(
    detach: Annotated[bool, typer.Option("-d", "--detach", help="Run in the background.")] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The address to listen on. Default: only this machine.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="PORT", help="The port. Default: 8484 or a free port.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """The server keeps its state in .labwright/ of the project. Runs continue when it stops."""
    paths = ProjectPaths(project_folder(project))
    _refuse_second(paths)
    screen = Screen(as_json=as_json)
    command = _server_command(paths, host, port)
    if detach:
        with screen.working("starting the server"):
            server = _start_detached(paths, command)
        _greet(screen, paths, server, no_browser)
        return
    _when_started(lambda server: _greet(screen, paths, server, no_browser, in_foreground=True), paths, os.getpid())
    os.execv(command[0], command)  # noqa: S606


def url(project: Project = None, as_json: AsJson = False) -> None:
    """For scripts: curl $(labwright url)/health"""
    screen, server = Screen(as_json=as_json), locate(ProjectPaths(project_folder(project)))
    screen.result({"url": server.url}, lambda _: screen.print(server.url))


def down(project: Project = None, as_json: AsJson = False) -> None:
    """Active runs continue. Queued runs wait for the next `labwright up`."""
    paths = ProjectPaths(project_folder(project))
    screen = Screen(as_json=as_json)
    server = read_server(paths)
    if server is None:
        _stop_unlisted(screen, paths)
        return
    if not server.is_here:
        raise Conflict(
            f"The server runs on {server.process.host}.", hint=f"Run labwright down on {server.process.host}."
        )
    if not server.is_alive:
        _remove_file(paths, server)
        _show_down(
            screen, paths, {"was_running": False}, "The server had already stopped. Its files are cleaned up now."
        )
        return
    active, queued = _active_and_queued(paths.project)
    with screen.working("stopping the server"):
        _stop(server.process)
    _remove_file(paths, server)
    facts = {"was_running": True, "runs_going_on": active, "runs_queued": queued}
    _show_down(screen, paths, facts, f"The server has stopped. {_remaining_runs(active, queued)}")


def _stop_unlisted(screen: Screen, paths: ProjectPaths) -> None:
    """Stop a server whose `server.json` was deleted. The lock file names its process."""
    if not lives_here(paths):
        _show_down(screen, paths, {"was_running": False}, "No server is running.")
        return
    process = read_identity(paths.lock)
    if process is None or not process.is_alive:
        raise Conflict(
            f"An unknown process holds {paths.lock}.",
            hint=f"Find it with `fuser -v {paths.lock}`. If it is a Labwright server, kill it. Runs continue.",
        )
    with screen.working("stopping the server"):
        _stop(process)
    text = f"The server (process {process.pid}) has stopped. Its server.json was missing. Runs continue."
    _show_down(screen, paths, {"was_running": True}, text)


def _remove_file(paths: ProjectPaths, server: RunningServer) -> None:
    """Remove `server.json` if the server did not, but not that of a server that was started meanwhile.

    On a read-only disk the file stays. That is harmless, because its process does not exist any more.
    """
    left = read_server(paths)
    if left is not None and left.process == server.process:
        with passing_refusals():
            paths.server.unlink(missing_ok=True)


def _remaining_runs(active: int | None, queued: int | None) -> str:
    if active is None:
        return "Active runs continue."
    text = f"{plural(active, 'run')} still active." if active else "No run is active."
    return f"{text} {plural(queued, 'run')} queued until the next labwright up." if queued else text


def _show_down(screen: Screen, paths: ProjectPaths, facts: dict[str, Any], text: str) -> None:
    screen.result({"project": str(paths.project), **facts}, lambda _: screen.print(text))
    screen.suggest("Start it again: labwright up -d")


def _refuse_second(paths: ProjectPaths) -> None:
    server = read_server(paths)
    if server is not None and server.is_here and server.is_alive:
        is_below = paths.project in current_folder().parents
        own_server = ". For a server of this folder: labwright up --project ." if is_below else ""
        raise Conflict(
            f"A server for {paths.project} already runs at {server.url} (process {server.process.pid}).",
            hint=f"Use it, or stop it with: labwright down{own_server}",
        )


def _server_command(paths: ProjectPaths, host: str | None, port: int | None) -> list[str]:
    """Return the command. -P: a project may have files named like modules of the standard library."""
    command = [sys.executable, "-P", "-m", "labwright.server", "--project", str(paths.project)]
    command += ["--host", host] if host else []
    return command + (["--port", str(port)] if port is not None else [])


def _start_detached(paths: ProjectPaths, command: list[str]) -> RunningServer:
    with _start_lock(paths), _open_log(paths) as log:
        _refuse_second(paths)
        start = log.tell()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=paths.project
        )
        server = _await_start(paths, process.pid, lambda: process.poll() is not None)
        if server is None:
            log.seek(start)
            raise _start_error(log.read().decode(errors="replace"))
    process.returncode = 0  # it continues without this process
    return server


def _start_lock(paths: ProjectPaths) -> AbstractContextManager[Any]:
    """Allow one start at a time, so that the second finds the first, and their messages do not mix in one log.

    The log is opened separately for the lock, because the server keeps the other descriptor.
    """
    try:
        paths.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths.state.chmod(0o700)
        log = open(_start_log(paths), "ab")  # noqa: SIM115
        fcntl.flock(log, fcntl.LOCK_EX)
    except OSError:  # the server reports the problem
        return nullcontext()
    return log


def _start_log(paths: ProjectPaths) -> Path:
    return paths.logs / "start.log"


def _open_log(paths: ProjectPaths) -> IO[bytes]:
    """Open the log for messages before the server's own log is open. It is in memory if the disk is full."""
    try:
        log = open(_start_log(paths), "ab+")  # noqa: SIM115
        _check_space(log.fileno())
    except OSError:
        return os.fdopen(os.memfd_create("start.log"), "wb+")
    log.seek(0, os.SEEK_END)
    return log


def _check_space(fd: int) -> None:
    size = os.fstat(fd).st_size
    try:
        os.posix_fallocate(fd, size, _LOG_BYTES)
    finally:
        os.ftruncate(fd, size)


def _await_start(paths: ProjectPaths, pid: int, has_ended: Callable[[], bool]) -> RunningServer | None:
    """Return the server when it answers, or None if its process has ended."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        server = read_server(paths)
        if server is not None and server.process.pid == pid and server.is_alive and _answers(paths):
            return server
        if has_ended():
            return None
        time.sleep(_POLL_SECONDS)
    raise ServerUnreachable(f"The server did not start within {_START_SECONDS:.0f} s.", hint=f"See {paths.server_log}.")


def _answers(paths: ProjectPaths) -> bool:
    try:
        return bool(LabClient(paths.project).health())
    except ServerUnreachable:
        return False


def _start_error(text: str) -> LabwrightError:
    """Return the server's `error:` line and hint, or the last line of a traceback."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = next((index for index, line in enumerate(lines) if line.startswith("error: ")), None)
    if start is None:
        return LabwrightError(f"The server stopped at once: {lines[-1] if lines else 'no message'}")
    hint = " ".join(line.removeprefix("hint: ") for line in lines[start + 1 :])
    return LabwrightError(lines[start].removeprefix("error: "), hint=hint)


def _when_started(then: Callable[[RunningServer], None], paths: ProjectPaths, pid: int) -> None:
    """Call `then` in a grandchild, so that the server, which replaces this process, has no child to wait for."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork() == 0:
        started = start_time(pid)
        server = _await_start(paths, pid, lambda: start_time(pid) != started)
        if server is not None:
            then(server)
    os._exit(0)


def _greet(
    screen: Screen, paths: ProjectPaths, server: RunningServer, no_browser: bool, *, in_foreground: bool = False
) -> None:
    for text in unknown_tables(paths.project):
        warn(text)
    if screen.as_json:
        screen.json({"project": str(paths.project), "url": server.url, "pid": server.process.pid})
        return
    link = _sign_in_link(paths, server)
    screen.print(("Labwright ", "bold"), (f"{__version__} for {paths.project}", "dim"))
    screen.facts(
        [
            ("Address", (server.url, "blue")),
            ("Sign in", link if screen.is_terminal else ""),
            ("API", f"{server.url}/docs"),
            ("From your machine", _tunnel(server.url)),
        ]
    )
    if in_foreground:
        screen.suggest("Ctrl-C stops the server; runs continue.")
    screen.suggest("Next: labwright run -- python train.py")
    if link and screen.is_terminal and not no_browser and _on_desktop():
        _open_browser(paths, link)


def _sign_in_link(paths: ProjectPaths, server: RunningServer) -> str:
    """Return the link with the token after a #, which browsers do not send to servers."""
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
    """Open the link through a private file: all users can read the process list, and the link contains the token."""
    import html
    import webbrowser

    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">'
    write_whole(paths.sign_in, page.encode())
    webbrowser.open(paths.sign_in.as_uri())


def _active_and_queued(project: Path) -> tuple[int, int] | tuple[None, None]:
    """Return the number of runs, or None if the server does not answer. It is stopped in any case."""
    try:
        counts: dict[str, int] = LabClient(project, patience=_COUNT_SECONDS).cluster()["run_summary"]
    except LabwrightError as error:
        note(f"the number of active runs is unknown: {error.message}")
        return None, None
    return sum(counts.get(status, 0) for status in ACTIVE), counts.get(RunStatus.QUEUED, 0)


def _stop(process: ProcessIdentity) -> None:
    terminate(process)
    deadline = time.monotonic() + _STOP_SECONDS
    while process.is_alive:
        if time.monotonic() > deadline:
            raise Conflict(
                f"The server (process {process.pid}) did not stop within {_STOP_SECONDS:.0f} s.",
                hint=f"kill -9 {process.pid} is safe: runs continue, and the next labwright up finds them.",
            )
        time.sleep(_POLL_SECONDS)
