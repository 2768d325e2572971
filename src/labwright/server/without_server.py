"""Verbs that need no server, or that require it to be down: `python -m labwright.server.without_server VERB`.

Users call `labwright db rebuild`, `labwright backup`, `labwright restore` and `labwright doctor`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labwright.compute.database.archive import archive
from labwright.compute.database.backups import copy_database
from labwright.compute.database.place import place_database
from labwright.compute.database.rebuild import rebuild
from labwright.compute.database.restore import restore
from labwright.domain.errors import LabwrightError, NotFound
from labwright.paths import ProjectPaths
from labwright.server.doctor import check_setup
from labwright.server.opening import unusable
from labwright.server.server_lock import take_lock
from labwright.settings import load_settings
from labwright.store.database import Database


def main() -> None:
    parser = argparse.ArgumentParser(prog="labwright.server.without_server")
    parser.add_argument("verb", choices=("rebuild", "backup", "archive", "restore", "check"))
    parser.add_argument("--project", type=Path, required=True)
    for name in ("--file", "--database", "--backup"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    try:
        found = _result(options.verb, ProjectPaths(options.project.resolve()), options)
    except LabwrightError as error:
        print(json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}))
        sys.exit(1)
    print(json.dumps(found))


@contextlib.contextmanager
def _without_server(paths: ProjectPaths) -> Iterator[None]:
    """Hold the server's lock, so that no server starts meanwhile."""
    if not paths.state.is_dir():
        raise NotFound(f"{paths.state} does not exist.", hint="Name the project folder with --project.")
    try:
        lock = take_lock(paths)
        try:
            place_database(paths, load_settings(paths.project).state_dir)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        raise unusable(paths, error) from error


def _result(verb: str, paths: ProjectPaths, options: argparse.Namespace) -> Any:
    """Carry out the verb and return its result as plain values."""
    if verb == "check":
        return [asdict(check) for check in check_setup(paths)]
    if verb == "archive":
        return asdict(archive(paths, options.database, options.file))
    if verb == "restore":
        return restore(paths, options.file)
    with _without_server(paths):
        if verb == "rebuild":
            return asdict(rebuild(paths, lambda text: print(text, file=sys.stderr, flush=True), options.backup))
        with contextlib.closing(Database(paths.database)) as database:
            return {"path": str(copy_database(database, paths.backups, load_settings(paths.project).backups_kept))}


if __name__ == "__main__":
    main()
