"""One command in an agent's shell: started once, ended in time with every process it started, with limited output."""

from __future__ import annotations

import itertools
import os
import re
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labwright.agent.shell.view import shell_environment, view_of
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, Forbidden
from labwright.files import write_whole
from labwright.sandbox.child import Ended, Kept, fault_of, over_limit, run_child
from labwright.sandbox.fences import SandboxLimits
from labwright.sandbox.machine import MachineView, machine_command
from labwright.tokens import mint, write_header_file

_PROCESSES = 512
_SCRATCH_MB = 2048
_OPEN_FILES = 1024
_HEAD, _TAIL = 2400, 1400  # bytes; together less than what any tool may show of a text
_TOKEN_MARGIN_SECONDS = 60.0
_STOPPED = "stopped"
_XCPU = 128 + 24
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INSTALL = (
    "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and allow user namespaces. Meanwhile use the "
    "other tools; they need no shell."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    exit_code: int
    output: str
    seconds: float
    cut: str = ""  # how much of the output is not shown
    ended_by: str = ""  # the limit that ended it
    note: str = ""


@cache
def why_not() -> str:
    """Return why this machine cannot have a shell, or an empty text."""
    return fault_of(machine_command(["true"], MachineView(), SandboxLimits()))


def execute(
    lab: Lab,
    actor: Actor,
    command: str,
    *,
    writes: bool,
    key: str,
    seconds: float | None = None,
    over: threading.Event | None = None,
) -> ShellResult:
    """Run the command. `key` is the same if the call is repeated after a kill; `over` ends the command."""
    if fault := why_not():
        raise Forbidden(f"There is no shell here, because it cannot be isolated: {fault}.", hint=_INSTALL)
    _start_once(lab, actor.name, key)
    limits = _limits(lab, seconds)
    scope = Scope.AGENT if writes else Scope.PLANNER  # a planner's token can read, detect and save plans only
    token = mint(lab.token, scope, actor.name, limits.wall_seconds + _TOKEN_MARGIN_SECONDS)
    header = write_header_file(lab.paths.headers, f"shell-{actor.name}", token)
    kept = Kept(_HEAD, _TAIL)
    settings = SettingsFile(lab.paths.config)
    public = {name: os.environ[name] for name in os.environ.keys() - lab.private_variables}
    environment = shell_environment(public, lab.paths.project, lab.url, header)
    ended = run_child(
        machine_command(
            ["nice", "-n", "5", "bash", "-c", command], view_of(lab, header, os.environ, writes=writes), limits
        ),
        environment,
        "/",
        limits.wall_seconds,
        kept,
        enough=lambda pid: _STOPPED if over and over.is_set() else over_limit(pid, limits),
    )
    return _result(ended, kept, token, limits, settings.restore())


def _limits(lab: Lab, seconds: float | None) -> SandboxLimits:
    settings = lab.settings
    return SandboxLimits(
        wall_seconds=min(seconds or settings.shell_seconds, settings.shell_seconds),
        cpu_seconds=settings.shell_cpu_seconds,
        memory_mb=settings.shell_memory_mb,
        processes=_PROCESSES,
        scratch_mb=_SCRATCH_MB,
        open_files=_OPEN_FILES,
    )


def _start_once(lab: Lab, session: str, key: str) -> None:
    """Refuse to repeat a command that was interrupted: nobody knows what it has done."""
    lab.paths.shells.mkdir(mode=0o700, exist_ok=True)
    mark = lab.paths.shells / session
    if mark.exists() and mark.read_text() == key:
        raise Conflict(
            "The server was restarted while this command ran. The command was ended and not started again.",
            hint="Check what it has done before you run it again.",
        )
    write_whole(mark, key.encode())


def _result(ended: Ended, kept: Kept, token: str, limits: SandboxLimits, note: str) -> ShellResult:
    by = ended.cut_short or ("processor time" if ended.exit_code == _XCPU else "")
    head, tail = (_readable(bytes(part), token) for part in (kept.head, kept.tail))
    cut = f"{kept.dropped} of {kept.size} bytes" if kept.dropped else ""
    between = f"\n… ({kept.dropped} bytes left out) …\n" if cut else ""
    return ShellResult(
        exit_code=ended.exit_code,
        output=f"{head}{between}{tail}",
        seconds=round(ended.wall_seconds, 2),
        cut=cut and f"{cut} in the middle are left out; write it to a file of the project, or print less",
        ended_by=_limit_message(by, limits),
        note=note,
    )


def _limit_message(by: str, limits: SandboxLimits) -> str:
    messages = {
        "time": f"it took longer than {limits.wall_seconds:g} s",
        "processor time": f"it used more than {limits.cpu_seconds} s of processor time",
        "memory": f"it used more than {limits.memory_mb} MB of memory",
        "processes": f"it had more than {limits.processes} processes",
        _STOPPED: "the turn was stopped",
    }
    return f"{messages[by]}, and was ended with every process it had started" if by else ""


def _readable(said: bytes, token: str) -> str:
    """Return text without control characters and without the token."""
    return _CONTROL.sub("", said.decode(errors="replace")).replace(token, "[the agent's token]")


class SettingsFile:
    """The settings file when a command starts. Only a person may create one, whether as a file, a link or a folder.

    The sandbox protects an existing file, but not a link to one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._link = os.readlink(path) if path.is_symlink() else None
        self._was_there = os.path.lexists(path)

    def restore(self) -> str:
        """Undo what the command did to the file, and return a message; an empty one if there was nothing to undo."""
        link = os.readlink(self._path) if self._path.is_symlink() else None
        if not os.path.lexists(self._path) or (self._was_there and link == self._link):
            self._put_link_back()
            return ""
        names = (self._path.with_name(f"{self._path.name}.refused{number or ''}") for number in itertools.count())
        refused = next(name for name in names if not os.path.lexists(name))
        self._path.rename(refused)
        self._put_link_back()
        return f"{self._path.name} contains settings, which only a person may write; it was renamed to {refused.name}."

    def _put_link_back(self) -> None:
        if self._link is not None and not os.path.lexists(self._path):
            self._path.symlink_to(self._link)
