"""How many runs this machine, or the cluster, takes at a time."""

from __future__ import annotations

from dataclasses import dataclass

from labwright.domain.cluster import Cluster, ClusterType, advise_parallel

NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    gpus: int
    cpu_runs: int
    runs: int = NO_LIMIT  # at most so many in all, whatever they take

    @property
    def total(self) -> int:
        return min(self.gpus + self.cpu_runs, self.runs)

    def fitting(self, gpus: int) -> int:
        """How many runs that take so many cards each go at a time: one in any case, for it may wait."""
        return max(1, min(self.runs, self.gpus // gpus if gpus else self.cpu_runs))


def capacity_of(cluster: Cluster, max_parallel: int) -> Capacity:
    """One run for each GPU asked for; runs without GPUs by what the cores bear, or by the setting. A number set by hand
    limits all of them together.

    On Slurm as many as there are: what has no room yet waits in its queue, not in ours.
    """
    by_hand = cluster.parallel_by_hand
    runs = by_hand or NO_LIMIT
    if cluster.type is ClusterType.SLURM:
        return Capacity(gpus=NO_LIMIT, cpu_runs=NO_LIMIT, runs=runs)
    cpu_runs = by_hand or max_parallel or advise_parallel(ClusterType.CPU_ONLY, 0, cluster.cpu_count)
    gpus = len(cluster.gpus) or cluster.gpu_count
    return Capacity(gpus=gpus if cluster.type is ClusterType.LOCAL_GPU else 0, cpu_runs=cpu_runs, runs=runs)
