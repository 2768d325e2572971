"""The state of metric files when the command started. Only what is written later belongs to the run."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labwright.paths import RunPaths
from labwright.sidecar.sources.trainer_states import TRAINER_STATE, OldState, folder_of_states, states_before

METRICS_FILE = "metrics.jsonl"
CLOCK_SECONDS = 0.01  # file systems use a coarser clock


@dataclass(frozen=True, slots=True)
class Start:
    time: float
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # real path: inode and size
    states: Mapping[str, list[OldState]] = field(default_factory=dict)  # by folder

    def size_of(self, path: str, now: os.stat_result, otherwise: int) -> int:
        """Return the offset at which this run's bytes start."""
        inode, size = self.sizes.get(path, (now.st_ino, otherwise))
        return size if inode == now.st_ino and size <= now.st_size else 0

    def output_of(self, path: str) -> int:
        """Return the offset at which the output of this try starts; output of earlier tries comes before it."""
        return self.sizes.get(os.path.realpath(path), (0, 0))[1]

    def states_in(self, folder: str) -> list[OldState]:
        """Return the trainer states of earlier runs in a folder."""
        return self.states[folder] if folder in self.states else states_before(folder, self.time)


def note_start(paths: RunPaths, spec: dict[str, Any]) -> Start:
    """Record sizes of files with known names. This costs every run some microseconds."""
    moment = time.time() - CLOCK_SECONDS
    sizes = {}
    default_files = [f"{spec['sidecar']['workdir']}/{name}" for name in (METRICS_FILE, TRAINER_STATE)]
    for path in [paths.output, *default_files, *declared_files(spec)]:
        try:
            found = os.stat(path)
        except OSError:
            continue
        sizes[os.path.realpath(path)] = (found.st_ino, found.st_size)
    folders = {folder_of_states(path) for path in sizes if os.path.basename(path) == TRAINER_STATE}
    return Start(moment, sizes, {folder: states_before(folder, time.time()) for folder in folders})


def declared_files(spec: dict[str, Any]) -> list[str]:
    """Return the metric files that the project or the run's environment declares."""
    options = spec["sidecar"].get("metrics", {})
    names = [*options.get("files", ()), *split_names(options.get("declared", ""))]
    return [path for name in names for path in expand(spec["sidecar"]["workdir"], name)]


def expand(folder: str, name: str) -> list[str]:
    path = os.path.normpath(os.path.join(folder, os.path.expanduser(name)))
    return sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path]


def split_names(text: str) -> list[str]:
    return [name for name in text.split(":") if name]
