"""What needs no server, or none may run for: `python -m labwright.server.offline VERB`.

People use `labwright db rebuild`, `labwright backup`, `labwright restore` and `labwright doctor`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labwright.compute import machine
from labwright.compute.alert_rules import project_rules
from labwright.compute.archive import archive
from labwright.compute.backups import copy_database
from labwright.compute.notify.channels import load_channels
from labwright.compute.rebuild import rebuild
from labwright.compute.restore import restore
from labwright.compute.slurm.probe import probe_slurm
from labwright.compute.slurm.resources import load_defaults
from labwright.domain.errors import Conflict, LabwrightError, NotFound
from labwright.gpu import lease_dir
from labwright.gpu.probe import run_detector
from labwright.llm.models import Models
from labwright.paths import ProjectPaths
from labwright.sandbox import containment
from labwright.server.listening import listen
from labwright.server.server_lock import server_is_up, take_lock
from labwright.services.housekeeping import database_bytes
from labwright.settings import Settings, load_settings, unknown_tables
from labwright.store.database import Database

_DRIVER_SECONDS = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="labwright.server.offline")
    parser.add_argument("verb", choices=tuple(_VERBS))
    parser.add_argument("--project", type=Path, required=True)
    for name in ("--file", "--database", "--backup"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    try:
        found = _VERBS[options.verb](ProjectPaths(options.project.resolve()), options)
    except LabwrightError as error:
        print(json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}))
        sys.exit(1)
    print(json.dumps(found))


@contextlib.contextmanager
def _without_server(paths: ProjectPaths) -> Iterator[None]:
    """Under the server's own lock, so that neither meets the other."""
    if not paths.state.is_dir():
        raise NotFound(f"There is no {paths.state}.", hint="Name the project's folder with --project.")
    lock = take_lock(paths)
    try:
        yield
    finally:
        os.close(lock)


def _rebuild(paths: ProjectPaths, options: argparse.Namespace) -> dict[str, Any]:
    with _without_server(paths):
        return asdict(rebuild(paths, lambda text: print(text, file=sys.stderr, flush=True), options.backup))


def _backup(paths: ProjectPaths, options: argparse.Namespace) -> dict[str, Any]:  # noqa: ARG001
    with _without_server(paths):
        database = Database(paths.database)
        try:
            return {"path": str(copy_database(database, paths.backups, load_settings(paths.project).backups_kept))}
        finally:
            database.close()


def _archive(paths: ProjectPaths, options: argparse.Namespace) -> dict[str, Any]:
    return asdict(archive(paths, options.database, options.file))


def _restore(paths: ProjectPaths, options: argparse.Namespace) -> dict[str, Any]:
    return restore(paths, options.file)


def _check(paths: ProjectPaths, options: argparse.Namespace) -> list[dict[str, str]]:  # noqa: ARG001
    settings = load_settings(paths.project)
    return [
        _tables(paths),
        _file_system(paths),
        _database(paths),
        _address(paths, settings),
        _lease_dir(settings),
        _driver(),
        _slurm(),
        _sandbox(),
        *_language_models(paths, settings),
    ]


def _sandbox() -> dict[str, str]:
    """What generated code could reach while a plan is validated."""
    held = containment()
    if held.kind == "bubblewrap":
        return _finding("sandbox", "ok", f"bubblewrap; generated code has no {', no '.join(held.contained[1:3])}")
    said = f"{held.reason}; generated code is limited, but reaches {', '.join(held.not_contained)}"
    return _finding("sandbox", "warn", said, "Install bubblewrap, e.g. apt-get install bubblewrap.")


def _finding(name: str, status: str, said: str, fix: str = "") -> dict[str, str]:
    return {"name": name, "status": status, "said": said, "fix": fix}


def _tables(paths: ProjectPaths) -> dict[str, str]:
    """Those of `labwright.toml` as the server would read them; what is said of models has a line of its own."""
    try:
        project_rules(paths.config)
        load_channels(paths)
        load_defaults(paths.project)
    except LabwrightError as error:
        return _finding("tables", "fail", error.message, error.hint)
    unknown = unknown_tables(paths.project)
    if unknown:
        return _finding(
            "tables", "warn", "; ".join(unknown), f"Mend {paths.config}, then labwright down, labwright up."
        )
    return _finding("tables", "ok", "every table is known" if paths.config.exists() else "none")


def _file_system(paths: ProjectPaths) -> dict[str, str]:
    folder = paths.state if paths.state.exists() else paths.project
    kind = machine.file_system_of(folder.resolve())
    if machine.is_network(folder.resolve()):
        return _finding("file system", "ok", f"{kind}, a network one: the database is kept on a local disk")
    return _finding("file system", "ok", kind)


def _database(paths: ProjectPaths) -> dict[str, str]:
    database = paths.database
    if not database.exists():
        return _finding("database", "ok", "none yet; the first labwright up makes it")
    try:
        said = _integrity(database)
    except sqlite3.Error as error:
        said = str(error)
    if said == "ok":
        return _finding("database", "ok", f"sound, {database_bytes(paths) / 1e6:.1f} MB on disk")
    fix = "labwright down, then labwright db rebuild: it keeps the damaged file aside"
    return _finding("database", "fail", f"damaged: {said}", fix)


def _integrity(database: Path) -> str:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    finally:
        connection.close()


def _address(paths: ProjectPaths, settings: Settings) -> dict[str, str]:
    """Whether the next server could listen where the settings say, and who will reach it there."""
    where = f"{settings.host}:{settings.port}"
    if server_is_up(paths):
        return _finding("address", "ok", "in use by this project's server")
    try:
        listener = listen(settings.host, settings.port, chosen=True)
    except Conflict as error:
        return _finding("address", "warn", error.message, "labwright up takes a free port, unless you give it --port.")
    except LabwrightError as error:
        return _finding("address", "fail", error.message, "Mend host and port in labwright.toml, or leave them out.")
    listener.socket.close()
    if listener.node_url:
        return _finding("address", "ok", f"{where} is free; others come by this host's name, or one of allowed_hosts")
    return _finding("address", "ok", f"{where} is free; only this machine reaches it, others by ssh -L")


def _lease_dir(settings: Settings) -> dict[str, str]:
    path = settings.lease_dir
    try:
        lease_dir.check(path)
    except LabwrightError as error:
        return _finding("GPU leases", "fail", error.message, error.hint)
    said = path if lease_dir.exists(path) else f"none taken yet; they will be in {path}"
    return _finding("GPU leases", "ok", said)


def _driver() -> dict[str, str]:
    found = run_detector(timeout=_DRIVER_SECONDS)
    if found.errors:
        fix = "Run nvidia-smi to see what the driver says; runs go on without GPUs until it answers."
        return _finding("GPU driver", "warn", "; ".join(found.errors), fix)
    if not found.gpus:
        return _finding("GPU driver", "ok", "none, so runs use the CPU")
    return _finding("GPU driver", "ok", f"{len(found.gpus)} GPUs by {found.source}, driver {found.driver_version}")


def _slurm() -> dict[str, str]:
    found = probe_slurm()
    if found.answers:
        said = "; ".join([found.said, *found.unwell])
        fix = "See sinfo -R; what can only run there waits." if found.unwell else ""
        return _finding("Slurm", "warn" if found.unwell else "ok", said, fix)
    if not found.is_configured:
        return _finding("Slurm", "ok", "none is set up here")
    fix = "Runs wait until it answers; to use this machine meanwhile: labwright cluster --set cpu_only"
    return _finding("Slurm", "fail", found.said, fix)


def _language_models(paths: ProjectPaths, settings: Settings) -> list[dict[str, str]]:
    """Each one that is configured gets one small question: a key is only good if it opens something."""
    try:
        models = Models(paths, settings)
    except LabwrightError as error:
        return [_finding("model", "fail", error.message, error.hint)]
    if not models.configured:
        return [_finding("model", "ok", "none: offline rules, and nothing leaves this machine")]
    return [_finding("model", "ok" if one.ok else "fail", one.said, one.hint) for one in models.check()]


_VERBS: dict[str, Callable[[ProjectPaths, argparse.Namespace], Any]] = {
    "rebuild": _rebuild,
    "backup": _backup,
    "archive": _archive,
    "restore": _restore,
    "check": _check,
}


if __name__ == "__main__":
    main()
