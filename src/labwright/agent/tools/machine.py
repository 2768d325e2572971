"""What there is to run on."""

from __future__ import annotations

from labwright.agent.tools.tool import Deed, Json, Tool
from labwright.services import cluster


def show_cluster(deed: Deed) -> Json:
    return _told(deed, cluster.show(deed.lab))


def detect_cluster(deed: Deed) -> Json:
    return _told(deed, cluster.detect(deed.lab, None, deed.actor))


def _told(deed: Deed, shown: Json) -> Json:
    found = {
        name: value
        for name, value in shown["cluster"].items()
        if name not in ("evidence", "partitions", "nodes", "gpus")
    }
    gpus = [
        {name: gpu[name] for name in ("index", "name", "memory_used_mb", "memory_total_mb", "lease")}
        for gpu in shown["cluster"]["gpus"]
    ]
    partitions = [{name: one[name] for name in ("name", "state", "gpus")} for one in shown["cluster"]["partitions"]]
    return {**found, "gpus": gpus, "partitions": partitions, "evidence": deed.cite("cluster")}


TOOLS = (
    Tool(
        name="show_cluster",
        description="The machine or cluster: its type, GPUs and who holds them, what is recommended.",
        do=show_cluster,
    ),
    Tool(
        name="detect_cluster",
        description="Look at the machine or cluster anew, where something about it has changed.",
        do=detect_cluster,
    ),
)
