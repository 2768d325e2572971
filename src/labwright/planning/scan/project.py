"""The scan of a project: what can be started, with which flags, what it reports, in which environment.

Nothing of the project is run or imported. What the scan cannot tell, it leaves out and says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from labwright.domain.errors import Invalid
from labwright.planning.scan import remembered
from labwright.planning.scan.entry_points import read_entry_points
from labwright.planning.scan.environment import read_environment
from labwright.planning.scan.evaluation import read_evaluation_files
from labwright.planning.scan.facts import ProjectScan
from labwright.planning.scan.launches import read_launches
from labwright.planning.scan.modules import Modules
from labwright.planning.scan.walk import Limits, Tree, walk


def scan_project(
    folder: str | os.PathLike[str],
    *,
    earlier_runs: Iterable[str] = (),
    history: str | None = None,
    environ: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> ProjectScan:
    """`earlier_runs` are commands, newest first; `history` is a shell's history file, read only if it is given."""
    root = Path(folder).resolve()
    if not root.is_dir():
        raise Invalid(f"{folder} is not a folder", hint="Give the folder of the project.")
    tree = walk(str(root), limits or Limits())
    modules = Modules(tree)
    entries = remembered.entry_points(tree, lambda: read_entry_points(tree, modules))
    environment = read_environment(tree, modules, entries, os.environ if environ is None else environ)
    launches = read_launches(tree, earlier_runs, history)
    protected = read_evaluation_files(tree, entries)
    _note_notebooks(tree)
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


def _note_notebooks(tree: Tree) -> None:
    for path in tree.files:
        if path.endswith(".ipynb"):
            tree.skip(path, "notebooks are not read")
