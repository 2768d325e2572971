"""A server in front of a simulated Slurm, and queries about its jobs."""

from __future__ import annotations

import os
from pathlib import Path

from labwright.sim.slurm import SimulatedSlurm
from tests.support.live_server import LiveServer

QUERY_SECONDS = 1


def slurm_server(project: Path, cluster: SimulatedSlurm, **environment: str) -> LiveServer:
    """Return a server that polls Slurm every second instead of every five."""
    project.mkdir(exist_ok=True)
    (project / "labwright.toml").write_text(f"[slurm]\nquery_seconds = {QUERY_SECONDS}\n")
    return LiveServer(project, **{"SLURM_CONF": str(cluster.conf), "LABWRIGHT_GRACE_SECONDS": "1", **environment})


def jobs_named(cluster: SimulatedSlurm, name: str) -> list[str]:
    """Return the states of the jobs with this name, including ended ones."""
    return cluster.client("squeue", "-h", "-r", "-t", "all", f"--name={name}", "-o", "%T").split()


def counting_path(folder: Path, *programs: str) -> str:
    """Return a PATH on which each call of these programs appends its time to `<folder>/calls`."""
    folder.mkdir()
    for program in programs:
        script = folder / program
        log = f'echo "$(date +%s.%N) {program}" >> {folder}/calls'
        script.write_text(f'#!/bin/sh\n{log}\nexec /usr/bin/{program} "$@"\n')
        script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def call_times(folder: Path, *programs: str) -> list[float]:
    calls = [line.split() for line in (folder / "calls").read_text().splitlines()]
    return [float(moment) for moment, program in calls if program in programs]
