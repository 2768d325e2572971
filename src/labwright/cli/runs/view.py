"""How a run is shown: a row in a table, one line, or in full."""

from __future__ import annotations

import time
from typing import Any

from labwright.cli.formatting import ago, assignments, duration, moment, number, one_line, plural, size
from labwright.cli.screen import Cell, Column, Screen
from labwright.client.follow import is_ended
from labwright.domain.clock import epoch_seconds
from labwright.domain.run import RunStatus

Json = dict[str, Any]
_STYLES = {
    RunStatus.READY: "",
    RunStatus.QUEUED: "",
    RunStatus.LAUNCHING: "blue",
    RunStatus.WAITING: "yellow",
    RunStatus.RUNNING: "blue",
    RunStatus.FINISHED: "green",
    RunStatus.FAILED: "red",
    RunStatus.STOPPED: "bright_black",
    RunStatus.LOST: "magenta",
}


def status_cell(status: str) -> Cell:
    return status, _STYLES[RunStatus(status)]


def time_taken(run: Json) -> str:
    if not run["started_at"]:
        return ""
    end = epoch_seconds(run["ended_at"]) if run["ended_at"] else time.time()
    return duration(max(0.0, end - epoch_seconds(run["started_at"])))


def note_on(run: Json) -> str:
    """Return why the run has its status, and what else is unusual about it."""
    parts = ["stopping"] if run["stop_requested"] and not is_ended(run) else []
    if reason := reason_of(run):
        parts.append(reason)
    if run["warnings"]:
        parts.append(plural(len(run["warnings"]), "warning"))
    if run["archived"]:
        parts.append("archived")
    return ", ".join([*(part.rstrip(".") for part in parts[:-1]), *parts[-1:]])


def reason_of(facts: Json) -> str:
    """Return the error, or else the reason of the status. A reason that is a code is spelled as words."""
    reason = facts["status_reason"]
    if facts["status"] == "stopped":
        return str(reason)
    return str(facts["error"] or (reason.replace("_", " ") if reason.replace("_", "").isalpha() else reason))


COLUMNS = [
    Column("run", "id"),
    Column("name", "name", shrinks=True),
    Column("status", lambda run: status_cell(run["status"])),
    Column("time", time_taken, right=True),
    Column("created", lambda run: ago(run["created_at"]), style="dim", right=True),
    Column("gpus", lambda run: str(run["gpus"] or ""), right=True, optional=True),
    Column("note", note_on, style="dim", shrinks=True),
]


def run_line(screen: Screen, run: Json) -> None:
    text = note_on(run)
    after = f"  ({one_line(text)})" if text else ""
    screen.item(run["id"], status_cell(run["status"]), f"  {one_line(run['name'])}", (after, "dim"))


def run_in_full(screen: Screen, run: Json) -> None:
    screen.item(run["id"], one_line(run["name"]))
    environment = [f"{name}={value}" for name, value in run["env"].items()]
    environment += [f"{name}=(secret)" for name in run["secret_env"]]
    limit = run["time_limit_seconds"]
    screen.facts(
        [
            ("status", status_cell(run["status"])),
            ("why", note_on(run)),
            ("command", _printable(run["command"])),
            ("workdir", run["workdir"]),
            ("created", f"{moment(run['created_at'])} by {run['created_by']}"),
            ("started", moment(run["started_at"])),
            ("ended", moment(run["ended_at"])),
            ("time", time_taken(run)),
            ("time limit", duration(limit) if limit else ""),
            *_machine_facts(run),
            ("sweep", run["sweep_id"] or ""),
            ("rerun of", run["parent_run_id"] or ""),
            ("after", ", ".join(run["after"])),
            ("params", assignments(run["params"])),
            ("seed", "" if run["seed"] is None else str(run["seed"])),
            ("tags", ", ".join(run["tags"])),
            ("priority", str(run["priority"] or "")),
            ("environment", ", ".join(environment)),
            ("notes", _printable(run["notes"])),
            ("snapshot", _snapshot(run["snapshot"])),
            ("folder", run["run_dir"] or ""),
        ]
    )
    if run["summary"]:
        screen.heading("Metrics")
        screen.table(_METRIC_COLUMNS, list(run["summary"].items()))
        if run.get("summary_left_out"):  # missing in records of older versions
            screen.print(f"and {run['summary_left_out']} more metrics: labwright metrics {run['id']}")
    show_rejected_points(screen, run.get("refused", {}))
    for text in run["warnings"]:
        screen.print(("warning: ", "yellow"), text)


def _machine_facts(run: Json) -> list[tuple[str, Cell]]:
    usage, cards = run["usage"], ", ".join(run["gpu_uuids"])
    used = [
        f"{duration(usage['cpu_seconds'])} of CPU" if usage.get("cpu_seconds") is not None else "",
        f"{size(usage['max_memory_mb'] * 2**20)} of memory" if usage.get("max_memory_mb") else "",
    ]
    return [
        ("gpus", f"{run['gpus']}: {cards}" if cards else str(run["gpus"] or "")),
        ("gpuwrap", _gpuwrap(run["gpuwrap_config"])),
        ("used", ", ".join(filter(None, used))),
        ("process", f"{run['pid']} on {run['node']}" if run["pid"] else ""),
        *(_slurm_facts(run) if run["launcher"] == "slurm" else []),
        ("tmux", run["tmux_target"] or ""),
    ]


def _slurm_facts(run: Json) -> list[tuple[str, Cell]]:
    """Return the job and where it runs. Before it starts, Slurm's reason is in `why`."""
    requested = run["slurm"] or {}
    names = ("partition", "account", "qos", "constraint", "gres")
    options = [f"{name}={requested[name]}" for name in names if requested.get(name)]
    return [
        ("Slurm job", run["slurm_job_id"] or "not submitted yet"),
        ("partition", run.get("slurm_partition") or requested.get("partition") or ""),
        ("node", run["node"] or ""),
        ("nodes", str(run["nodes"] or "")),
        ("Slurm options", ", ".join([*options, *requested.get("extra", ())])),
        ("attempt", str(run["attempt"]) if run["attempt"] > 1 else ""),
    ]


def _gpuwrap(config: Json | None) -> str:
    if not config or not config["enabled"]:
        return ""
    retries = config["retries"]
    limit = "no limit of retries" if retries < 0 else "1 retry" if retries == 1 else f"{retries} retries"
    return f"{limit}, every {config['retry_delay_seconds']:g} s"


def _snapshot(snapshot: Json | None) -> str:
    if not snapshot:
        return ""
    commit = f"commit {snapshot['git_commit'][:10]}" if snapshot["git_commit"] else "no git"
    changed = " with changes" if snapshot["git_commit"] and snapshot["dirty"] else ""
    files = f"{plural(snapshot['files'], 'file')}, {size(snapshot['bytes'])}"
    return "  ".join([f"{snapshot['hash'][:8]}  ({commit}{changed}; {files})", *snapshot["notes"]])


def _printable(text: str) -> str:
    return "\n".join(one_line(line) if not line.isprintable() else line for line in text.splitlines())


def show_rejected_points(screen: Screen, rejected: Json) -> None:
    if rejected:
        screen.print(("Rejected metric values: ", "yellow"), rejected_points(rejected))


def rejected_points(rejected: Json) -> str:
    """Return how many logged values were not stored, and the first reasons."""
    reasons = "; ".join(f"{one_line(entry['key'])}: {one_line(entry['why'])}" for entry in rejected["first"][:3])
    return f"{rejected['count']} ({reasons})"


def number_cell(value: object) -> Cell:
    if value is None:
        return ("–", "dim")
    return (value, "red") if isinstance(value, str) else number(value)


def _statistic(name: str) -> Column:
    return Column(name, lambda entry: number_cell(entry[1].get(name)), right=True)


_METRIC_COLUMNS = [
    Column("metric", lambda entry: entry[0], shrinks=True),
    *map(_statistic, ("last", "min", "max", "mean", "step")),
]
