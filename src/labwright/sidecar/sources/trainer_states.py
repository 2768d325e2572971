"""Hugging Face's `trainer_state.json`, as files: what stands in them, and which entries an earlier run left there.

A run that goes on from a checkpoint repeats the history up to it; one that begins anew writes a history of its own
over the old one. The first state that a run writes tells which: it goes on from an old state if it holds the same
entries at its beginning and has come further than that one's global step.
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
_MOST_OLD = 50  # of one folder, the newest
OldState = tuple[int, int, int]  # its global step, how many entries it has, and their sum


@dataclass(frozen=True, slots=True)
class State:
    step: int
    history: list[dict[str, Any]]
    sums: list[int]  # of the entries up to each

    def shares(self, sums: list[int]) -> int:
        """How many entries at the beginning are the same."""
        return sum(mine == other for mine, other in zip(self.sums, sums, strict=False))


def read_state(path: str) -> State | None:
    """None if it is half written, too large or something else."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            found = json.loads(file.read())
        history = [record for record in found["log_history"] if isinstance(record, dict)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    step = found.get("global_step")
    return State(step if type(step) is int else len(history), history, _sums(history))


def _sums(history: list[dict[str, Any]]) -> list[int]:
    sums, known = [], 0
    for record in history:
        known = zlib.crc32(json.dumps(record, sort_keys=True).encode(), known)
        sums.append(known)
    return sums


def folder_of_states(path: str) -> str:
    """A folder's checkpoints hold the same history, so they belong together."""
    folder = os.path.dirname(path)
    return os.path.dirname(folder) if _CHECKPOINT.search(folder) else folder


def states_before(folder: str, moment: float) -> list[OldState]:
    old = sorted((time, path) for path, time in _states_in(folder) if time < moment)[-_MOST_OLD:]
    states = [state for _, path in old if (state := read_state(path))]
    return [(state.step, len(state.history), state.sums[-1]) for state in states if state.history]


def first_since(folder: str, moment: float, newest: State) -> State:
    """Of the states written since then the one with the fewest steps: there may be several before anybody looks."""
    written = [state for path, time in _states_in(folder) if time >= moment and (state := read_state(path))]
    return min([newest, *written], key=lambda state: state.step)


def entries_before(first: State, old: Iterable[OldState]) -> int:
    """How many entries of the first state that a run wrote are an earlier run's; none if it began anew."""
    goes_on = (
        count
        for step, count, known in old
        if step < first.step and count <= len(first.sums) and first.sums[count - 1] == known
    )
    return max(goes_on, default=0)


def _states_in(folder: str) -> list[tuple[str, float]]:
    """With the time when each was written."""
    found = []
    names = [name for name in os.listdir(folder) if _CHECKPOINT.search(name)]
    for path in [f"{folder}/{TRAINER_STATE}", *(f"{folder}/{name}/{TRAINER_STATE}" for name in names)]:
        try:
            found.append((path, os.path.getmtime(path)))
        except OSError:  # none there, or a checkpoint that was swept away meanwhile
            continue
    return found
