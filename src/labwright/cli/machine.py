"""`gpu`, `cluster` and `models`: what this machine offers, and who uses it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.command import with_client
from labwright.cli.formatting import ago, duration, gigabytes, one_line, plural
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.lab import LabClient
from labwright.domain.cluster import ClusterStatus, ClusterType
from labwright.domain.gpu import BusyLimits, Gpu, is_free
from labwright.settings import load_settings

Json = dict[str, Any]
_BAR = 8
_BUSY, _SOME = 80, 10


def _partition_nodes(found: Json) -> str:
    return f"{found['nodes']} ({found['nodes_unwell']} unhealthy)" if found["nodes_unwell"] else str(found["nodes"])


_PARTITION_COLUMNS = [
    Column("name", lambda found: f"{found['name']}{' (default)' if found['default'] else ''}", shrinks=True),
    Column("state", "state"),
    Column("nodes", _partition_nodes),
    Column("CPUs", lambda found: str(found["cpus"])),
    Column("GPUs", lambda found: str(found["gpus"])),
    Column(
        "time limit", lambda found: duration(found["time_limit_seconds"]) if found["time_limit_seconds"] else "none"
    ),
]


@with_client
def gpu(screen: Screen, client: LabClient) -> None:
    cluster = client.cluster()["cluster"]
    if screen.as_json:
        screen.json(cluster["gpus"])
    elif cluster["type"] == ClusterType.SLURM:
        count = f"{plural(cluster['gpu_count'], 'GPU')} on {plural(cluster['node_count'], 'Slurm node')}"
        screen.print((count, "bold"), ". To see the GPUs of a run: labwright show RUN")
        if cluster["gpu_count"]:
            _show_partitions(screen, [found for found in cluster["partitions"] if found["gpus"]])
    elif not cluster["gpus"]:
        screen.print(f"No GPU found ({cluster['type']}). Detection details: labwright cluster")
        screen.suggest("Try simulated GPUs: labwright sim gpus 4 -- bash")
    else:
        settings = load_settings(client.paths.project)
        limits = BusyLimits(memory_mb=settings.gpu_busy_memory_mb, utilization=settings.gpu_busy_utilization)
        screen.table(_gpu_columns(limits), cluster["gpus"])


def _gpu_columns(limits: BusyLimits) -> list[Column]:
    return [
        Column("gpu", lambda card: str(card["index"]), right=True),
        Column("name", "name", shrinks=True),
        Column(
            "memory",
            lambda card: f"{card['memory_used_mb'] / 1024:.1f} of {gigabytes(card['memory_total_mb'])}",
            right=True,
        ),
        Column("use", lambda card: f"{card['utilization']}%", right=True),
        Column("", _bar, min_width=100),
        Column("held by", lambda card: holder(card, limits)),
        Column("processes", lambda card: ", ".join(map(_process, card["processes"])), shrinks=True),
    ]


def _bar(card: Json) -> Cell:
    use = card["utilization"]
    full = round(use / 100 * _BAR)
    return "█" * full + "░" * (_BAR - full), "yellow" if use >= _BUSY else "blue" if use >= _SOME else "dim"


def holder(card: Json, limits: BusyLimits) -> Cell:
    """Return who holds the card. A lease without details still holds it."""
    if lease := card["lease"]:
        return f"{lease['run_id'] or 'a run'} ({lease['user'] or 'unknown user'})", "blue"
    return ("free", "green") if is_free(Gpu.from_dict(card), limits) else ("in use, no lease", "yellow")


def _process(process: Json) -> str:
    user = f"{process['user']} " if process["user"] else ""
    return f"{user}{process['name'] or 'unknown'} {process['pid']} {gigabytes(process['memory_mb'])}"


@with_client
def cluster(
    screen: Screen,
    client: LabClient,
    detect: Annotated[bool, typer.Option("--detect", help="Detect the machine again.")] = False,
    set_type: Annotated[
        ClusterType | None, typer.Option("--set", help="Configure the type manually. --detect undoes it.")
    ] = None,
) -> None:
    if set_type:
        view = client.set_cluster(set_type)
    elif detect:
        with screen.working("detecting the machine"):
            view = client.detect_cluster()
    else:
        view = client.cluster()
    screen.result(view, lambda _: _show_cluster(screen, view["cluster"], view["run_summary"]))


def _show_cluster(screen: Screen, found: Json, runs: dict[str, int]) -> None:
    advice = found["recommended"]
    names = [card["name"] for card in found["gpus"]]
    cards = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    parallel = f"{advice['max_parallel']}{', configured manually' if found['parallel_by_hand'] else ''}"
    screen.facts(
        [
            ("type", (found["type"], "bold")),
            ("status", (found["status"], "green" if found["status"] == ClusterStatus.HEALTHY else "yellow")),
            ("source", f"{found['source']}, {ago(found['last_detected_at'])}" if found["last_detected_at"] else ""),
            ("node", found["head_node"]),
            ("nodes", str(found["node_count"]) if found["node_count"] > 1 else ""),
            ("GPUs", cards or str(found["gpu_count"] or "none")),
            ("CPU cores", str(found["cpu_count"])),
            ("memory", gigabytes(found["memory_total_mb"])),
            ("other users", "yes" if found["shared_machine"] else "no"),
            ("gpuwrap", advice["gpuwrap"].replace("_", " ")),
            ("max parallel runs", parallel),
            ("runs", ", ".join(f"{count} {status}" for status, count in runs.items() if count) or "none"),
        ]
    )
    if found["partitions"]:
        _show_partitions(screen, found["partitions"])
    screen.heading("Detection details")
    for entry in found["evidence"]:
        screen.paragraph(f"{entry['looked_at']}: {one_line(entry['said'])}")
    screen.suggest("List GPUs: labwright gpu" if found["gpus"] else "Detect again: labwright cluster --detect")


def _show_partitions(screen: Screen, partitions: list[Json]) -> None:
    screen.heading("Partitions")
    screen.table(_PARTITION_COLUMNS, partitions)


_TIER_COLUMNS = [
    Column("tier", "tier"),
    Column("model", "model", style="bold", shrinks=True),
    Column("key", lambda tier: (tier["key"], "green" if tier["usable"] else "red"), shrinks=True),
    Column("price", lambda tier: "known" if tier["priced"] else ("unknown", "yellow")),
    Column("calls", lambda tier: str(tier["spent"]["calls"]), right=True),
    Column("spent", lambda tier: f"${tier['spent']['cost_usd']:.2f}" if tier["priced"] else "", right=True),
]


@with_client
def models(screen: Screen, client: LabClient) -> None:
    """Shows where keys were found, but not the keys. No model is called; labwright doctor tests them."""
    found = client.models()
    screen.result(found, lambda _: _show_models(screen, found))


def _show_models(screen: Screen, found: Json) -> None:
    if found["configured"]:
        screen.table(_TIER_COLUMNS, found["tiers"])
        for hint in dict.fromkeys(tier["hint"] for tier in found["tiers"] if tier["hint"]):
            screen.print((f"fix: {hint}", "dim"))
    else:
        screen.paragraph(f"No language model is configured. Labwright uses {found['offline']}.")
        example = "set LABWRIGHT_MODEL, for example to anthropic:claude-sonnet-5-5"
        screen.paragraph(f"To choose one: {example}, then run labwright down and labwright up -d.")
    screen.print("")
    spent, limits = found["spent"], found["session_limits"]
    cost = tokens = ""
    if spent["calls"]:
        unpriced = f", {spent['unpriced_calls']} without a known price" if spent["unpriced_calls"] else ""
        cost = f"${spent['cost_usd']:.2f} in {plural(spent['calls'], 'call')}{unpriced}"
        tokens = f"{spent['tokens_in']:,} in ({spent['cache_read']:,} cached), {spent['tokens_out']:,} out"
    parts = [f"${limits['usd']:g}"] if limits["usd"] else []
    parts += [f"{limits['tokens']:,} tokens"] if limits["tokens"] else []
    limit = f"pauses and asks at {' or '.join(parts)}" if parts else "none"
    screen.facts([("spent", cost or "nothing so far"), ("tokens", tokens), ("session limit", limit)])
    if found["configured"]:
        screen.suggest("Test the models: labwright doctor")
