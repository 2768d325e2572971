"""`python -m benchmarks [NAME …] [--peers]`: measure all or the named ones, print a table, write build/bench.json."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import (
    command,
    dashboard,
    drain,
    idle,
    latency,
    listing,
    logs,
    metrics,
    open_page,
    peers,
    planning,
    reader,
    report,
    restart,
    sdk,
    slurm,
    submit,
    sweeps,
    watchers,
    workflow,
)
from benchmarks.figure import Figure

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "submit": submit.measure,
    "latency": latency.measure,
    "drain": drain.measure,
    "restart": restart.measure,
    "list": listing.measure,
    "logs": logs.measure,
    "sdk": sdk.measure,
    "metrics": metrics.measure,
    "sweeps": sweeps.measure,
    "slurm": slurm.measure,
    "watchers": watchers.measure,
    "idle": idle.measure,
    "help": command.measure,
    "workflow": workflow.measure,
    "planning": planning.measure,
    "reader": reader.measure,
    "dashboard": dashboard.measure,
}
LONG: dict[str, Callable[[], list[Figure]]] = {"open-page": open_page.measure}  # only when they are named


def main() -> int:
    """Answers 1 if a target was missed, as a test would."""
    names, install = _arguments()
    if install:
        peers.install()
    figures: list[Figure] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += (BENCHMARKS | LONG)[name]()
    print(report.table(figures))
    report.write(figures, peers.BUILD / "bench.json")
    return int(any(figure.verdict == "MISSED" for figure in figures))


def _arguments() -> tuple[list[str], bool]:
    known = ", ".join(BENCHMARKS | LONG)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {known}; none: all but {', '.join(LONG)}")
    parser.add_argument("--peers", action="store_true", help="install the systems that are measured beside")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in BENCHMARKS | LONG:
            parser.error(f"there is no benchmark {name!r}; choose: {known}")
    return arguments.names or list(BENCHMARKS), arguments.peers


if __name__ == "__main__":
    sys.exit(main())
