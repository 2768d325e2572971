"""The parts that one server shares: paths, settings, database, launchers and caches of the project."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from labwright.compute.cluster.gpu_history import GpuHistory
from labwright.compute.cluster.state import ClusterState
from labwright.compute.database.journal import Journal
from labwright.compute.database.reserve import Reserve
from labwright.compute.launcher import Launcher
from labwright.compute.local.launcher import LocalLauncher
from labwright.compute.metrics.unread import UnreadMetrics
from labwright.compute.slurm.launcher import SlurmLauncher
from labwright.compute.snapshot import SnapshotStore
from labwright.domain.cluster import ClusterType
from labwright.domain.event import Hint
from labwright.domain.run import Run, RunStatus
from labwright.paths import ProjectPaths
from labwright.settings import Settings
from labwright.store.database import Database


@dataclass(slots=True, kw_only=True)
class Lab:
    paths: ProjectPaths
    settings: Settings
    db: Database
    journal: Journal
    snapshots: SnapshotStore
    local: LocalLauncher
    slurm: SlurmLauncher
    cluster: ClusterState
    gpu_history: GpuHistory
    unread: UnreadMetrics
    reserve: Reserve
    token: str
    user: str
    url: str = ""
    node_url: str = ""  # the same for other machines; empty if they cannot reach it
    # One change of a plan at a time, files included: held by verbs that read first and then change.
    plan_lock: threading.RLock = field(default_factory=threading.RLock)
    plan_news: threading.Condition = field(default_factory=threading.Condition)  # notified at every change of a plan
    skill_lock: threading.Lock = field(default_factory=threading.Lock)  # one change of a skill at a time
    settings_lock: threading.Lock = field(default_factory=threading.Lock)  # one change of `labwright.toml` at a time
    fault: str = ""  # why the engine cannot work at the moment
    private_variables: frozenset[str] = frozenset()  # withheld from runs and shells: addresses of notifications
    # Set by the engine, the server and the stream when they start:
    wake: Callable[[], None] = lambda: None
    run_was_queued: Callable[[], None] = lambda: None
    metrics_arrived: Callable[[str], None] = lambda _run_id: None
    answer_alert: Callable[[str, str], object] = lambda _alert_id, _choice: None
    publish_hint: Callable[[Hint], None] = lambda _hint: None

    @property
    def is_healthy(self) -> bool:
        """Whether runs can be started, as far as is known."""
        trouble = self.fault or self.slurm.fault or self.slurm_silence or self.db.damage
        return not trouble and self.reserve.has_room

    @property
    def slurm_silence(self) -> str:
        """Why Slurm accepts no runs now; empty if it does, or if runs do not go to Slurm."""
        return self.slurm.silence if self.cluster.current.type is ClusterType.SLURM else ""

    def launcher_for(self, run: Run) -> Launcher:
        """Return the launcher that started a run, or that will start it on the current cluster."""
        if run.status in (RunStatus.READY, RunStatus.QUEUED):
            return self.slurm if self.cluster.current.type is ClusterType.SLURM else self.local
        return self.slurm if run.is_on_slurm else self.local
