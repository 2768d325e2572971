"""What needs the database while no server runs: `python -m labwright.server.offline rebuild|check`.

People use `labwright db rebuild` and `labwright doctor`.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from dataclasses import asdict
from pathlib import Path

from labwright.compute import machine
from labwright.compute.alert_rules import project_rules
from labwright.compute.rebuild import Rebuilt, rebuild
from labwright.domain.errors import LabwrightError, NotFound
from labwright.gpu import lease_dir
from labwright.gpu.probe import run_detector
from labwright.llm.models import Models
from labwright.paths import ProjectPaths
from labwright.sandbox import containment
from labwright.server.boot import take_lock
from labwright.services.housekeeping import database_bytes
from labwright.settings import Settings, load_settings, unknown_tables

_DRIVER_SECONDS = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="labwright.server.offline")
    parser.add_argument("verb", choices=("rebuild", "check"))
    parser.add_argument("--project", type=Path, required=True)
    options = parser.parse_args()
    paths = ProjectPaths(options.project.resolve())
    try:
        found = asdict(_rebuild(paths)) if options.verb == "rebuild" else _check(paths)
    except LabwrightError as error:
        print(json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}))
        sys.exit(1)
    print(json.dumps(found))


def _rebuild(paths: ProjectPaths) -> Rebuilt:
    """Under the server's own lock, so that neither meets the other."""
    if not paths.state.is_dir():
        raise NotFound(f"There is no {paths.state}.", hint="Name the project's folder with --project.")
    lock = take_lock(paths)
    try:
        return rebuild(paths, lambda text: print(text, file=sys.stderr, flush=True))
    finally:
        os.close(lock)


def _check(paths: ProjectPaths) -> list[dict[str, str]]:
    settings = load_settings(paths.project)
    return [
        _rules(paths),
        _file_system(paths),
        _database(paths),
        _lease_dir(settings),
        _driver(),
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


def _rules(paths: ProjectPaths) -> dict[str, str]:
    """The tables of `labwright.toml` as the server would read them."""
    try:
        project_rules(paths.config)
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


def _lease_dir(settings: Settings) -> dict[str, str]:
    path = settings.lease_dir
    if not lease_dir.exists(path):
        return _finding("GPU leases", "ok", f"none taken yet; they will be in {path}")
    try:
        with lease_dir.locked(path, create=False):
            return _finding("GPU leases", "ok", path)
    except LabwrightError as error:
        return _finding("GPU leases", "fail", error.message, error.hint)


def _driver() -> dict[str, str]:
    found = run_detector(timeout=_DRIVER_SECONDS)
    if found.errors:
        fix = "Run nvidia-smi to see what the driver says; runs go on without GPUs until it answers."
        return _finding("GPU driver", "warn", "; ".join(found.errors), fix)
    if not found.gpus:
        return _finding("GPU driver", "ok", "none, so runs use the CPU")
    return _finding("GPU driver", "ok", f"{len(found.gpus)} GPUs by {found.source}, driver {found.driver_version}")


def _language_models(paths: ProjectPaths, settings: Settings) -> list[dict[str, str]]:
    """Each one that is configured gets one small question: a key is only good if it opens something."""
    try:
        models = Models(paths, settings)
    except LabwrightError as error:
        return [_finding("model", "fail", error.message, error.hint)]
    if not models.configured:
        return [_finding("model", "ok", "none: offline rules, and nothing leaves this machine")]
    return [_finding("model", "ok" if one.ok else "fail", one.said, one.hint) for one in models.check()]


if __name__ == "__main__":
    main()
