"""Snapshots of the code that a run was submitted with: content-addressed, deduplicated, cheap if nothing changed."""

from labwright.compute.snapshot.files import Snapshot, SnapshotDiff
from labwright.compute.snapshot.store import SnapshotStore

__all__ = ["Snapshot", "SnapshotDiff", "SnapshotStore"]
