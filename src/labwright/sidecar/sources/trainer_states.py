"""Hugging Face's `trainer_state.json`: its content, and which entries an earlier run left there.

A run that continues from a checkpoint repeats the history up to it. A run that starts from scratch overwrites the old
history. The first state that a run writes shows which: it continues from an old state if it starts with the same
entries and has a higher global step.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

TRAINER_STATE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-\d+$")
_LARGEST = 64 << 20
_MOST_OLD = 50  # per folder, the newest
OldState = tuple[int, int, int]  # global step, number of entries, checksum of them


@dataclass(frozen=True, slots=True)
class State:
    step: int
    history: list[dict[str, Any]]
    sums: list[int]  # checksum of all entries up to each

    def shares(self, sums: list[int]) -> int:
        """Return how many entries at the start are the same."""
        return sum(mine == other for mine, other in zip(self.sums, sums, strict=False))


def read_state(path: str) -> State | None:
    """Return the state, or None if it is half written, too large or not a state."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            found = json.loads(file.read())
        history = [record for record in found["log_history"] if isinstance(record, dict)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    step = found.get("global_step")
    sums, checksum = [], 0
    for record in history:
        checksum = zlib.crc32(json.dumps(record, sort_keys=True).encode(), checksum)
        sums.append(checksum)
    return State(step if type(step) is int else len(history), history, sums)


def folder_of_states(path: str) -> str:
    """Return the folder whose checkpoints share one history."""
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if _CHECKPOINT.search(folder) else folder


def states_before(folder: str, moment: float) -> list[OldState]:
    """Return the states in the folder that were written before this moment."""
    old = sorted((time, path) for path, time in _states_in(folder) if time < moment)[-_MOST_OLD:]
    states = [state for _, path in old if (state := read_state(path))]
    return [(state.step, len(state.history), state.sums[-1]) for state in states if state.history]


def first_since(folder: str, moment: float, newest: State) -> State:
    """Return the state with the fewest steps that was written since then: several may exist at the first look."""
    written = [state for path, time in _states_in(folder) if time >= moment and (state := read_state(path))]
    return min([newest, *written], key=lambda state: state.step)


def entries_before(first: State, old: Iterable[OldState]) -> int:
    """Return how many entries of a run's first state belong to an earlier run; 0 if it started from scratch."""
    inherited = (
        count
        for step, count, known in old
        if step < first.step and count <= len(first.sums) and first.sums[count - 1] == known
    )
    return max(inherited, default=0)


def _states_in(folder: str) -> list[tuple[str, float]]:
    """Return the paths of states with the time when each was written."""
    found = []
    names = [name for name in os.listdir(folder) if _CHECKPOINT.search(name)]
    for path in [f"{folder}/{TRAINER_STATE}", *(f"{folder}/{name}/{TRAINER_STATE}" for name in names)]:
        try:
            found.append((path, os.path.getmtime(path)))
        except OSError:  # missing, or a checkpoint that was deleted meanwhile
            continue
    return found
