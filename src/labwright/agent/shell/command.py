"""One command in an agent's shell: begun once, ended in time and with all it started, and told in bounded words."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from functools import cache

from labwright.agent.shell.environment import shell_environment
from labwright.agent.shell.settings_file import SettingsFile
from labwright.agent.shell.view import view_of
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.errors import Conflict, Forbidden
from labwright.files import write_whole
from labwright.sandbox.child import Ended, Kept, run_child
from labwright.sandbox.fences import Limits
from labwright.sandbox.machine import View, machine_command
from labwright.sandbox.trial import fault_of
from labwright.sandbox.watch import over_limit
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
class Told:
    exit_code: int
    output: str
    seconds: float
    cut: str = ""  # what of the output is not shown
    ended_by: str = ""  # which limit
    note: str = ""


@cache
def why_not() -> str:
    """Why no shell can be had on this machine; empty where it can."""
    return fault_of(machine_command(["true"], View(), Limits()))


def execute(
    lab: Lab,
    actor: Actor,
    command: str,
    *,
    writes: bool,
    key: str,
    seconds: float | None = None,
    over: threading.Event | None = None,
) -> Told:
    """`key` is the same if the call is carried out again after a kill; `over` ends it at once."""
    if fault := why_not():
        raise Forbidden(f"There is no shell here, as nothing could hold it back: {fault}.", hint=_INSTALL)
    _begin_once(lab, actor.name, key)
    limits = _limits(lab, seconds)
    token = _token(lab, actor, limits, writes=writes)
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
    return _told(ended, kept, token, limits, settings.as_it_was())


def _limits(lab: Lab, seconds: float | None) -> Limits:
    settings = lab.settings
    return Limits(
        wall_seconds=min(seconds or settings.shell_seconds, settings.shell_seconds),
        cpu_seconds=settings.shell_cpu_seconds,
        memory_mb=settings.shell_memory_mb,
        processes=_PROCESSES,
        scratch_mb=_SCRATCH_MB,
        open_files=_OPEN_FILES,
    )


def _token(lab: Lab, actor: Actor, limits: Limits, *, writes: bool) -> str:
    """Good for this one command. Who plans reads, detects and saves plans with it, and starts nothing."""
    scope = Scope.AGENT if writes else Scope.PLANNER
    return mint(lab.token, scope, actor.name, limits.wall_seconds + _TOKEN_MARGIN_SECONDS)


def _begin_once(lab: Lab, session: str, key: str) -> None:
    """A shell command may not be repeated unasked: what it did the first time, nobody knows."""
    lab.paths.shells.mkdir(mode=0o700, exist_ok=True)
    mark = lab.paths.shells / session
    if mark.exists() and mark.read_text() == key:
        raise Conflict(
            "The server was restarted while this command ran; it was ended, and not begun again.",
            hint="Look at what it has done before you give it again.",
        )
    write_whole(mark, key.encode())


def _told(ended: Ended, kept: Kept, token: str, limits: Limits, note: str) -> Told:
    by = ended.cut_short or ("processor time" if ended.exit_code == _XCPU else "")
    head, tail = (_readable(bytes(part), token) for part in (kept.head, kept.tail))
    cut = f"{kept.dropped} of {kept.size} bytes" if kept.dropped else ""
    between = f"\n… ({kept.dropped} bytes left out) …\n" if cut else ""
    return Told(
        exit_code=ended.exit_code,
        output=f"{head}{between}{tail}",
        seconds=round(ended.wall_seconds, 2),
        cut=cut and f"{cut} in the middle are left out; send it to a file of the project, or ask for less",
        ended_by=_words(by, limits),
        note=note,
    )


def _words(by: str, limits: Limits) -> str:
    held = {
        "time": f"it took longer than {limits.wall_seconds:g} s",
        "processor time": f"it used more than {limits.cpu_seconds} s of processor time",
        "memory": f"it used more than {limits.memory_mb} MB of memory",
        "processes": f"it had more than {limits.processes} processes",
        _STOPPED: "the turn was stopped",
    }
    return f"{held[by]}, and was ended with all that it had started" if by else ""


def _readable(said: bytes, token: str) -> str:
    """The token stays out of the conversation, whoever printed it."""
    return _CONTROL.sub("", said.decode(errors="replace")).replace(token, "[the agent's token]")
