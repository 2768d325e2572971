"""The figures as a table, and as JSON for later comparison."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import psutil

from benchmarks.figure import Figure, Peer, with_unit
from labwright.domain.clock import now
from labwright.version import __version__

_HEAD = ("figure", "ours", "target", "verdict", "peers")


def machine() -> dict[str, str | int | float]:
    return {
        "cores": os.cpu_count() or 0,
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": _system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "labwright": __version__,
        "load_average_at_end": os.getloadavg()[0],
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # not a Linux distribution
        return platform.platform()


def table(figures: list[Figure]) -> str:
    rows = [_HEAD, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join([*lines, "", _footer(figures)])


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        with_unit(figure.ours, figure.unit),
        figure.target.words(figure.unit) if figure.target else "",
        figure.verdict if figure.target else "",
        "; ".join(_peer(peer, figure) for peer in figure.peers),
    )


def _peer(peer: Peer, figure: Figure) -> str:
    """With how many times as good ours is."""
    if peer.value is None:
        return f"{peer.name}: {peer.missing}"
    more_is_better = figure.target is not None and figure.target.at_least
    ratio = figure.ours / peer.value if more_is_better else peer.value / figure.ours
    return f"{peer.name} {with_unit(peer.value, figure.unit)} (ours {with_unit(ratio, '×')})"


def _footer(figures: list[Figure]) -> str:
    facts = machine()
    loads = [figure.load for figure in figures]
    return (
        f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, Python {facts['python']}; "
        f"load average meanwhile {min(loads):.1f} to {max(loads):.1f}"
    )


def write(figures: list[Figure], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"time": now(), "machine": machine(), "figures": [figure.to_dict() for figure in figures]}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
