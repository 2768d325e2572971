"""Start a project's server (state folder, lock, port, database) and clean up at its end.

If the server cannot start, it reports why and changes nothing.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path

from labwright.compute.database.backups import has_news, make_backup
from labwright.compute.lab import Lab
from labwright.compute.runs.alert_rules import project_rules
from labwright.domain.actor import SYSTEM
from labwright.domain.clock import now, rfc3339
from labwright.domain.errors import LabwrightError
from labwright.domain.event import Event, EventType
from labwright.files import write_json, write_whole
from labwright.llm.choice import load_targets
from labwright.paths import ProjectPaths
from labwright.processes import identity
from labwright.server.listening import Listener, last_port, listen
from labwright.server.opening import open_lab, prepare_state, unusable
from labwright.server.server_lock import is_still_ours, take_lock
from labwright.settings import load_settings, unknown_tables

log = logging.getLogger(__name__)
_HEARTBEAT_SECONDS = 5.0


def serve(project: Path, host: str | None, port: int | None) -> None:
    """Run the server until a signal ends it."""
    settings = load_settings(project)
    project_rules(ProjectPaths(project).config)  # report errors in the file now, not when the first run starts
    load_targets(project, settings)  # likewise for models
    paths = prepare_state(project)
    try:
        lock = take_lock(paths)
        log_to_file(paths, as_json=settings.server_log_json)
    except OSError as error:
        raise unusable(paths, error) from error
    for message in unknown_tables(project):
        log.warning("%s", message)
    listener = listen(
        host or settings.host, settings.port if port is None else port, chosen=port is not None, before=last_port(paths)
    )
    lab = open_lab(paths, settings, listener.url)
    lab.node_url = listener.node_url
    try:
        from labwright.server import http_server  # late: errors above are reported without loading the application
        from labwright.server.app import make_app

        app = make_app(lab, bound_to=listener.socket.getsockname()[0])
        lab.db.is_ours = lambda: is_still_ours(lock)
        _announce(lab, listener, lock)
        http_server.run(app, listener.socket)
    finally:
        if is_still_ours(lock):
            paths.server.unlink(missing_ok=True)
            _back_up_outside_database(lab)
        lab.db.close()
        os.close(lock)


def _back_up_outside_database(lab: Lab) -> None:
    """Back up a database that is outside of the project: the next start may be on another machine."""
    if lab.paths.database_pointer.exists():
        try:
            if has_news(lab):
                make_backup(lab)
        except (OSError, sqlite3.Error, LabwrightError) as error:
            log.error("backup at shutdown failed: %s", error)


def _announce(lab: Lab, listener: Listener, lock: int) -> None:
    """Store the start as an event, and write `server.json` now and with every heartbeat."""
    url = listener.url
    with lab.db.transaction() as tx:
        tx.emit(Event(type=EventType.SERVER_STARTED, actor=str(SYSTEM), time=now(), data={"url": url}))
    own = identity(os.getpid())
    facts = {"url": url, "host": own.host, "boot_id": own.boot_id, "pid": own.pid, "start_time": own.start_time}

    def write() -> None:
        write_json(lab.paths.server, {**facts, "heartbeat": time.time()}, sync=False)

    def beat() -> None:
        while True:
            time.sleep(_HEARTBEAT_SECONDS)
            if not is_still_ours(lock):
                log.error(
                    "%s was deleted, so another server may start here. This server stops; runs continue.",
                    lab.paths.lock,
                )
                os.kill(os.getpid(), signal.SIGTERM)
                return
            try:
                write()
            except OSError as error:  # full disk; the next heartbeat tries again
                log.warning("cannot write the heartbeat: %s", error)

    try:
        write()
        write_whole(lab.paths.port, f"{listener.port}\n".encode(), sync=False)
    except OSError as error:
        raise unusable(lab.paths, error) from error
    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    log.info("listening on %s", url)


class _ServerLog(logging.handlers.RotatingFileHandler):
    """Drops lines while the disk is full. Reporting each on stderr would block once nobody reads it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in the standard library
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False)


def log_to_file(paths: ProjectPaths, *, as_json: bool) -> None:
    handler = _ServerLog(paths.server_log, maxBytes=10 << 20, backupCount=3)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if as_json else plain)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
