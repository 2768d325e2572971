"""Which code a run was submitted with: content-addressed, deduplicated, cheap when nothing changed."""

from labwright.compute.snapshot.store import SnapshotStore
from labwright.compute.snapshot.values import Snapshot, SnapshotDiff

__all__ = ["Snapshot", "SnapshotDiff", "SnapshotStore"]
