"""Verbs that need no server, or that require it to be down: `python -m labwright.server.without_server VERB`.

Users call `labwright db rebuild`, `labwright backup`, `labwright restore` and `labwright doctor`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
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
    return [asdict(finding) for finding in check_setup(paths)]


_VERBS: dict[str, Callable[[ProjectPaths, argparse.Namespace], Any]] = {
    "rebuild": _rebuild,
    "backup": _backup,
    "archive": _archive,
    "restore": _restore,
    "check": _check,
}


if __name__ == "__main__":
    main()
