"""Find a project's server: the project folder, `server.json`, and the token beside it."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from labwright.domain.errors import LabwrightError, ServerUnreachable
from labwright.files import is_locked
from labwright.paths import STATE_DIR, ProjectPaths
from labwright.processes import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """The contents of `server.json`. `is_alive` says whether they are still true."""

    url: str
    process: ProcessIdentity
    heartbeat: float

    @property
    def is_here(self) -> bool:
        return self.process.is_here

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    @property
    def is_loopback(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False


def find_project(start: Path) -> Path:
    """Return the nearest folder upwards that has a state folder, or `start` itself."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / STATE_DIR).is_dir()), here)


def read_server(paths: ProjectPaths) -> RunningServer | None:
    """Return None if the file is missing, incomplete, or copied from another project."""
    try:
        facts: dict[str, Any] = json.loads(paths.server.read_text())
        server = RunningServer(
            url=facts["url"], process=ProcessIdentity.from_dict(facts), heartbeat=float(facts["heartbeat"])
        )
    except PermissionError as error:
        raise _foreign_folder(paths) from error
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_copied = server.is_here and server.is_alive and paths.lock.exists() and not lives_here(paths)
    return None if is_copied else server


def lives_here(paths: ProjectPaths) -> bool:
    """Return whether a server of this project holds its lock on this host."""
    try:
        return is_locked(paths.lock)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise _foreign_folder(paths) from error


def locate(paths: ProjectPaths) -> RunningServer:
    """Return the server. It is checked before a token is sent, because another process may have the port now."""
    server = read_server(paths)
    if server is None:
        raise ServerUnreachable(f"No Labwright server runs for {paths.project}.")
    if server.is_here and not server.is_alive:
        raise ServerUnreachable(f"The Labwright server for {paths.project} has ended.")
    if not server.is_here and server.is_loopback:
        raise ServerUnreachable(
            f"The Labwright server for {paths.project} runs on {server.process.host} and is only reachable there.",
            hint=f"Run the command on {server.process.host}, or start the server there with --host.",
        )
    return server


def read_token(paths: ProjectPaths) -> str:
    try:
        return paths.token.read_text().strip()
    except FileNotFoundError:
        raise ServerUnreachable(f"There is no token in {paths.state}.") from None
    except PermissionError as error:
        raise _foreign_folder(paths) from error


def _foreign_folder(paths: ProjectPaths) -> LabwrightError:
    error = LabwrightError(
        f"The state folder {paths.state} belongs to another user.",
        hint="Ask its owner for a token, or use a project folder of your own.",
    )
    error.code = "forbidden"
    return error
