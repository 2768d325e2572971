"""The verbs of the cluster: show, detect, configure manually."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from labwright.compute.cluster.gpu_history import SAMPLE_SECONDS
from labwright.compute.lab import Lab
from labwright.domain.actor import Actor, Scope
from labwright.domain.clock import now
from labwright.domain.cluster import Cluster, ClusterSource, ClusterType
from labwright.domain.errors import Invalid
from labwright.domain.event import Event, EventType
from labwright.domain.gpu import Gpu
from labwright.store import meta, runs
from labwright.store.database import Transaction

log = logging.getLogger(__name__)
_BY_HAND = "cluster_type"
_SLURM_SEEN = "slurm_seen"
_CARDS_SEEN = "cards_seen"
_FIXED_FACTS = ("index", "uuid", "name", "memory_total_mb")  # of a GPU; they never change


def show(lab: Lab) -> dict[str, Any]:
    return _view(lab, lab.cluster.fresh())


def history(lab: Lab, hours: float, max_points: int) -> dict[str, Any]:
    """Return the utilization and memory use of each GPU over the last hours."""
    cards = [asdict(trace) for trace in lab.gpu_history.read(hours * 3600, max_points)]
    return {"hours": hours, "every_seconds": SAMPLE_SECONDS, "gpus": cards}


def detect(lab: Lab, preferred: ClusterType | None, actor: Actor) -> dict[str, Any]:
    """Detect the cluster again, which replaces a manual configuration. A preferred type is used if it is possible.

    If an agent calls this, a manual configuration stays.
    """
    before = lab.cluster.current
    if before.source is ClusterSource.MANUAL and actor.scope in (Scope.AGENT, Scope.PLANNER):
        found = lab.cluster.set_by_hand(
            before.type,
            before.parallel_by_hand,
            before.shared_machine,
            must_answer=before.type is not ClusterType.SLURM,
        )
    else:
        found = lab.cluster.set_by_hand(preferred, None, None) if preferred else lab.cluster.detect()
    _store(lab, found, actor)
    return _view(lab, found)


def set_by_hand(lab: Lab, kind: ClusterType, parallel: int | None, shared: bool | None, actor: Actor) -> dict[str, Any]:
    found = lab.cluster.set_by_hand(kind, parallel, shared)
    _store(lab, found, actor)
    return _view(lab, found)


def restore(lab: Lab) -> None:
    """Restore the manual configuration at start, or detect the cluster."""
    reader = lab.db.reader()
    cards = json.loads(meta.get(reader, _CARDS_SEEN) or "[]")
    lab.cluster.slurm_expected = meta.get(reader, _SLURM_SEEN) is not None
    lab.cluster.cards_expected = tuple(Gpu.from_dict(card) for card in cards)
    by_hand = meta.get(reader, _BY_HAND)
    if by_hand is None:
        lab.cluster.detect()
    else:
        kind, parallel, shared = by_hand.split(",")
        on_slurm = kind == ClusterType.SLURM  # its controller may be down only for a while
        try:
            number = int(parallel) if parallel else None
            lab.cluster.set_by_hand(ClusterType(kind), number, shared == "True", must_answer=not on_slurm)
        except Invalid as error:  # the driver does not respond; run without GPUs
            log.warning("the configured cluster (%s) is not available: %s", kind, error)
            lab.cluster.detect()
    with lab.db.transaction() as tx:
        _remember(lab, tx)


def _remember(lab: Lab, tx: Transaction) -> None:
    """Store the hardware that responds now: at the next start it may not respond."""
    if lab.cluster.slurm_expected:
        meta.put(tx, _SLURM_SEEN, "1")
    cards = [{name: getattr(card, name) for name in _FIXED_FACTS} for card in lab.cluster.cards_expected]
    meta.put(tx, _CARDS_SEEN, json.dumps(cards))


def _store(lab: Lab, cluster: Cluster, actor: Actor) -> None:
    with lab.db.transaction() as tx:
        if cluster.source is ClusterSource.MANUAL:
            value = f"{cluster.type},{cluster.parallel_by_hand or ''},{cluster.shared_machine}"
            meta.put(tx, _BY_HAND, value)
        else:
            meta.delete(tx, _BY_HAND)
        _remember(lab, tx)
        data = {"type": cluster.type, "source": cluster.source, "gpu_count": cluster.gpu_count}
        tx.emit(Event(type=EventType.CLUSTER_CHANGED, actor=str(actor), time=now(), data=data))
    lab.wake()


def _view(lab: Lab, cluster: Cluster) -> dict[str, Any]:
    shown = cluster.to_dict(lab.settings.max_parallel)
    return {"cluster": shown, "run_summary": runs.count_by_status(lab.db.reader())}
