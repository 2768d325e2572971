"""How much of the cluster a job holds while it runs, by what sbatch is asked for."""

from __future__ import annotations

import re

from labwright.compute.slurm.resources import SlurmDefaults, sbatch_options
from labwright.compute.slurm.srun import sizes_in
from labwright.domain.run import Run


def gpus_held(run: Run, defaults: SlurmDefaults) -> int:
    """Cards on all its nodes together; of a range of nodes the most, and one node where nothing says how many."""
    words = sbatch_options(run, defaults)  # each is whole: no value is in the next one
    asked = dict(size for word in words for size in sizes_in([word]))  # of several the last, as sbatch takes them
    nodes = _last_number(asked.get("nodes", "1"))
    if "gpus" in asked:
        return _listed(asked["gpus"])
    if "gpus-per-node" in asked:
        return _listed(asked["gpus-per-node"]) * nodes
    if "gpus-per-task" in asked:
        a_node = _last_number(asked.get("ntasks-per-node", "1"))
        return _listed(asked["gpus-per-task"]) * _last_number(asked.get("ntasks", str(a_node * nodes)))
    cards = [item for item in asked.get("gres", "").split(",") if re.match(r"gpu(:|$)", item)]
    return sum(_last_number(item) for item in cards) * nodes


def _listed(text: str) -> int:
    """`4`, `a100:2,v100:1`."""
    return sum(_last_number(item) for item in text.split(","))


def _last_number(text: str) -> int:
    """`2-4`, `gpu:a100:2`; a kind without a number is one of it."""
    match = re.search(r"(?:^|[:-])(\d+)$", text)
    return int(match[1]) if match else 1
