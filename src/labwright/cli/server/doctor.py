"""`doctor`: what Labwright needs, what it found, and how to mend what is missing."""

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

from labwright.cli.formatting import counted, one_line, size
from labwright.cli.options import AsJson, Project, project_folder
from labwright.cli.screen import Screen
from labwright.cli.server.offline import run_without_server
from labwright.client.address import read_server
from labwright.client.lab import LabClient
from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.paths import ProjectPaths
from labwright.settings import load_settings
from labwright.version import __version__

OK, WARN, FAIL = "ok", "warn", "fail"
_STYLES = {OK: "green", WARN: "amber", FAIL: "red"}
_LITTLE_SPACE, _NO_SPACE = 5_000_000_000, 200_000_000
_TOOL_SECONDS = 5.0
_SERVER_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    name: str
    status: str
    said: str
    fix: str = ""


def doctor(project: Project = None, as_json: AsJson = False) -> None:
    """Changes nothing. The exit code is 1 if something has to be mended."""
    screen = Screen(as_json=as_json)
    paths = ProjectPaths(project_folder(project))
    with screen.working("looking around"):
        findings = list(_findings(paths))
    failed = [finding for finding in findings if finding.status == FAIL]
    if as_json:
        screen.json({"ok": not failed, "project": str(paths.project), "checks": [asdict(item) for item in findings]})
    else:
        _show(screen, findings)
        words = f"{counted(len(failed), 'thing')} to mend." if failed else "All that is needed is here."
        screen.say((words, "red" if failed else "green"))
    raise typer.Exit(1 if failed else 0)


def _show(screen: Screen, findings: list[Finding]) -> None:
    room = max(len(finding.name) for finding in findings) + 2
    for finding in findings:
        screen.say((f"{finding.status:<6}", _STYLES[finding.status]), finding.name.ljust(room), one_line(finding.said))
        if finding.fix:
            screen.say(" " * 6, " " * room, (f"fix: {finding.fix}", "dim"))


def _findings(paths: ProjectPaths) -> Iterator[Finding]:
    yield Finding(
        name="labwright", status=OK, said=f"{__version__}, Python {platform.python_version()} ({sys.executable})"
    )
    yield _tool("bash", FAIL, "Every command runs in bash.", "--version")
    yield _tool("tmux", WARN, "Without it labwright attach shows the output only.", "-V")
    yield _tool("git", WARN, "Without it snapshots know no commit.", "--version")
    yield _tool("gcc", WARN, "Only labwright sim needs it.", "--version")
    yield _disk(paths)
    yield _state_folder(paths)
    settings = _settings(paths)
    yield settings
    if settings.status == OK:  # else the others know no more than that
        yield from _of_the_machine(paths.project)
    yield from _server(paths.project)


def _tool(name: str, without: str, why: str, version_flag: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(
            name=name, status=without, said="not found", fix=f"{why} Install it, e.g. apt-get install {name}."
        )
    return Finding(name=name, status=OK, said=_version(path, version_flag) or path)


def _version(path: str, flag: str) -> str:
    try:
        answer = subprocess.run([path, flag], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(answer.stdout.splitlines()), "")


def _disk(paths: ProjectPaths) -> Finding:
    free = shutil.disk_usage(paths.state if paths.state.exists() else paths.project).free
    status = FAIL if free < _NO_SPACE else WARN if free < _LITTLE_SPACE else OK
    fix = "" if status == OK else "Free some: labwright gc, or delete old runs."
    return Finding(name="disk", status=status, said=f"{size(free)} free", fix=fix)


def _state_folder(paths: ProjectPaths) -> Finding:
    state = paths.state
    if fault := _fault_of(state) if os.path.lexists(state) else _fault_of_home(paths.project):
        said, fix = fault
        return Finding(name="state folder", status=FAIL, said=f"{state} {said}", fix=fix)
    if not state.exists():
        return Finding(name="state folder", status=OK, said=f"none yet; labwright up makes {state}")
    open_to_others = [path for path in (state, paths.token) if path.exists() and path.stat().st_mode & 0o077]
    if open_to_others:
        names = shlex.join(map(str, open_to_others))
        return Finding(name="state folder", status=FAIL, said=f"readable by others: {names}", fix=f"chmod go= {names}")
    return Finding(name="state folder", status=OK, said=f"{state}, yours alone")


def _fault_of_home(project: Path) -> tuple[str, str] | None:
    """Why no state folder can be made in there, and the fix."""
    if os.statvfs(project).f_flag & os.ST_RDONLY:
        return "cannot be made: the disk is read-only", "Mount it for writing, or use another folder with --project."
    if not os.access(project, os.W_OK | os.X_OK):
        return "cannot be made: you may not write there", "Use a folder of your own with --project."
    return None


def _fault_of(state: Path) -> tuple[str, str] | None:
    """Why nothing can be written there, and the fix."""
    if not state.exists():
        target = Path(os.path.realpath(state))
        return (
            f"is a link to {target}, which is not there",
            f"Mount its disk, or make it: mkdir -pm 700 {_typed(target)}",
        )
    if state.stat().st_uid != os.getuid():
        return "is another user's", "Use --project."
    if not state.is_dir():
        return "is not a folder", f"Move it away: {shlex.join(['mv', str(state), f'{state}.old'])}"
    if os.statvfs(state).f_flag & os.ST_RDONLY:
        return "is not writable: its disk is read-only", "Mount it for writing, or use another folder with --project."
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        return "is not writable", f"chmod 700 {_typed(state)}"
    if foreign := sorted(path.name for path in state.iterdir() if _is_foreign(path)):
        return f"has things of another user's: {', '.join(foreign)}", f'sudo chown -R "$(id -u)" {_typed(state)}'
    return None


def _is_foreign(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.getuid()
    except FileNotFoundError:
        return False  # written aside, and renamed since it was listed


def _typed(path: Path) -> str:
    return shlex.quote(str(path))


def _settings(paths: ProjectPaths) -> Finding:
    try:
        load_settings(paths.project)
    except LabwrightError as error:
        return Finding(name="settings", status=FAIL, said=error.message, fix=error.hint)
    return Finding(name="settings", status=OK, said=str(paths.config) if paths.config.exists() else "the defaults")


def _of_the_machine(project: Path) -> Iterator[Finding]:
    try:
        for item in run_without_server("check", project):
            yield Finding(**item)
    except LabwrightError as error:
        yield Finding(name="machine", status=FAIL, said=error.message, fix=error.hint)


def _server(project: Path) -> Iterator[Finding]:
    try:
        client = LabClient(project, patience=_SERVER_SECONDS)
        health = client.health()
    except ServerUnreachable as error:
        yield _unreachable(ProjectPaths(project), error)
        return
    except LabwrightError as error:
        yield Finding(name="server", status=FAIL, said=error.message, fix=error.hint)
        return
    yield _health(client.url, **health)
    token = _token(client)
    yield token
    if token.status == OK:  # else whatever is asked fails of that one fault
        yield from _models_of_server(client)


def _models_of_server(client: LabClient) -> Iterator[Finding]:
    """It was started with an environment of its own, and may ask others than this shell would."""
    try:
        asked = {tier["model"] for tier in client.models()["tiers"]}
    except LabwrightError as error:
        yield Finding(name="its models", status=WARN, said=error.message, fix=error.hint)
        return
    said = f"{', '.join(sorted(asked))}; what is said there goes to them" if asked else "none"
    yield Finding(name="its models", status=OK, said=said)


def _unreachable(paths: ProjectPaths, error: ServerUnreachable) -> Finding:
    server = read_server(paths)
    if server is None or not server.is_here or not server.is_alive:
        return Finding(name="server", status=WARN, said=error.message, fix=error.hint)
    fix = f"If it stays so: kill -9 {server.process.pid}, then labwright up -d. Runs go on."
    return Finding(name="server", status=FAIL, said=error.message, fix=fix)


def _health(url: str, version: str, status: str) -> Finding:
    if version != __version__:
        fix = "Start it again with this version: labwright down, labwright up -d. Runs go on."
        return Finding(name="server", status=WARN, said=f"{version} at {url}, not {__version__}", fix=fix)
    if status != "ok":
        fix = "It cannot start runs at the moment. Another line says why, or .labwright/logs/server.log."
        return Finding(name="server", status=FAIL, said=f"{status}, at {url}", fix=fix)
    return Finding(name="server", status=OK, said=f"{version} at {url}")


def _token(client: LabClient) -> Finding:
    """The file may be newer than the server, or copied from elsewhere."""
    try:
        who = client.whoami()
    except LabwrightError as error:
        fix = "The server knows another token than .labwright/token: labwright down, labwright up -d. Runs go on."
        return Finding(name="token", status=FAIL, said=error.message, fix=fix)
    return Finding(name="token", status=OK, said=f"good; you are {who['scope']}")
