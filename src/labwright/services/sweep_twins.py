"""The same configurations twice: a sweep that another one has done already is refused, one in part is told of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from labwright.domain.errors import Conflict
from labwright.domain.run import RunRecord, RunStatus
from labwright.domain.sweep import Sweep
from labwright.store import sweeps

_CAME_TO_NOTHING = frozenset({RunStatus.FAILED, RunStatus.LOST, RunStatus.STOPPED})
_Label = tuple[str | None, int | None]  # configuration and seed
_SAME_FIELDS = ("workdir", "env")  # of the runs, beside command and parameters


def look_for_twins(
    connection: sqlite3.Connection, sweep: Sweep, planned: Sequence[RunRecord], *, again: bool
) -> list[str]:
    """A warning, or none. Refuses what is there already with the same code, unless it is meant to be done `again`."""
    found = [other for other in sweeps.with_command(connection, sweep.base_command) if _is_like(other, sweep)]
    if not planned:
        return [words for other in found if (words := _compared_adaptive(sweep, other, again))][:1]
    wanted = [_label(json.loads(record.text)) for record in planned] if found else []
    return [words for other in found if (words := _compared(connection, sweep, wanted, other, again))][:1]


def _is_like(other: Sweep, sweep: Sweep) -> bool:
    return other.id != sweep.id and all(other.template.get(name) == sweep.template[name] for name in _SAME_FIELDS)


def _label(run: dict[str, Any]) -> _Label:
    return run["config_hash"], run["seed"]


def _compared(connection: sqlite3.Connection, sweep: Sweep, wanted: list[_Label], other: Sweep, again: bool) -> str:
    rows = sweeps.runs_of(connection, other.id)
    known = {(row.config_hash, row.seed) for row in rows if row.status not in _CAME_TO_NOTHING}
    repeated = sum(label in known for label in wanted)
    if repeated == len(wanted) and _code(sweep) == _code(other) and not again:
        raise _there_already(other, f"{_named(other)} has all {repeated} of these runs already, with the same code.")
    if not repeated:
        return ""
    return (
        f"{repeated} of its {len(wanted)} runs are in {_named(other)} already; to add to that one, extend it instead."
    )


def _compared_adaptive(sweep: Sweep, other: Sweep, again: bool) -> str:
    """Which runs it will make nobody knows yet; the same if all it starts from is the same."""
    if sweep.parameters != other.parameters:
        return ""
    begins_alike = (sweep.sampling_seed, sweep.metric, sweep.seeds) == (other.sampling_seed, other.metric, other.seeds)
    if begins_alike and _code(sweep) == _code(other) and not again:
        words = f"{_named(other)} begins alike, with the same code, and asks for the same configurations."
        raise _there_already(other, words)
    return f"{_named(other)} has the same command and parameters; to add to it, extend it instead."


def _there_already(other: Sweep, words: str) -> Conflict:
    return Conflict(
        words,
        hint=f"See what it found: labwright sweep show {other.id} · add to it: labwright sweep extend {other.id} · "
        "to run all of it once more: --again, or `again` over HTTP.",
    )


def _named(sweep: Sweep) -> str:
    return f"{sweep.id} ({sweep.name})"


def _code(sweep: Sweep) -> Any:
    return (sweep.template.get("snapshot") or {}).get("hash")
