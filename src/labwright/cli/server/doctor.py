"""`doctor`: check what Labwright needs, and show how to fix problems."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from labwright.cli.command import AsJson, Project, project_folder
from labwright.cli.formatting import one_line, plural, size
from labwright.cli.screen import Screen, wrapped
from labwright.cli.server.offline import run_without_server
from labwright.client.address import read_server
from labwright.client.lab import LabClient
from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.paths import ProjectPaths
from labwright.settings import load_settings
from labwright.version import __version__

OK, WARN, FAIL = "ok", "warn", "fail"
_STYLES = {OK: "green", WARN: "yellow", FAIL: "red"}
_LITTLE_SPACE, _NO_SPACE = 5_000_000_000, 200_000_000
_TOOL_SECONDS = 5.0
_SERVER_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    name: str
    status: str
    said: str
    fix: str = ""


def doctor(project: Project = None, as_json: AsJson = False) -> None:
    """Changes nothing. Exit code 1 if something must be fixed."""
    screen = Screen(as_json=as_json)
    paths = ProjectPaths(project_folder(project))
    with screen.working("checking"):
        checks = list(_checks(paths))
    failed = [check for check in checks if check.status == FAIL]
    if as_json:
        screen.json({"ok": not failed, "project": str(paths.project), "checks": [asdict(check) for check in checks]})
    else:
        _show(screen, checks)
        result = f"{plural(len(failed), 'problem')} to fix." if failed else "No problems found."
        screen.print((result, "red" if failed else "green"))
    raise typer.Exit(1 if failed else 0)


def _show(screen: Screen, checks: list[DoctorCheck]) -> None:
    room = max(len(check.name) for check in checks) + 2
    for check in checks:
        lines = [(line, "") for line in _fitted(screen, one_line(check.said), room)]
        lines += [(line, "dim") for line in _fitted(screen, f"fix: {check.fix}", room)] if check.fix else []
        screen.print((f"{check.status:<6}", _STYLES[check.status]), check.name.ljust(room), lines[0])
        for line in lines[1:]:
            screen.print(" " * (6 + room), line)


def _fitted(screen: Screen, text: str, room: int) -> list[str]:
    return wrapped(text, screen.columns - room - 6) if screen.is_terminal else [text]


def _checks(paths: ProjectPaths) -> Iterator[DoctorCheck]:
    yield DoctorCheck(
        name="labwright", status=OK, said=f"{__version__}, Python {platform.python_version()} ({sys.executable})"
    )
    yield _tool("bash", FAIL, "Every command runs in bash.", "--version")
    yield _tool("tmux", WARN, "Without it, labwright attach only shows the output.", "-V")
    yield _tool("git", WARN, "Without it, snapshots do not record the commit.", "--version")
    yield _tool("gcc", WARN, "Only labwright sim needs it.", "--version")
    yield _disk(paths)
    yield _state_folder(paths)
    settings = _settings(paths)
    yield settings
    if settings.status == OK:  # otherwise these checks would report the same fault
        yield from _machine(paths.project)
    yield from _server(paths.project)


def _tool(name: str, without: str, why: str, version_flag: str) -> DoctorCheck:
    path = shutil.which(name)
    if path is None:
        return DoctorCheck(
            name=name, status=without, said="not found", fix=f"{why} Install it, e.g. apt-get install {name}."
        )
    return DoctorCheck(name=name, status=OK, said=_version(path, version_flag) or path)


def _version(path: str, flag: str) -> str:
    try:
        answer = subprocess.run([path, flag], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(answer.stdout.splitlines()), "")


def _disk(paths: ProjectPaths) -> DoctorCheck:
    free = shutil.disk_usage(paths.state if paths.state.exists() else paths.project).free
    status = FAIL if free < _NO_SPACE else WARN if free < _LITTLE_SPACE else OK
    fix = "" if status == OK else "Free space: labwright gc, or delete old runs."
    return DoctorCheck(name="disk", status=status, said=f"{size(free)} free", fix=fix)


def _state_folder(paths: ProjectPaths) -> DoctorCheck:
    state = paths.state
    if fault := _fault_of(state) if os.path.lexists(state) else _fault_of_project(paths.project):
        said, fix = fault
        return DoctorCheck(name="state folder", status=FAIL, said=f"{state} {said}", fix=fix)
    if not state.exists():
        return DoctorCheck(name="state folder", status=OK, said=f"none yet; labwright up creates {state}")
    open_to_others = [path for path in (state, paths.token) if path.exists() and path.stat().st_mode & 0o077]
    if open_to_others:
        names = shlex.join(map(str, open_to_others))
        return DoctorCheck(
            name="state folder", status=FAIL, said=f"readable by others: {names}", fix=f"chmod go= {names}"
        )
    return DoctorCheck(name="state folder", status=OK, said=f"{state}, private")


def _fault_of_project(project: Path) -> tuple[str, str] | None:
    """Return why no state folder can be created there, and the fix."""
    if os.statvfs(project).f_flag & os.ST_RDONLY:
        return "cannot be created: the disk is read-only", "Mount it for writing, or use another folder with --project."
    if not os.access(project, os.W_OK | os.X_OK):
        return "cannot be created: the folder is not writable", "Use your own folder with --project."
    return None


def _fault_of(state: Path) -> tuple[str, str] | None:
    """Return why the state folder cannot be used, and the fix."""
    if not state.exists():
        target = Path(os.path.realpath(state))
        return (
            f"is a link to {target}, which does not exist",
            f"Mount its disk, or create it: mkdir -pm 700 {_quoted(target)}",
        )
    if state.stat().st_uid != os.getuid():
        return "belongs to another user", "Use your own folder with --project."
    if not state.is_dir():
        return "is not a folder", f"Move it away: {shlex.join(['mv', str(state), f'{state}.old'])}"
    if os.statvfs(state).f_flag & os.ST_RDONLY:
        return "is not writable: its disk is read-only", "Mount it for writing, or use another folder with --project."
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return "is not writable", f"chmod 700 {_quoted(state)}"
    if foreign := sorted(path.name for path in state.iterdir() if _is_foreign(path)):
        return f"contains files of another user: {', '.join(foreign)}", f'sudo chown -R "$(id -u)" {_quoted(state)}'
    return None


def _is_foreign(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.getuid()
    except FileNotFoundError:
        return False  # a temporary file that was renamed meanwhile


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _settings(paths: ProjectPaths) -> DoctorCheck:
    try:
        load_settings(paths.project)
    except LabwrightError as error:
        return DoctorCheck(name="settings", status=FAIL, said=error.message, fix=error.hint)
    return DoctorCheck(name="settings", status=OK, said=str(paths.config) if paths.config.exists() else "defaults")


def _machine(project: Path) -> Iterator[DoctorCheck]:
    try:
        for item in run_without_server("check", project):
            yield DoctorCheck(**item)
    except LabwrightError as error:
        yield DoctorCheck(name="machine", status=FAIL, said=error.message, fix=error.hint)


def _server(project: Path) -> Iterator[DoctorCheck]:
    try:
        client = LabClient(project, patience=_SERVER_SECONDS)
        health = client.health()
    except ServerUnreachable as error:
        yield _unreachable(ProjectPaths(project), error)
        return
    except LabwrightError as error:
        yield DoctorCheck(name="server", status=FAIL, said=error.message, fix=error.hint)
        return
    yield _health(client.url, **health)
    token = _token(client)
    yield token
    if token.status == OK:  # otherwise this would report the same fault
        yield from _server_models(client)


def _server_models(client: LabClient) -> Iterator[DoctorCheck]:
    """Check the server's models. Its environment may differ from this shell's."""
    try:
        names = {tier["model"] for tier in client.models()["tiers"]}
    except LabwrightError as error:
        yield DoctorCheck(name="its models", status=WARN, said=error.message, fix=error.hint)
        return
    said = f"{', '.join(sorted(names))}; conversations are sent to them" if names else "none"
    yield DoctorCheck(name="its models", status=OK, said=said)


def _unreachable(paths: ProjectPaths, error: ServerUnreachable) -> DoctorCheck:
    server = read_server(paths)
    if server is None or not server.is_here or not server.is_alive:
        return DoctorCheck(name="server", status=WARN, said=error.message, fix=error.hint)
    fix = f"If this persists: kill -9 {server.process.pid}, then labwright up -d. Runs continue."
    return DoctorCheck(name="server", status=FAIL, said=error.message, fix=fix)


def _health(url: str, version: str, status: str) -> DoctorCheck:
    if version != __version__:
        fix = "Restart it with this version: labwright down, labwright up -d. Runs continue."
        return DoctorCheck(name="server", status=WARN, said=f"{version} at {url}, not {__version__}", fix=fix)
    if status != "ok":
        fix = "It cannot start runs now. See the other checks, or .labwright/logs/server.log."
        return DoctorCheck(name="server", status=FAIL, said=f"{status}, at {url}", fix=fix)
    return DoctorCheck(name="server", status=OK, said=f"{version} at {url}")


def _token(client: LabClient) -> DoctorCheck:
    """Check the token file. It may be newer than the server, or copied from elsewhere."""
    try:
        who = client.whoami()
    except LabwrightError as error:
        fix = "The server uses another token than .labwright/token. Run labwright down, labwright up -d. Runs continue."
        return DoctorCheck(name="token", status=FAIL, said=error.message, fix=fix)
    return DoctorCheck(name="token", status=OK, said=f"valid, scope {who['scope']}")
