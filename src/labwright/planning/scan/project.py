"""Scan a project: its scripts, environment, launch commands and protected files."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.planning.scan.commands import read_launches
from labwright.planning.scan.entry_points import read_entry_points
from labwright.planning.scan.environment import read_environment
from labwright.planning.scan.facts import EntryPoint, Kind, ProjectScan, ProtectedFile, Skipped
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import ProjectTree, ScanLimits, walk

_CODE = re.compile(
    r"(^|[_-])(eval|evaluate|evaluation|evaluator|metrics?|scor(e|ing|er)|benchmark|judge)([_-]|$)", re.IGNORECASE
)
_DATA = re.compile(
    r"(^|[_.-])(test|val|valid|validation|dev|eval|heldout|holdout|gold|labels?)([_.-]|$)", re.IGNORECASE
)
_DATA_ENDS = (".csv", ".tsv", ".json", ".jsonl", ".npz", ".npy", ".parquet", ".txt", ".pt", ".bin", ".arrow", ".h5")
_MAX_PROTECTED = 200
HELD_OUT = "held-out data, by its name"


def read_evaluation_files(tree: ProjectTree, entries: list[EntryPoint]) -> list[ProtectedFile]:
    started = {entry.path for entry in entries if entry.kind is Kind.EVALUATE}
    reasons = {path: reason for path in tree.files if (reason := _reason_to_protect(path, started))}
    if len(reasons) > _MAX_PROTECTED:
        tree.skip(".", f"{len(reasons) - _MAX_PROTECTED} more evaluation files")
    return [ProtectedFile(path=path, reason=reason) for path, reason in reasons.items()][:_MAX_PROTECTED]


def _reason_to_protect(path: str, started: set[str]) -> str:
    folder, _, name = path.rpartition("/")
    names = (name.partition(".")[0], folder.rpartition("/")[2])
    if path in started:
        return "evaluates"
    if name.endswith(".py") and not name.startswith("test_") and any(_CODE.search(part) for part in names):
        return "evaluation code, by its name"
    if name.endswith(_DATA_ENDS) and "requirements" not in name and any(_DATA.search(part) for part in names):
        return HELD_OUT
    return ""


_MAX_CACHED = 4
_Signature = frozenset[tuple[str, int, int, int, int]]
_cache: OrderedDict[str, tuple[_Signature, list[EntryPoint], list[Skipped]]] = OrderedDict()


def _cached_entry_points(tree: ProjectTree, modules: Modules) -> list[EntryPoint]:
    """Return the entry points from the cache if no file changed since, by size, times and inode; else read them."""
    files: set[tuple[str, int, int, int, int]] = set()
    for path in tree.files:
        try:
            about = os.stat(os.path.join(tree.root, path))
            files.add((path, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino))
        except OSError:  # the file was deleted since
            files.add((path, 0, 0, 0, 0))
    cached = _cache.get(tree.root)
    if cached is not None and cached[0] == files:
        tree.skipped += cached[2]
        return cached[1]
    before = len(tree.skipped)
    entries = read_entry_points(tree, modules)
    if tree.complete:
        _cache[tree.root] = (frozenset(files), entries, tree.skipped[before:])
        _cache.move_to_end(tree.root)
        while len(_cache) > _MAX_CACHED:
            _cache.popitem(last=False)
    return entries


def scan_project(
    folder: str | os.PathLike[str],
    *,
    earlier_runs: Iterable[str] = (),
    history: str | None = None,
    environ: Mapping[str, str] | None = None,
    limits: ScanLimits | None = None,
) -> ProjectScan:
    """Scan a project folder.

    `earlier_runs` are commands, newest first; `history` is a shell history file, read only if it is given.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise Invalid(f"{folder} is not a folder", hint="Give the folder of the project.")
    tree = walk(str(root), limits or ScanLimits())
    modules = Modules(tree)
    entries = _cached_entry_points(tree, modules)
    environment = read_environment(tree, modules, entries, os.environ if environ is None else environ)
    launches = read_launches(tree, earlier_runs, history)
    protected = read_evaluation_files(tree, entries)
    for path in tree.files:
        if path.endswith(".ipynb"):
            tree.skip(path, "notebooks are not read")
    return ProjectScan(
        folder=str(root),
        entry_points=tuple(entries),
        environment=environment,
        launches=tuple(launches),
        evaluation_files=tuple(protected),
        skipped=tree.all_skipped(),
        files_seen=len(tree.files),
        seconds=round(tree.seconds, 3),
        complete=tree.complete,
    )
