"""`gpu` and `cluster`: what there is to run on, and who is using it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from labwright.cli.formatting import ago, counted, duration, gigabytes, one_line
from labwright.cli.options import AsJson, Project, connect
from labwright.cli.screen import Cell, Column, Screen
from labwright.domain.cluster import ClusterStatus, ClusterType
from labwright.domain.gpu import BusyLimits, Gpu, is_free
from labwright.settings import load_settings

Json = dict[str, Any]
_BAR = 8
_WIDE = 100
_BUSY, _SOME = 80, 10


def gpu(project: Project = None, as_json: AsJson = False) -> None:
    screen = Screen(as_json=as_json)
    client = connect(project)
    cluster = client.cluster()["cluster"]
    if as_json:
        screen.json(cluster["gpus"])
    elif cluster["type"] == ClusterType.SLURM:
        _slurm_gpus(screen, cluster)
    elif not cluster["gpus"]:
        screen.say(f"No GPU here ({cluster['type']}). What was looked at: labwright cluster")
        screen.next("Rehearse with simulated ones: labwright sim gpus 4 -- bash")
    else:
        settings = load_settings(client.paths.project)
        limits = BusyLimits(memory_mb=settings.gpu_busy_memory_mb, utilization=settings.gpu_busy_utilization)
        _gpu_table(screen, cluster["gpus"], limits)


def _slurm_gpus(screen: Screen, cluster: Json) -> None:
    """Cards there are Slurm's to give; which one a job has, its run says."""
    words = f"{counted(cluster['gpu_count'], 'GPU')} on {counted(cluster['node_count'], 'node')} of Slurm"
    screen.say((words, "bold"), ". Which one a run has: labwright show RUN")
    if cluster["gpu_count"]:
        _partition_table(screen, [found for found in cluster["partitions"] if found["gpus"]])


def _gpu_table(screen: Screen, gpus: list[Json], limits: BusyLimits) -> None:
    with_bar = screen.is_terminal and screen.columns >= _WIDE
    columns = [
        Column(title="gpu", right=True),
        Column(title="name", shrinks=True),
        Column(title="memory", right=True),
        Column(title="use", right=True),
        *([Column(title="")] if with_bar else []),
        Column(title="held by"),
        Column(title="processes", shrinks=True),
    ]
    screen.table(columns, [_gpu_row(card, limits, with_bar) for card in gpus])


def _gpu_row(card: Json, limits: BusyLimits, with_bar: bool) -> list[Cell]:
    use = card["utilization"]
    style = "amber" if use >= _BUSY else "blue" if use >= _SOME else "dim"
    bar: list[Cell] = [(_bar(use), style)] if with_bar else []
    memory = f"{card['memory_used_mb'] / 1024:.1f} of {gigabytes(card['memory_total_mb'])}"
    processes = ", ".join(_process_words(process) for process in card["processes"])
    return [str(card["index"]), card["name"], memory, f"{use}%", *bar, _holder(card, limits), processes]


def _holder(card: Json, limits: BusyLimits) -> Cell:
    lease = card["lease"]
    if lease:
        return f"{lease['run_id'] or 'a run'} ({lease['user'] or 'someone'})", "blue"
    return ("free", "green") if is_free(Gpu.from_dict(card), limits) else ("in use, no lease", "amber")


def _bar(percent: int) -> str:
    full = round(percent / 100 * _BAR)
    return "█" * full + "░" * (_BAR - full)


def _process_words(process: Json) -> str:
    who = f"{process['user']} " if process["user"] else ""
    return f"{who}{process['name'] or 'unseen'} {process['pid']} {gigabytes(process['memory_mb'])}"


def cluster(
    detect: Annotated[bool, typer.Option("--detect", help="Look again.")] = False,
    set_type: Annotated[
        ClusterType | None, typer.Option("--set", help="Set the type by hand; --detect takes it back.")
    ] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    screen, client = Screen(as_json=as_json), connect(project)
    if set_type:
        view = client.set_cluster(set_type)
    elif detect:
        with screen.working("looking at the machine"):
            view = client.detect_cluster()
    else:
        view = client.cluster()
    if as_json:
        screen.json(view)
    else:
        _show_cluster(screen, view["cluster"], view["run_summary"])


def _show_cluster(screen: Screen, found: Json, runs: dict[str, int]) -> None:
    active = [f"{count} {status}" for status, count in runs.items() if count]
    advice = found["recommended"]
    screen.facts(
        [
            ("type", (found["type"], "bold")),
            ("status", (found["status"], "green" if found["status"] == ClusterStatus.HEALTHY else "amber")),
            ("source", f"{found['source']}, {ago(found['last_detected_at'])}" if found["last_detected_at"] else ""),
            ("node", found["head_node"]),
            ("nodes", str(found["node_count"]) if found["node_count"] > 1 else ""),
            ("GPUs", ", ".join(_card_words(found["gpus"])) or str(found["gpu_count"] or "none")),
            ("CPU cores", str(found["cpu_count"])),
            ("memory", gigabytes(found["memory_total_mb"])),
            ("shared", "yes, other people use this machine" if found["shared_machine"] else "no"),
            ("gpuwrap", advice["gpuwrap"].replace("_", " ")),
            (
                "at a time",
                counted(advice["max_parallel"], "run") + (", set by hand" if found["parallel_by_hand"] else ""),
            ),
            ("runs", ", ".join(active) or "none"),
        ]
    )
    if found["partitions"]:
        _partition_table(screen, found["partitions"])
    screen.heading("Looked at")
    for look in found["evidence"]:
        screen.say((f"{look['looked_at']}: ", "dim"), one_line(look["said"]))
    screen.next("GPUs one by one: labwright gpu" if found["gpus"] else "Look again: labwright cluster --detect")


def _partition_table(screen: Screen, partitions: list[Json]) -> None:
    screen.heading("Partitions")
    titles = ("name", "state", "nodes", "CPUs", "GPUs", "time limit")
    screen.table([Column(title=title) for title in titles], [_partition_row(found) for found in partitions])


def _partition_row(found: Json) -> list[Cell]:
    unwell = f" ({found['nodes_unwell']} not well)" if found["nodes_unwell"] else ""
    limit = found["time_limit_seconds"]
    return [
        f"{found['name']} (default)" if found["default"] else found["name"],
        found["state"],
        f"{found['nodes']}{unwell}",
        str(found["cpus"]),
        str(found["gpus"]),
        duration(limit) if limit else "none",
    ]


def _card_words(gpus: list[Json]) -> list[str]:
    names = [card["name"] for card in gpus]
    return [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
