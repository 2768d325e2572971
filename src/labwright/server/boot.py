"""Bring a project's server up: state folder, lock, database, port; and leave it tidy on the way out.

Every reason not to start is a clear message, and nothing has been changed when it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from labwright.compute import machine
from labwright.compute.alert_rules import project_rules
from labwright.compute.backups import newest_backups
from labwright.compute.cluster_state import ClusterState
from labwright.compute.environment import for_jobs
from labwright.compute.gpu_history import GpuHistory
from labwright.compute.journal import Journal
from labwright.compute.lab import Lab
from labwright.compute.launchers.local import LocalLauncher
from labwright.compute.launchers.slurm import SlurmLauncher
from labwright.compute.notify.channels import PrivateFiles
from labwright.compute.rebuild import rebuild
from labwright.compute.reserve import Reserve
from labwright.compute.restore import settle
from labwright.compute.run_folder import forget_secrets_of_ended, has_folder
from labwright.compute.sdk_folder import write_small_package
from labwright.compute.slurm.commands import SlurmCommands
from labwright.compute.slurm.resources import load_defaults
from labwright.compute.snapshot import SnapshotStore
from labwright.compute.unread_metrics import UnreadMetrics
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now
from labwright.domain.errors import Conflict, Invalid, StorageFailed
from labwright.domain.event import Event, EventType
from labwright.files import is_locked, read_json, write_json, write_whole
from labwright.llm.choice import load_choice
from labwright.paths import ProjectPaths
from labwright.processes import identity, read_identity, user_name
from labwright.server.server_log import log_to_file
from labwright.services import cluster, leftovers, plans
from labwright.settings import Settings, load_settings, unknown_tables
from labwright.store.database import Database
from labwright.tokens import load_or_make

log = logging.getLogger(__name__)
_HEARTBEAT_SECONDS = 5.0
_CHECKED_AT_ONCE_BYTES = 32 << 20  # of the database: a fraction of a second; a gigabyte would take ten
_OTHER_HOST_PATIENCE_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class Listener:
    socket: socket.socket
    url: str
    node_url: str = ""  # the same for other machines, if they can reach it


def serve(project: Path, host: str | None, port: int | None) -> None:
    """Blocks until the server is told to end."""
    settings = load_settings(project)
    project_rules(ProjectPaths(project).config)  # a mistake there is told now, not when the first run starts
    load_choice(project, settings)  # nor when the first question is asked
    paths = prepare_state(project)
    try:
        lock = take_lock(paths)
        log_to_file(paths, as_json=settings.server_log_json)
    except OSError as error:
        raise _unusable(paths, error) from error
    for words in unknown_tables(project):
        log.warning("%s", words)
    listener = listen(host or settings.host, settings.port if port is None else port, chosen=port is not None)
    lab = open_lab(paths, settings, listener.url)
    lab.node_url = listener.node_url
    try:
        _run(lab, listener, lock)
    finally:
        if _is_still_ours(lock):
            paths.server.unlink(missing_ok=True)
        lab.db.close()
        os.close(lock)


def _run(lab: Lab, listener: Listener, lock: int) -> None:
    import uvicorn

    from labwright.server.app import make_app
    from labwright.server.one_packet import OnePacketProtocol

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """As uvicorn does it, but it ends by returning: raising the signal anew would skip the tidying up."""
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self.handle_exit)
            yield

    config = uvicorn.Config(
        make_app(lab, bound_to=listener.socket.getsockname()[0]),
        log_config=None,
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,  # open streams would hold it up for ever
        http=OnePacketProtocol,
        loop="uvloop",
        ws=_web_socket,  # type: ignore[arg-type]
        lifespan="on",
        server_header=False,
        proxy_headers=False,
    )
    _announce(lab, listener.url, lock)
    Server(config).run(sockets=[listener.socket])


def _web_socket(**connection: Any) -> asyncio.Protocol:
    """For who looks into a run's terminal; its library is not imported before."""
    from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

    return WSProtocol(**connection)


def prepare_state(project: Path) -> ProjectPaths:
    paths = ProjectPaths(project)
    if not project.is_dir():
        raise Invalid(f"There is no folder {project}.", hint="Name an existing one with --project.")
    try:
        paths.state.mkdir(mode=0o700, exist_ok=True)
        os.chmod(paths.state, 0o700)
        for folder in (paths.runs, paths.sweeps, paths.wild, paths.plans, paths.logs, paths.backups):
            folder.mkdir(mode=0o700, exist_ok=True)
        (paths.state / ".gitignore").write_text("*\n")
    except OSError as error:
        raise _unusable(paths, error) from error
    return paths


def _unusable(paths: ProjectPaths, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"The state folder {paths.state} cannot be written: {error.strerror or error}.",
        hint="Free disk space or change its permissions; or start in another folder with --project.",
    )


def take_lock(paths: ProjectPaths) -> int:
    """One server a project, on this host by a lock, across hosts by the other's heartbeat."""
    fd = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        holder = read_identity(paths.lock)
        raise _already_running({**(holder.to_dict() if holder else {}), **_last_server(paths)}) from None
    other = _last_server(paths)
    elsewhere = other.get("host") not in (None, socket.gethostname())
    beat = other.get("heartbeat")
    if elsewhere and isinstance(beat, int | float) and time.time() - beat < _OTHER_HOST_PATIENCE_SECONDS:
        os.close(fd)
        raise _already_running(other)
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(identity(os.getpid()).to_dict()).encode(), 0)  # for who misses server.json
    return fd


def _is_still_ours(lock: int) -> bool:
    """Once its file is deleted, as by `git clean` with the whole state folder, another server can take the project."""
    return os.fstat(lock).st_nlink > 0


def server_is_up(paths: ProjectPaths) -> bool:
    """Whether somebody on this host holds the lock; it is not taken."""
    try:
        return is_locked(paths.lock)
    except OSError:  # none was ever up, or it is another user's
        return False


def _last_server(paths: ProjectPaths) -> dict[str, Any]:
    try:
        found = read_json(paths.server)
    except (FileNotFoundError, ValueError):  # none, or one cut off by a crash: either way it says nothing
        return {}
    return found if isinstance(found, dict) else {}


def _already_running(other: dict[str, Any]) -> Conflict:
    where = f"at {other.get('url', 'an unknown address')} on {other.get('host', 'this machine')}"
    return Conflict(
        f"A Labwright server for this project already runs {where} (process {other.get('pid', '?')}).",
        hint="Use it as it is, or end it with: labwright down",
    )


def listen(host: str, port: int, *, chosen: bool) -> Listener:
    """A port that somebody chose must be free; the usual one gives way to any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for an ACK
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        _bind(listener, host, port, chosen)
    except (OSError, OverflowError) as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    address, port = listener.getsockname()[:2]
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)  # noqa: S104
    there = name_for_others(shown, address)
    return Listener(socket=listener, url=f"http://{here}:{port}", node_url=f"http://{there}:{port}" if there else "")


def name_for_others(shown: str, address: str) -> str:
    """What another machine calls us; nothing if we listen to this one alone."""
    if ip_address(address).is_unspecified:
        return socket.gethostname()
    return "" if ip_address(address).is_loopback else shown


def _bind(listener: socket.socket, host: str, port: int, chosen: bool) -> None:
    try:
        listener.bind((host, port))
    except OSError as error:
        if chosen or error.errno != errno.EADDRINUSE:
            raise
        listener.bind((host, 0))
    listener.listen(1024)


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> Conflict | Invalid:
    if isinstance(error, OverflowError):
        return Invalid(f"{port} is no port.", hint="Choose one between 1 and 65535, or leave --port out.")
    if error.errno == errno.EADDRINUSE:
        return Conflict(f"Port {port} on {host} is taken.", hint="Choose another with --port, or leave --port out.")
    return Invalid(f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="Check --host and --port.")


def open_lab(paths: ProjectPaths, settings: Settings, url: str) -> Lab:
    try:
        _place_database(paths, settings)
        if _is_missing(paths.database) and _has_history(paths):
            log.warning("the database is missing; restoring it from the run folders")
            rebuild(paths, log.info)
        journal = Journal(paths.journal)
        cluster_state = ClusterState(settings.lease_dir)
        lab = Lab(
            paths=paths,
            settings=settings,
            db=Database(paths.database, check_at_once=_CHECKED_AT_ONCE_BYTES),
            journal=journal,
            snapshots=SnapshotStore(paths.snapshots, settings.snapshot_file_mb << 20, PrivateFiles(paths)),
            local=LocalLauncher(for_jobs(os.environ, paths.project, sys.prefix), paths.logs / "sidecars.log"),
            slurm=_slurm_launcher(paths, settings),
            cluster=cluster_state,
            gpu_history=GpuHistory(paths.gpu_history, cluster_state.look_around),
            unread=UnreadMetrics(paths.unread_metrics),
            reserve=Reserve(paths.reserve),
            token=load_or_make(paths.token),
            user=user_name(),
            url=url,
        )
        write_small_package(paths.python_path)
        journal.compact(lambda run_id: has_folder(lab, run_id))
        lab.db.on_commit(partial(forget_secrets_of_ended, lab))
        leftovers.remove(leftovers.secrets(lab, time.time()))
        leftovers.remove_folders(leftovers.rehearsals(lab))
    except OSError as error:
        raise _unusable(paths, error) from error
    if not lab.token:
        raise Invalid(f"The token in {paths.token} is empty.", hint="Delete the file; the next start makes a new one.")
    settle(lab)
    cluster.restore(lab)
    plans.settle(lab)
    return lab


def _slurm_launcher(paths: ProjectPaths, settings: Settings) -> SlurmLauncher:
    commands = SlurmCommands.from_environment(os.environ)
    return SlurmLauncher(commands, load_defaults(paths.project), paths, settings.grace_seconds)


def _is_missing(database: Path) -> bool:
    """Also when it was emptied: an empty file is a valid database, of no runs."""
    return not database.exists() or database.stat().st_size == 0


def _place_database(paths: ProjectPaths, settings: Settings) -> None:
    """SQLite's log fails on network file systems: there the file goes to a local folder, and a pointer says where."""
    if paths.database_pointer.exists() or (paths.state / "labwright.db").exists():
        return
    if not settings.state_dir and not machine.is_network(paths.state.resolve()):
        return
    base = Path(settings.state_dir or "~/.local/state/labwright").expanduser().absolute()
    folder = base / hashlib.sha256(str(paths.project).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(paths.database_pointer, f"{folder / 'labwright.db'}\n".encode())


def _has_history(paths: ProjectPaths) -> bool:
    return (
        bool(newest_backups(paths.backups))
        or any(paths.runs.iterdir())
        or any(paths.plans.iterdir())
        or (paths.journal.exists() and paths.journal.stat().st_size > 0)
    )


def _announce(lab: Lab, url: str, lock: int) -> None:
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SERVER_STARTED, actor=str(SYSTEM), time=now(), data={"url": url}))
    own = identity(os.getpid())
    facts = {"url": url, "host": own.host, "boot_id": own.boot_id, "pid": own.pid, "start_time": own.start_time}

    def write() -> None:
        write_json(lab.paths.server, {**facts, "host": own.host, "heartbeat": time.time()}, sync=False)

    def beat() -> None:
        while True:
            time.sleep(_HEARTBEAT_SECONDS)
            if not _is_still_ours(lock):
                log.error(
                    "%s was deleted, so another server may start here: this one ends. Runs go on.", lab.paths.lock
                )
                os.kill(os.getpid(), signal.SIGTERM)
                return
            try:
                write()
            except OSError as error:  # a full disk; the next beat may find room
                log.warning("the heartbeat could not be written: %s", error)

    try:
        write()
    except OSError as error:
        raise _unusable(lab.paths, error) from error
    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    log.info("listening on %s", url)
