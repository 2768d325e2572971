"""The progress of a sweep as text."""

from __future__ import annotations

from labwright.cli.sweeps.view import run_counts
from labwright.domain.run import RunStatus


def test_run_of_every_status_is_counted() -> None:
    """A run in Slurm's queue is launching, often for days."""
    words = run_counts({"progress": {"total": len(RunStatus), **{str(status): 1 for status in RunStatus}}})
    assert set(words.split(", ")) == {f"1 {status}" for status in RunStatus}
