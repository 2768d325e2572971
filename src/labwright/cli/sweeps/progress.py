"""How far a sweep is, until it ends or waits for somebody."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

from labwright.cli.screen import Screen, has_colours, note
from labwright.client.follow import asked, follow_events
from labwright.client.lab import LabClient
from labwright.domain.event import EventType
from labwright.domain.run import TERMINAL

Json = dict[str, Any]
_PAUSE_SECONDS = 0.2  # between two looks, however many runs end
_STATUSES = ("running", "waiting", "launching", "queued", "ready", "finished", "failed", "stopped", "lost")
_TYPES = f"{EventType.RUN_STATUS},{EventType.SWEEP_STATUS},{EventType.SWEEP_UPDATED}"


def follow_sweep(screen: Screen, client: LabClient, sweep_id: str) -> Json:
    """The sweep once it is no longer running; a bar meanwhile, where somebody watches."""
    if screen.as_json or not has_colours(sys.stderr):
        return _last(_looks(client, sweep_id))
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(sweep_id, total=None)
        for sweep in _looks(client, sweep_id):
            done, total = ended_of(sweep)
            bar.update(task, completed=done, total=total, description=_words(sweep))
    return sweep


def ended_of(sweep: Json) -> tuple[int, int]:
    """How many runs have ended, of how many there will be."""
    progress = sweep["progress"]
    done = sum(progress[status] for status in TERMINAL)
    most = sweep["max_runs"] if sweep["method"] == "adaptive" else None
    return done, max(progress["total"], most or 0)


def counts_of(sweep: Json) -> str:
    """Its runs by status, those at work first."""
    progress = sweep["progress"]
    return ", ".join(f"{progress[status]} {status}" for status in _STATUSES if progress[status])


def _words(sweep: Json) -> str:
    failed = sweep["progress"]["failed"] + sweep["progress"]["lost"]
    best = f" best {sweep['best']['mean']:.4g}" if sweep["best"] else ""
    return f"{sweep['name']}{best}{f' {failed} failed' if failed else ''}"


def _last(looks: Iterator[Json]) -> Json:
    for sweep in looks:
        found = sweep
    return found


def _looks(client: LabClient, sweep_id: str) -> Iterator[Json]:
    """The first only after the stream is open, so that no end is missed."""
    looked_at = 0.0
    for frame in follow_events(client, {"types": _TYPES}, note):
        if frame.event not in ("hello", "reset") and frame.data.get("sweep_id") != sweep_id:
            continue
        about_it = frame.event != EventType.RUN_STATUS
        if not about_it and time.monotonic() - looked_at < _PAUSE_SECONDS:
            continue
        sweep = asked(client, lambda: client.sweep(sweep_id), note)
        looked_at = time.monotonic()
        yield sweep
        if sweep["status"] != "running":
            return
